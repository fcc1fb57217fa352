"""What a packing keeps beside its shards, against its manifest: statistics to the digit, the index by checksum."""

from __future__ import annotations

import json
from collections.abc import Iterator

from variegate.formats.base import SourceError
from variegate.formats.packed import INDEX_NAME, STATISTICS_NAME, statistics_bytes
from variegate.formats.storage import Storage
from variegate.jobs.output.manifest import Manifest
from variegate.jobs.output.packed import COLUMNS, totals_of
from variegate.jobs.output.verify_outputs import Problem


def packed_beside(storage: Storage, manifest: Manifest, expected: set[str]) -> Iterator[Problem]:
    """The names are added to ``expected``. Raises SourceError for a manifest whose rows are not those of a packing."""
    try:
        found = totals_of(manifest.columns(*COLUMNS))
    except (ValueError, KeyError, TypeError) as error:
        raise SourceError(f"damaged: the sums in it cannot be read ({error})") from None
    if not found.shards:
        return
    has_index = manifest.settings.get("layout") != "raw"
    names = [STATISTICS_NAME, *([INDEX_NAME] if has_index else [])]
    expected.update(names)
    missing = [name for name in names if not storage.exists(name)]
    yield from (Problem(name, "missing", "missing") for name in missing)
    if STATISTICS_NAME in missing:
        return
    said = storage.read(STATISTICS_NAME)
    try:
        index = json.loads(said)["index"]
        is_right = said == statistics_bytes(found.sums, index) and (index is not None) == has_index
    except (ValueError, KeyError, TypeError):
        is_right = False
    if not is_right:
        yield Problem(STATISTICS_NAME, "not what the manifest's sums come to", "damaged")
    elif has_index and INDEX_NAME not in missing and storage.sha256(INDEX_NAME) != index["sha256"]:
        yield Problem(INDEX_NAME, f"its checksum is not that in {STATISTICS_NAME}", "damaged")
