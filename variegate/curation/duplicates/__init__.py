"""Images that are the same, or look alike, found by their fingerprints."""

from variegate.curation.duplicates.findings import DISTANCE, UNLIKE, find_duplicates

__all__ = ["DISTANCE", "UNLIKE", "find_duplicates"]
