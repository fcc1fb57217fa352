"""``clean``: a data set without what a check has found, as a copy, or as a list of what to leave out.

``found`` reads the table of the check and decides which images go and which of a group stays, ``function`` puts it
together; ``run`` writes the copy, file by file (``copying``) or shard by shard (``shards``).
"""

from variegate.apps.curate.cleaning.found import LeftOut
from variegate.apps.curate.cleaning.function import Cleaned, clean

__all__ = ["Cleaned", "LeftOut", "clean"]
