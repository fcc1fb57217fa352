"""Images that are the same, or look alike, found by their fingerprints."""

from variegate.apps.curate.duplicates.findings import UNLIKE, find_duplicates
from variegate.apps.curate.duplicates.nearness import DISTANCE, distance_for

__all__ = ["DISTANCE", "UNLIKE", "distance_for", "find_duplicates"]
