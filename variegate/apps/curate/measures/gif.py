"""Whether a GIF has its end, which its blocks lead to: the bytes behind it, and those within pixels, may be anything.

Graphics Interchange Format, Version 89a (CompuServe, 1990), Appendix B.
"""

from __future__ import annotations

_HEADER, _DESCRIPTOR = 13, 9  # bytes: with the screen's descriptor; of an image's, behind its separator
_IMAGE, _EXTENSION, _TRAILER = 0x2C, 0x21, 0x3B


def has_gif_end(data: bytes) -> bool:
    at = _HEADER + _colours(data, 10)
    while at < len(data):
        block = data[at]
        if block == _TRAILER:
            return True
        if block == _IMAGE:
            # Behind its colours the number of bits of its codes.
            at += 1 + _DESCRIPTOR + _colours(data, at + _DESCRIPTOR) + 1
        elif block == _EXTENSION:
            at += 2
        else:
            return False
        while at < len(data) and data[at]:
            at += 1 + data[at]
        at += 1
    return False


def _colours(data: bytes, flags_at: int) -> int:
    """Bytes of the table of colours that the flags speak of."""
    flags = data[flags_at] if flags_at < len(data) else 0
    return 3 << ((flags & 7) + 1) if flags & 0x80 else 0
