"""Files of outputs: stable, readable names, never the same for two sources and never outside of the root; and bytes."""

from __future__ import annotations

import io
import os
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Any, Literal, get_args

import numpy as np
import simplejpeg
from PIL import Image

from variegate.arrays import AnyArray, ImageArray
from variegate.checks import one_of
from variegate.data.folder import FLAT_CLASS
from variegate.data.kinds import SIDECARS
from variegate.data.samples import Samples
from variegate.data.storage import PRIVATE
from variegate.program.depth import Depth, depth_of

# What Windows takes for devices, whatever their extension.
_DEVICES = {"con", "prn", "aux", "nul", *(f"{name}{digit}" for name in ("com", "lpt") for digit in range(1, 10))}
_UNSAFE = re.compile(r'[\x00-\x1f\x7f/\\<>:"|?*\ud800-\udfff]')
# A name may have 255 bytes on most file systems; number, copy and extension are appended.
_MOST_BYTES = 230


def output_stems(paths: Sequence[str]) -> list[str]:
    """Paths of sources -> where their outputs go, without copy number and extension; all different on any file system.

    ``cat/a.jpg`` gives ``cat/a``; sources whose outputs would collide keep their extensions, or else get their index.
    """
    level = [0] * len(paths)
    while True:
        names = [_name(path, index, level[index]) for index, path in enumerate(paths)]
        count = Counter(name.casefold() for name in names)
        clashing = [index for index, name in enumerate(names) if count[name.casefold()] > 1]
        # Level 2 ends in the source's own index, so members of a clash can always move until none is left.
        movable = [index for index in clashing if level[index] < 2]
        if not movable:
            return names
        for index in movable:
            level[index] += 1


def output_path(stem: str, copy: int, extension: str) -> str:
    """``cat/a``, 3, ``jpg`` -> ``cat/a_3.jpg``. Different (stem, copy) never meet: the last ``_`` ends the stem."""
    return f"{stem}_{copy}.{extension}"


class OutputNames:
    """Names of the outputs of each sample of a source, all different, and none outside of the root.

    Of a folder's images, ``output_stems``. Of others ``<class or label>/<index, 8 digits or more>``, or ``<index>``.
    """

    def __init__(self, source: Samples) -> None:
        self._stems: list[str] | None = None
        is_in_folders = source.folder is not None and not source.has_targets and source.classes != (FLAT_CLASS,)
        self._class_names = source.classes if is_in_folders else ()
        if source.folder is not None:
            self._stems = output_stems(list(map(_inside, source.paths())))
        else:
            self._folders = class_folders(source.classes)

    def folders_of_classes(self) -> list[str]:
        """The folder of each class, also of classes without images; empty if outputs are not in class folders."""
        if self._stems is None:
            return self._folders
        return [_inside(f"{name}/image").rpartition("/")[0] for name in self._class_names]

    def stem(self, index: int, label: Any) -> str:
        """The stem for ``output_path``. ``label``: as the source gives it; sources that list their files do not look at
        it."""
        if self._stems is not None:
            return self._stems[index]
        is_class = isinstance(label, int) and label >= 0
        if is_class and not self._folders:
            return f"{label}/{index:08}"
        return f"{self._folders[label]}/{index:08}" if is_class and label < len(self._folders) else f"{index:08}"


def class_folders(classes: Sequence[str]) -> list[str]:
    """A folder per class, with a name close to the class's; names that would collide on some file system get their
    number."""
    folders = [safe_name(name) for name in classes]
    seen: Counter[str] = Counter(map(_folded, folders))
    used = {_folded(folder) for folder in folders if seen[_folded(folder)] == 1}
    for label, folder in enumerate(folders):
        if seen[_folded(folder)] > 1:
            folders[label] = f"{folder}~{label}"
            while _folded(folders[label]) in used:
                folders[label] += "~"
            used.add(_folded(folders[label]))
    return folders


def safe_name(name: str) -> str:
    """A name of a folder, whatever ``name`` holds: separators, "..", NUL, what Windows reserves, far too much."""
    safe = _UNSAFE.sub("_", name)
    if safe.startswith("."):  # listings skip such names
        safe = f"_{safe[1:]}"
    safe = safe.encode()[:_MOST_BYTES].decode(errors="ignore")
    if safe.endswith((".", " ")):
        safe = f"{safe[:-1]}_"
    is_reserved = safe.casefold() in SIDECARS or safe.casefold().partition(".")[0].rstrip() in _DEVICES
    return f"{safe}_" if is_reserved or not safe else safe


def _inside(path: str) -> str:
    """Return a path unchanged, unless no folder on a disk can hold it, such as a bucket's key ``a/../../b``."""
    parts = path.split("/")
    is_reserved = parts[0].casefold() in {*SIDECARS, PRIVATE} or len(os.fsencode(parts[-1])) > _MOST_BYTES
    if {"", ".", ".."}.isdisjoint(parts) and "\0" not in path and not is_reserved:
        return path
    return "/".join(safe_name(part) for part in parts)


def _folded(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold()


def _name(path: str, index: int, level: int) -> str:
    if level == 0:
        return str(PurePosixPath(path).with_suffix(""))
    return path if level == 1 else f"{path}~{index}"


ImageFormat = Literal["jpg", "png", "webp", "tif", "npy"]
FORMATS: tuple[ImageFormat, ...] = get_args(ImageFormat)
# Formats that hold images of more than 8 bits without loss; PNG only gray ones, because Pillow writes no others.
_FORMATS_OF: dict[Depth, tuple[str, ...]] = {
    Depth.UINT8: FORMATS,
    Depth.UINT16: ("png", "tif", "npy"),
    Depth.FLOAT32: ("tif", "npy"),
}
_LONGEST_SIDE = {"jpg": 65_535, "webp": 16_383}
# Level 6, Pillow's default, takes twice as long for files 2 to 3 % smaller.
_PNG_LEVEL = 3
_MOST_IN_PNG = 65_535


def check_format(name: str, quality: int) -> None:
    """Raise ValueError for an unknown format or a quality outside 1..100."""
    one_of("format", name, [*FORMATS])
    if not 1 <= quality <= 100:
        raise ValueError(f"quality: got {quality}; accepted: 1 to 100")


def check_depth(name: str, depth: Depth) -> None:
    """Raise ValueError for a format that cannot hold images of a depth without loss."""
    if name not in _FORMATS_OF[depth]:
        accepted = ", ".join(_FORMATS_OF[depth])
        raise ValueError(f"format: got {name!r}, which holds no images of {depth}; accepted for them: {accepted}")


def encode_image(img_HWC: ImageArray, name: str, quality: int = 95) -> bytes:
    """uint8[H, W, 3] RGB, or [H, W] or [H, W, 1] gray -> the bytes of a jpg (4:2:0), png or webp; of any number of
    channels, of a tif or npy. Images of uint16 and float32: see ``check_depth``.

    Raises ValueError for a picture larger than the format can hold, with more channels, or of another depth.
    """
    check_format(name, quality)
    depth = depth_of(img_HWC.dtype)
    assert depth is not None
    check_depth(name, depth)
    longest = max(img_HWC.shape[:2])
    if longest > _LONGEST_SIDE.get(name, longest):
        raise ValueError(f"{name} holds at most {_LONGEST_SIDE[name]:,} pixels a side; this picture has {longest:,}")
    if img_HWC.ndim == 2:
        img_HWC = img_HWC[:, :, None]
    is_gray = img_HWC.shape[2] == 1
    img_HWC = np.ascontiguousarray(img_HWC)
    buffer = io.BytesIO()
    if name == "npy":
        np.save(buffer, img_HWC, allow_pickle=False)
        return buffer.getvalue()
    if name == "tif":
        _write_tiff(buffer, img_HWC)
        return buffer.getvalue()
    if img_HWC.shape[2] not in (1, 3):
        raise ValueError(f"{name} holds 1 or 3 channels; this picture has {img_HWC.shape[2]}: use tif or npy")
    if depth.is_deep and not is_gray:
        raise ValueError(f"{name} holds 1 channel of {depth}; this picture has {img_HWC.shape[2]}: use tif or npy")
    if name == "jpg":
        colors, sampling = ("GRAY", "Gray") if is_gray else ("RGB", "420")
        return bytes(simplejpeg.encode_jpeg(img_HWC, quality, colors, sampling))
    image = Image.fromarray(img_HWC[:, :, 0] if is_gray else img_HWC)
    if name == "png":
        image.save(buffer, "PNG", compress_level=_PNG_LEVEL)
    else:
        image.save(buffer, "WEBP", quality=quality)
    return buffer.getvalue()


def _write_tiff(buffer: io.BytesIO, img_HWC: ImageArray) -> None:
    """Compressed by deflate; channels beyond one or three have no meaning there."""
    try:
        import tifffile
    except ImportError as error:
        raise ValueError("tif needs tifffile: pip install 'variegate[tiles]'") from error
    kind = "rgb" if img_HWC.shape[2] == 3 else "minisblack"
    levels = img_HWC if img_HWC.shape[2] > 1 else img_HWC[:, :, 0]
    plain: dict[str, Any] = {"metadata": None, "software": False, "compression": "zlib"}
    tifffile.imwrite(buffer, levels, photometric=kind, planarconfig="contig", **plain)


def encode_mask(mask_HW: AnyArray) -> bytes:
    """Numbers 0 to 65,535 [H, W] -> the bytes of a PNG of 8 bits for uint8, else 16. Raises ValueError for others."""
    if mask_HW.dtype != np.uint8:
        low, high = (int(mask_HW.min()), int(mask_HW.max())) if mask_HW.size else (0, 0)
        if low < 0 or high > _MOST_IN_PNG:
            raise ValueError(f"a mask with numbers from {low:,} to {high:,}; a PNG holds 0 to {_MOST_IN_PNG:,}")
        mask_HW = mask_HW.astype(np.uint16)
    buffer = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(mask_HW)).save(buffer, "PNG", compress_level=_PNG_LEVEL)
    return buffer.getvalue()
