"""Raw shards with right checksums and any index: read, or refused in one line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.soak.mutating import check
from tests.soak.parsers.packs import PARSERS
from variegate.formats.raw import PLACES, DamagedRawError, index_bytes, read_index, read_tail, tail_bytes


def test_mutated_files_are_read_or_refused(tmp_path: Path) -> None:
    assert check(PARSERS[0], 0, range(150), tmp_path) > 20


@pytest.mark.parametrize("classes", [[1, 2], "ab", 7, None, ["\ud800"], [["a"]]])
def test_classes_are_text(classes: Any) -> None:
    line, _, rest = index_bytes(np.zeros(0, PLACES), [], "int", [], ["a"]).partition(b"\n")
    index = json.dumps({**json.loads(line), "classes": classes}).encode() + b"\n" + rest
    _, _, digest = read_tail(tail_bytes(64, index), 64 + len(index) + 64)
    with pytest.raises(
        DamagedRawError, match=r"its index makes no sense \(classes: got .*; accepted: a sequence of names"
    ):
        read_index(index, digest, 64)


@pytest.mark.parametrize("name", ["images", "width"])
@pytest.mark.parametrize("value", [-1, 10**30, 1 << 63, 1.5, True, None])
def test_counts_are_bounded_by_the_index(name: str, value: Any) -> None:
    line, _, rest = index_bytes(np.zeros(0, PLACES), [], "int", [], ["a"]).partition(b"\n")
    index = json.dumps({**json.loads(line), name: value}).encode() + b"\n" + rest
    _, _, digest = read_tail(tail_bytes(64, index), 64 + len(index) + 64)
    with pytest.raises(DamagedRawError, match=f"its index makes no sense \\({name}: got .*; accepted: 0 to"):
        read_index(index, digest, 64)
