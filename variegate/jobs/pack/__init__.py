"""A data set packed into shards: ``Packing`` runs a ``PackPlan`` on the devices of an engine."""

from variegate.jobs.pack.plan import PackPlan
from variegate.jobs.pack.run import Packed, Packing, pack, packing_of, speedup_of

__all__ = ["PackPlan", "Packed", "Packing", "pack", "packing_of", "speedup_of"]
