"""A data set packed into shards: ``Packing`` runs a ``PackPlan`` on the devices of an engine."""

from variegate.engine.packing.function import pack, packing_of, speedup_of
from variegate.engine.packing.plan import PackPlan
from variegate.engine.packing.run import Packed, Packing

__all__ = ["PackPlan", "Packed", "Packing", "pack", "packing_of", "speedup_of"]
