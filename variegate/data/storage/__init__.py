"""Places where files are put, whole or not at all: a folder of this machine (``local``), or an address (``remote``).

``open_storage`` opens either as a ``Storage`` (``base``).
"""

from variegate.data.storage.base import PRIVATE, TEMPORARY, FileWriter, Storage
from variegate.data.storage.remote import open_storage
from variegate.io.durable import DiskFullError, WriteError

__all__ = ["PRIVATE", "TEMPORARY", "DiskFullError", "FileWriter", "Storage", "WriteError", "open_storage"]
