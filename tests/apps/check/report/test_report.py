"""The report of a check: one file that shows all kinds of findings, escapes what it shows, and stays small."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tests.apps.check.report.made import EVIL, Photos, Result, rows_of, small_result
from variegate.apps.check.findings import SCHEMA, DataFinding
from variegate.apps.check.judging import Thresholds
from variegate.apps.check.report import (
    MOST_GROUPS,
    MOST_IMAGES,
    MOST_MEMBERS,
    MOST_ROWS,
    images_to_drop,
    one_of_each_pair,
    shown_kinds,
    write_report,
)
from variegate.apps.check.report.figures import MOST_BYTES, SIDE, thumbnail, thumbnails
from variegate.data.samples import samples_of
from variegate.io.durable import WriteError


class _Elements(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.found if name == tag]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("report") / "report.html"
    write_report(path, small_result())
    assert [one.name for one in path.parent.iterdir()] == ["report.html"]  # nothing temporary is left
    return path.read_text("utf-8")


def test_every_kind_of_finding_has_its_section(page: str) -> None:
    sections = [attributes.get("id") for attributes in _Elements(page).of("section")]
    wanted = ["summary", "corrupt", "leaks", "contradictions", "dark", "duplicates", "imbalance"]
    assert [name for name in sections if name] == [*wanted, "classes", "measures", "table"]


def test_names_are_text_whatever_they_are(page: str) -> None:
    elements = _Elements(page)
    assert EVIL not in page
    assert len(elements.of("script")) == 2  # the table's rows, and the page's own
    rows = re.search(r"<script[^>]*application/json[^>]*>(.*?)</script>", page, re.DOTALL)
    assert rows is not None
    assert not set("<>&") & set(rows[1]), "no name ends the element around it, as </script would with a blank behind it"
    assert EVIL in "".join(elements.texts)
    assert not elements.of("b")
    assert "class <cats> has 10 times as many" in "".join(elements.texts)


def test_nothing_outside_the_file_is_named(page: str) -> None:
    elements = _Elements(page)
    for _, attributes in elements.found:
        for name in ("src", "href", "action", "srcset", "data", "poster"):
            value = attributes.get(name) or "#"
            assert value.startswith(("#", "data:image/")), value
        assert "style" not in attributes  # the policy would not have it
        assert not [name for name in attributes if name.startswith("on")]
    assert "url(" not in page
    assert "@import" not in page


def test_why_a_picture_cannot_be_made_is_said_once(page: str) -> None:
    corrupt = re.search(r'<section id="corrupt".*?</section>', page, re.DOTALL)
    assert corrupt is not None
    assert corrupt[0].count("is &lt;b&gt;broken&lt;/b&gt;") == 1
    assert "no picture" in corrupt[0]
    assert "<img" not in corrupt[0]


def test_it_says_what_it_shows_of_how_many(page: str) -> None:
    assert f"Shown are {MOST_IMAGES} of 39 images." in page
    assert f"20 images, {MOST_MEMBERS} shown" in page


def test_leaks_stand_side_by_side(page: str) -> None:
    leaks = re.search(r'<section id="leaks".*?</section>\s*</div>', page, re.DOTALL)
    assert leaks is not None
    train, test = leaks[0].split('class="side"')[1:]
    assert train.count("<img") == 2
    assert test.count("<img") == 1
    assert "dogs/<wbr>test 2.jpg" in test


def test_equal_results_give_equal_bytes(page: str, tmp_path: Path) -> None:
    write_report(tmp_path / "again.html", small_result())
    assert (tmp_path / "again.html").read_text("utf-8") == page


def test_only_images_that_are_shown_are_read_and_each_once(tmp_path: Path) -> None:
    result = small_result()
    write_report(tmp_path / "report.html", result)
    read = result.photos["train"].read_indices
    assert len(read) == len(set(read)) < 40
    assert result.photos["test"].read_indices == [2]


def test_without_findings_it_says_so(tmp_path: Path) -> None:
    result = small_result()
    result.findings = []
    write_report(tmp_path / "report.html", result)
    page = (tmp_path / "report.html").read_text("utf-8")
    assert "Nothing was found" in page
    assert 'id="findings"' not in page


def test_a_table_of_nothing_but_errors(tmp_path: Path) -> None:
    source = Photos(["a.jpg"], broken=[0])
    row = dict.fromkeys(SCHEMA.names) | {"split": "train", "index": 0, "file": "a.jpg", "label": -1, "error": "broken"}
    finding = DataFinding("train", 0, "a.jpg", "corrupt", None, None, "broken")
    result = Result(pa.Table.from_pylist([row], SCHEMA), [finding], {"train": source}, None, None)
    write_report(tmp_path / "report.html", result)
    assert "a.jpg" in (tmp_path / "report.html").read_text("utf-8")


def test_where_it_cannot_be_written_the_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(WriteError, match=r"file/report\.html"):
        write_report(tmp_path / "file" / "report.html", small_result())


def test_very_many_findings_make_no_large_file(tmp_path: Path) -> None:
    source = Photos([f"class/{n:06d}.jpg" for n in range(30_000)])
    findings = [DataFinding("train", n, source.names[n], "dark", n / 1e5, None, "why " * 8) for n in range(29_990)]
    findings += [DataFinding("train", n, source.names[n], "duplicates", 0.0, n // 10, "twin") for n in range(25_000)]
    findings += [DataFinding("train", 7, source.names[7], "blank", 0.0, None, "one colour")]
    table = pa.Table.from_pylist(rows_of("train", source), SCHEMA)
    write_report(tmp_path / "report.html", Result(table, findings, {"train": source}))
    page = (tmp_path / "report.html").read_text("utf-8")
    assert len(page) < 8 << 20
    assert f"Shown are the {MOST_ROWS:,} findings of the rarest kinds" in page
    assert page.count("<img") == MOST_IMAGES + MOST_GROUPS * MOST_MEMBERS + 1


def test_thresholds_stand_in_their_histograms(tmp_path: Path) -> None:
    result = small_result()
    result.thresholds = Thresholds(0.25, 0.75, 0.25, 0.01, 20.0, float("inf"), 4.0, 10.0, 0.5)
    write_report(tmp_path / "report.html", result)
    charts = re.findall(r"<strong>(\w+).*?</figure>", (tmp_path / "report.html").read_text("utf-8"), re.DOTALL)
    assert charts == ["Size", "Aspect", "File", "Brightness", "Contrast", "Sharpness"]
    page = (tmp_path / "report.html").read_text("utf-8")
    sizes = re.search(r"<strong>Size.*?</figure>", page, re.DOTALL)
    assert sizes is not None
    assert (
        re.findall(r'<text x="[\d.]+" y="104"[^>]*>([^<]*)</text>', sizes[0])[0] == "400 px"
    )  # the axis reaches there
    assert re.findall(r'<text class="threshold"[^>]*>([^<]*)</text>', page) == [
        "Tiny 400 px",
        "Extreme aspect 4",
        "Low contrast 0.25",
        "Blurred 0.01",
    ]


def test_a_pair_is_a_row_and_the_image_that_clean_keeps_has_none() -> None:
    def found(index: int, kind: str, group: int | None, split: str = "train") -> DataFinding:
        return DataFinding(split, index, f"{index}.jpg", kind, 0.0, group, "")

    findings = [found(0, "duplicates", 1), found(1, "duplicates", 1), found(2, "contradictions", 2)]
    findings += [
        found(3, "contradictions", 2),
        found(4, "leaks", 3),
        found(0, "leaks", 3, "test"),
        found(5, "dark", None),
    ]
    table = pa.Table.from_pylist(rows_of("train", Photos([f"{n}.jpg" for n in range(6)])), SCHEMA)
    droppable = images_to_drop(findings, table)
    # Of equal pixels, the larger file stays.
    assert droppable == {("duplicates", 0), ("contradictions", 2), ("contradictions", 3), ("leaks", 4), ("dark", 5)}
    rows = [(one.finding, one.index) for one in one_of_each_pair(findings, droppable)]
    assert rows == [("duplicates", 0), ("contradictions", 3), ("leaks", 4), ("dark", 5)]


def test_the_worst_come_first() -> None:
    findings = [DataFinding("train", n, "a", "dark", (7 * n % 10) / 10, None, "") for n in range(10)]
    findings += [DataFinding("train", n, "a", "bright", (7 * n % 10) / 10, None, "") for n in range(10)]
    dark, bright = shown_kinds(findings)
    tenths = [n / 10 for n in range(10)]
    assert [one.measure for one in dark.images] == tenths
    assert [one.measure for one in bright.images] == tenths[::-1]


@pytest.mark.parametrize(
    ("shape", "size"), [((600, 300, 3), (112, 224)), ((9, 2000, 3), (224, 1)), ((20, 30, 1), (30, 20))]
)
def test_thumbnails_keep_their_shape(shape: tuple[int, ...], size: tuple[int, int]) -> None:
    made = thumbnail(np.zeros(shape, np.uint8), {})
    assert (made.width, made.height) == size
    assert made.uri is not None
    assert made.uri.startswith("data:image/png" if max(size) * 2 <= SIDE else "data:image/jpeg")


def test_pictures_stop_where_the_file_would_become_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("variegate.apps.check.report.figures.MOST_BYTES", 3000)
    made = thumbnails([("train", n) for n in range(20)], {"train": samples_of(Photos(["x"] * 20))})
    assert 0 < sum(len(one.uri or "") for one in made.values()) <= 3000
    assert "to keep this file small" in made["train", 19].error
    assert MOST_BYTES < 20 << 20
