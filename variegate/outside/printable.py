"""Text that may be sent to a terminal, whatever names it holds."""

from __future__ import annotations

import re

# Controls (C0, DEL, C1), what turns or hides text (marks of direction, invisible letters, tags), separators of lines,
# and halves of UTF-16 pairs, by which Python stands in for bytes that are no text. Joiners are letters to many scripts.
_UNPRINTABLE = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e0fff]"
)


def printable(text: str) -> str:
    """One line without anything that a terminal would act upon: ``\\x1b`` for an escape, ``\\u202e``, ``\\udcff``."""
    return _UNPRINTABLE.sub(_escaped, text)


def _escaped(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
