"""From a source to batches on a device, without end and without a stall: ``Loader``."""

from variegate.loader.batch import Batch, Failure, TooManyErrors
from variegate.loader.loader import Loader
from variegate.loader.mixture import Mixture
from variegate.loader.targets import TargetBatch

__all__ = ["Batch", "Failure", "Loader", "Mixture", "TargetBatch", "TooManyErrors"]
