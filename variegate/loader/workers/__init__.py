"""Batches of a loader made on other devices, in other processes and on other machines."""

from variegate.loader.workers.batches import begin
from variegate.loader.workers.places import WorkerPlaces

__all__ = ["WorkerPlaces", "begin"]
