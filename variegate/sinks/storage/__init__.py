"""Where files are put, whole or not at all: a folder of this machine (``local``), or an address (``remote``).

``open_storage`` opens either as a ``Storage`` (``base``).
"""

from __future__ import annotations

import os

from variegate.outside.durable import DiskFullError, WriteError
from variegate.outside.location import Location
from variegate.sinks.storage.base import PRIVATE, TEMPORARY, FileWriter, Storage
from variegate.sinks.storage.local import LocalStorage
from variegate.sinks.storage.remote import open_remote

__all__ = ["PRIVATE", "TEMPORARY", "DiskFullError", "FileWriter", "Storage", "WriteError", "open_storage"]


def open_storage(spec: str | os.PathLike[str]) -> Storage:
    """A folder (by path or ``file://``), or an address such as ``s3://bucket/folder``. Touches nothing yet.

    Raises SourceError for addresses that cannot be written to.
    """
    location = Location.parse(spec)
    return open_remote(location) if location.is_url else LocalStorage(location.address())
