"""Which images go, and which of a group stays."""

from __future__ import annotations

from typing import Any

import pytest

from tests.apps.check.cleaning.tables import rows_of, write_table
from tests.images import photo
from variegate.apps.check.findings import FINDING_KINDS
from variegate.apps.check.selection import Found, choose, count_by_kind, parse_drop, read_found
from variegate.data.objects.arrays import open_arrays


@pytest.fixture
def found_in(tmp_path):
    def make(findings, sizes=None, test=None) -> Found:
        source = open_arrays([photo(8, 8)] * 8)
        rows = rows_of(source, findings, sizes=sizes)
        if test is not None:
            rows += rows_of(source, test, "test")
        others: Any = {} if test is None else {"test": source}
        return read_found(write_table(tmp_path / "f.parquet", rows, train=source, **others), "train")

    return make


def gone(found: Found, *drop: str) -> list[int]:
    return [one.index for one in choose(found, drop)]


def test_only_what_is_asked_for_goes(found_in):
    found = found_in({1: [("corrupt", None)], 2: [("dark", None), ("blurred", None)], 3: [("tiny", None)]})

    assert gone(found, "corrupt", "blurred") == [1, 2]
    assert count_by_kind(choose(found, ["dark", "blurred"])) == {"dark": 1, "blurred": 1}
    assert found.counts() == {"corrupt": 1, "tiny": 1, "dark": 1, "blurred": 1}


@pytest.mark.parametrize(
    ("sizes", "stays"), [({}, 2), ({4: (9, 9)}, 4), ({5: (8, 9), 4: (9, 8)}, 4)], ids=["first", "largest", "of equals"]
)
@pytest.mark.parametrize("kind", ["duplicates", "near_duplicates"])
def test_of_a_group_of_duplicates_the_largest_stays_then_the_first(found_in, kind, sizes, stays):
    found = found_in({index: [(kind, 0)] for index in (2, 4, 5)}, sizes)

    assert gone(found, kind) == [index for index in (2, 4, 5) if index != stays]
    assert {one.kept for one in choose(found, [kind])} == {f"images: item {stays}"}


def test_of_equal_pixels_that_with_more_bytes_stays(found_in):
    found = found_in({index: [("duplicates", 0)] for index in (2, 4)})
    found.sizes[4] += 1

    assert gone(found, "duplicates") == [2]


def test_one_stays_of_a_group_that_loses_its_best_to_another_kind(found_in):
    found = found_in({1: [("duplicates", 0), ("dark", None)], 2: [("duplicates", 0)], 3: [("duplicates", 0)]})

    assert gone(found, "duplicates") == [2, 3]
    assert gone(found, "dark", "duplicates") == [1, 3]


def test_of_exact_and_near_duplicates_one_stays(found_in):
    near = [("near_duplicates", 7)]
    found = found_in({1: near, 2: [("duplicates", 0), *near], 3: [("duplicates", 0), *near]}, {2: (9, 9), 3: (9, 9)})

    assert gone(found, "duplicates", "near_duplicates") == [1, 3]


def test_groups_of_two_kinds_with_one_number_are_two(found_in):
    found = found_in({0: [("duplicates", 0)], 1: [("duplicates", 0)], 2: [("near_duplicates", 0)]})

    assert gone(found, "duplicates", "near_duplicates") == [1]


def test_all_of_a_contradiction_go(found_in):
    assert gone(found_in({1: [("contradictions", 0)], 6: [("contradictions", 0)]}), "contradictions") == [1, 6]


def test_what_is_found_in_the_other_split_counts_nothing(found_in):
    found = found_in({1: [("leaks", 3), ("duplicates", 0)]}, test={5: [("duplicates", 0)], 6: [("corrupt", None)]})

    assert gone(found, "leaks", "corrupt") == [1]
    assert gone(found, "duplicates") == []


def test_names_are_understood_in_the_singular_and_with_hyphens():
    assert parse_drop("leak, Near-Duplicate,corrupt") == ("corrupt", "near_duplicates", "leaks")
    assert parse_drop(["lone_file"]) == ("lone_files",)
    assert parse_drop("all") == tuple(FINDING_KINDS)


@pytest.mark.parametrize("text", ["corupt", "corrupt,,leaks", "corrupt;leaks"])
def test_other_names_are_refused_with_those_that_there_are(text):
    with pytest.raises(ValueError, match=r"drop: got .*accepted: corrupt, .*label_errors, marked, or all"):
        parse_drop(text)


def test_a_kind_that_is_misspelt_is_asked_about() -> None:
    with pytest.raises(
        ValueError, match=r"drop: got 'near-duplicats'; accepted: .*; did you mean 'near_duplicates'\?$"
    ):
        parse_drop("corrupt,near-duplicats")
