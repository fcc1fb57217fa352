"""The table of source formats, from which opening, messages and help texts are derived."""

from __future__ import annotations

from dataclasses import dataclass

from variegate.io.location import Location

IMAGE_EXTENSIONS = (
    ".jpg",
    ".jpeg",
    ".jpe",
    ".jfif",
    ".png",
    ".webp",
    ".gif",
    ".bmp",
    ".tif",
    ".tiff",
    ".ppm",
    ".pgm",
    ".pbm",
    ".pnm",
    ".avif",
    ".heic",
    ".heif",
    ".hif",
    ".jxl",
    ".dcm",
)
# Images too, but of kinds that are not read: messages name them.
UNSUPPORTED_IMAGES = frozenset((".jp2", ".j2k", ".exr", ".psd", ".svg", ".tga", ".ico", ".dng", ".cr2", ".nef"))
# Files that commands write next to images and shards. Folders and patterns never read these as data, and no output has
# such a name.
SIDECARS = frozenset(
    {
        "manifest.parquet",
        "manifest.sha256",
        "manifest.jsonl",
        "findings.parquet",
        "variegate.json",
        "variegate.source",
        "classnames.txt",
        "statistics.json",
    }
)
# Indexes, which are stored next to the indexed shards and JPEGs.
INDEX_SUFFIXES = (".tar.index", ".tar.gz.index", ".tgz.index", ".vgjpeg")
# Read only in folders, and samples of shards, without any image above.
ARRAY_EXTENSIONS = (".npy",)


@dataclass(frozen=True)
class Format:
    """Files or a folder that ``open_source`` reads.

    ``suffixes``: of the names of files that hold many samples each, in small letters; messages name the first.
    ``noun``: completes the suffix in messages, or describes a folder. ``reader``: module and function, imported on
    first use. It gets the sorted list of locations, or the folder's location, and the arguments of ``open_source`` that
    ``options`` names. It returns Samples or a ShardedSource. ``layout``: the expected content of such files, if it has
    a name. ``annotated``: the format of such files with objects or masks in them.
    """

    suffixes: tuple[str, ...]
    noun: str
    reader: str
    options: tuple[str, ...] = ()
    layout: str = ""
    annotated: str = ""

    @property
    def suffix(self) -> str:
        return self.suffixes[0]

    @property
    def plural(self) -> str:
        return f"{self.suffix} {self.noun}"


_TAR = (".tar", ".tar.gz", ".tgz")
_PARQUET = (".parquet",)
_OF_TAR = ("stream", "on_error", "classes", "cache_dir", "cache_limit")
_OF_PARQUET = ("classes", "cache_dir", "image_root")
_WITH = "a folder with annotations"
_ANNOTATED = ("annotations", "on_error", "classes")
# The readers. Readers with annotations have the names that ``annotations=`` accepts.
FORMATS = {
    "tar": Format(_TAR, "shards", "tar.webdataset:open_tar", _OF_TAR, "WebDataset", "members"),
    "parquet": Format(_PARQUET, "files", "parquet:open_parquet", _OF_PARQUET, annotated="columns"),
    "raw": Format((".arrow",), "shards", "raw:open_raw", layout="raw pixels"),
    "image": Format((), "an image", "folder:open_image"),
    "folder": Format((), "a folder of images", "folder:open_folder"),
    "coco": Format((), _WITH, "coco:open_coco", _ANNOTATED),
    "voc": Format((), _WITH, "voc:open_voc", _ANNOTATED),
    "yolo": Format((), _WITH, "yolo:open_yolo", _ANNOTATED),
    "masks": Format((), _WITH, "masks:open_masks", _ANNOTATED),
    "columns": Format(_PARQUET, "files", "parquet:open_columns", (*_ANNOTATED, *_OF_PARQUET[1:])),
    "members": Format(_TAR, "shards", "tar.webdataset:open_members", ("annotations", *_OF_TAR)),
}
FILE_KINDS = tuple(one for one in FORMATS.values() if one.suffixes and "annotations" not in one.options)
KIND_NAMES = tuple(kind.plural for kind in FILE_KINDS)
# For the help of commands.
IMAGES_HELP = f"Images: a folder, with or without class folders, {', '.join(KIND_NAMES)}, a glob pattern, or a URL."
LABELLED_IMAGES_HELP = f"Labeled images: class folders, or {' or '.join(KIND_NAMES)} with labels. URLs are accepted."
ACCEPTED = (
    "a folder of images or of class folders, "
    + ", ".join(kind.plural + f" ({kind.layout})" * bool(kind.layout) for kind in FILE_KINDS)
    + ", patterns (* and {000..012}) or lists of such files, addresses of them (s3://, https://, ...), an array "
    "[N, H, W, C] or a pair (images, labels), a data set with __getitem__ and __len__, or a Source"
)


def file_kind(location: Location) -> Format | None:
    """The format by the extension, in any case; the query of an address is ignored. None for images and
    for unknown extensions."""
    for name in location.names:
        for kind in FILE_KINDS:
            if name.lower().endswith(kind.suffixes):
                return kind
        if is_image_name(name):
            return None
    return None


def is_sidecar(name: str) -> bool:
    """True for the name of a file that a command wrote next to its output, such as a manifest or an index."""
    return name in SIDECARS or name.endswith(INDEX_SUFFIXES)


def is_image_name(name: str) -> bool:
    return name.lower().endswith(IMAGE_EXTENSIONS)


def is_array_name(name: str) -> bool:
    """True for the name of a NumPy file, which is an image where there is no other."""
    return name.lower().endswith(ARRAY_EXTENSIONS)


# Folders and files that macOS, Windows, NAS systems and Python leave next to photos; in lower case.
_SYSTEM_NAMES = frozenset(
    (
        *("__macosx", "@eadir", "@__thumb", "#recycle", "#snapshot", "$recycle.bin", "system volume information"),
        "lost+found",
        "__pycache__",
        "thumbs.db",
        "ehthumbs.db",
        "desktop.ini",
    )
)


def is_system_name(name: str) -> bool:
    """True for the name of a file or folder that is no part of a data set: it begins with a dot (``._photo.jpg``,
    ``.ipynb_checkpoints``), or systems make it (``__MACOSX``, ``Thumbs.db``). Every listing skips such names."""
    return name.startswith(".") or name.lower() in _SYSTEM_NAMES


def is_system_path(path: str) -> bool:
    """True if a part of a relative path, with forward slashes, is a system name; ``.`` and ``..`` are not."""
    return any(is_system_name(part) for part in path.split("/") if part not in (".", ".."))


def kinds_with(option: str) -> str:
    """The files that an argument of ``open_source`` is for, in words."""
    return " and ".join(kind.plural for kind in FILE_KINDS if option in kind.options)
