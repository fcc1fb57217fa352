"""From a source to batches on a device, without end and without a stall: ``Loader``."""

from variegate.data.loader.batch import Batch, Failure, TooManyErrors
from variegate.data.loader.loader import Loader
from variegate.data.loader.targets import TargetBatch

__all__ = ["Batch", "Failure", "Loader", "TargetBatch", "TooManyErrors"]
