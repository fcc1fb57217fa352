"""What samples are called in tables and lists."""

from __future__ import annotations

import pytest

from tests.data.tars import tar_bytes
from variegate.data.base import SampleRef
from variegate.data.filtered import name_key, sample_key
from variegate.data.opening import open_source


def test_by_index_and_in_shards_it_is_the_same_and_knows_no_folder(tmp_path):
    for folder in ("here", "there"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.tar").write_bytes(tar_bytes([("x/7.jpg", b"data")]))
    source, sharded = open_source(tmp_path / "here" / "a.tar"), open_source(tmp_path / "there" / "a.tar", stream=True)
    assert sample_key(source, 0) == name_key(sharded.name(0)) == "a.tar: x/7.jpg"
    (tmp_path / "photos" / "deep").mkdir(parents=True)
    (tmp_path / "photos" / "deep" / "a.png").touch()
    assert sample_key(open_source(tmp_path / "photos"), 0) == "deep/a.png"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (SampleRef("s3://user:pw@bucket/x/a.tar", "1.jpg"), "a.tar: 1.jpg"),
        (SampleRef("a.tar", "two\nlines\r.jpg"), "a.tar: two\\nlines\\r.jpg"),
        (SampleRef("a.tar", "a\tb.jpg"), "a.tar: a\\tb.jpg"),
        (SampleRef("a.tar", "\udcff.jpg"), "a.tar: \\udcff.jpg"),
        (SampleRef("images", "item 3"), "images: item 3"),
        (SampleRef("of/a/data/set.jpg"), "of/a/data/set.jpg"),
    ],
)
def test_every_name_is_a_line_of_utf_8(name, expected):
    key = name_key(name)

    assert key == expected
    assert key.encode()
