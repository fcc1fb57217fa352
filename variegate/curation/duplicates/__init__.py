"""Images that are the same, or look alike, found by their fingerprints."""

from variegate.curation.duplicates.findings import UNLIKE, find_duplicates
from variegate.curation.duplicates.nearness import DISTANCE, distance_for

__all__ = ["DISTANCE", "UNLIKE", "distance_for", "find_duplicates"]
