"""``Loader``: endless batches of a source on a device, prepared ahead of the consumer."""

from variegate.loader.batch import Batch, Failure, TooManyErrors
from variegate.loader.loader import Loader
from variegate.loader.mixture import Mixture
from variegate.loader.targets import TargetBatch

__all__ = ["Batch", "Failure", "Loader", "Mixture", "TargetBatch", "TooManyErrors"]
