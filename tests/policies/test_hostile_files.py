"""Whatever a policy's file or dict holds: it loads, or one PolicyError of one line says soon why not."""

from __future__ import annotations

import json
import os
import re
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import variegate as vg
from variegate import transforms as T
from variegate.errors import PolicyError
from variegate.policies import load_policy

DEEP = 100_000
LAUGHS = "a0: &a0 [1, 2, 3, 4, 5, 6, 7, 8, 9]\n" + "".join(
    f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 30)
)
MERGES = "a0: &a0 {x0: 1, y0: 1}\n" + "".join(
    f"a{i}: &a{i} {{<<: [{', '.join([f'*a{i - 1}'] * 9)}]}}\n" for i in range(1, 30)
)
FILES: dict[str, tuple[str, bytes, str]] = {
    "brackets": ("a.json", b"[" * DEEP, r"a\.json: got 'lists or objects without end'"),
    "closed brackets": ("a.json", b"[" * 300 + b"]" * 300, r"a\.json: got 'a description nested more deeply, or"),
    "objects": (
        "a.json",
        b'{"type": "Compose", "transforms": [' * DEEP,
        r"a\.json: got 'lists or objects without end'",
    ),
    "brackets in YAML": ("a.yaml", b"[" * DEEP, r"a\.yaml: line 1 column 81: got 'more than 80 levels of nesting'"),
    "steps in YAML": ("a.yaml", b"- " * DEEP, r"a\.yaml: line 1 column 161: got 'more than 80 levels of nesting'"),
    "a list that holds itself": (
        "a.yaml",
        b"&a [*a]",
        r"a\.yaml: got 'a description nested more deeply, or without end'",
    ),
    "a transform that holds itself": (
        "a.yaml",
        b"&a {type: Compose, transforms: [*a]}",
        r"a\.yaml: got 'a description nested more deeply, or without end'; accepted: at most \d+ levels of lists",
    ),
    "a key that holds itself": ("a.yaml", b"&a {*a : 1}", r"a\.yaml: line 1 column 1: got 'found unhashable key'"),
    "billion laughs": (
        "a.yaml",
        LAUGHS.encode(),
        r"a\.yaml: got 'a larger description'; accepted: at most 1,000,000 val",
    ),
    "billion merges": ("a.yaml", MERGES.encode(), r"a\.yaml: line 2 column 10: got 'a merge key \(<<\)'"),
    "many values in YAML": ("a.yaml", b"[" + b"1," * 60_000 + b"1]", r"a\.yaml: line 1 .* 'more than 50,000 values'"),
    "many transforms": (
        "a.json",
        b'{"type": "Compose", "transforms": [' + b'{"type": "Invert"},' * 20_000 + b'{"type": "Invert"}]}',
        r"a\.json: transforms: got 20,002 transforms in all; accepted: at most 10,000",
    ),
    "an empty file": ("a.yaml", b"", r"a\.yaml: got None; accepted: an object with a \"type\""),
    "UTF-16": ("a.json", '{"type": "Invert"}'.encode("utf-16"), r"a\.json: got b'\\xff.*'; accepted: text in UTF-8"),
    "UTF-16 in YAML": ("a.yaml", "type: Invert".encode("utf-16"), r"a\.yaml: got b'.*'; accepted: text in UTF-8"),
    "zeros": ("a.json", b"\0" * 1000, r"a\.json: line 1 column 1: got .*; accepted: JSON"),
    "zeros in YAML": ("a.yaml", b"\0" * 1000, r"a\.yaml: got .*; accepted: YAML"),
    "noise": ("a.yaml", np.random.default_rng(0).bytes(5000), r"a\.yaml: got b'.*'; accepted: text in UTF-8"),
    "NaN": ("a.json", b'{"type": "Rotate", "degrees": NaN}', r"a\.json: got 'NaN'; accepted: numbers"),
    "infinity": ("a.json", b'{"type": "Rotate", "degrees": 1e999}', r"a\.json: degrees: got inf; accepted: a number"),
    "NaN in YAML": ("a.yaml", b"{type: Rotate, degrees: .nan}", r"a\.yaml: degrees: got nan; accepted: a number"),
    "a number of 400 digits": (
        "a.json",
        b'{"type": "Rotate", "degrees": ' + b"9" * 400 + b"}",
        r"a\.json: degrees: got an integer of 1,329 bits; accepted: a number",
    ),
    "a number of 5,000 digits": (
        "a.json",
        b'{"type": "Rotate", "degrees": ' + b"9" * 5000 + b"}",
        r"a\.json: got .*limit",
    ),
    "a number of 5,000 digits in YAML": (
        "a.yaml",
        b"degrees: " + b"9" * 5000,
        r"a\.yaml: line 1 column 10: got .*limit",
    ),
    "the 31st of February": (
        "a.yaml",
        b"type: 2001-02-31",
        r"a\.yaml: line 1 column 7: got .*(day is out of range for|day 31 must be in range)",
    ),
    "a date that is none": (
        "a.yaml",
        b"type: !!timestamp 1",
        r"a\.yaml: line 1 column 7: got .*'1', which is no timest",
    ),
    "a truth that is none": ("a.yaml", b"type: !!bool 1", r"a\.yaml: line 1 column 7: got .*'1', which is no bool"),
    "an integer of nothing": ("a.yaml", b"type: !!int ''", r"a\.yaml: line 1 column 7: got .*'', which is no int"),
    "a letter beyond Unicode": ("a.yaml", b'type: "\\UFFFFFFFF"', r"a\.yaml: (line 1 .*)?got .*; accepted: YAML"),
    "a list as an operation of a schedule": (
        "a.yaml",
        b"{format: variegate-schedule/1, segments: [{epochs: 1, policy: [[[Rotate], 0.5, 3]]}]}",
        r"a\.yaml: segments\[0\]\.policy\[0\]\[0\]: got \['Rotate'\]; accepted: an operation of the space pba",
    ),
    "a list as a space": (
        "a.yaml",
        b"{format: variegate-schedule/1, space: [pba], segments: []}",
        r"a\.yaml: space: got \['pba'\]; accepted: one of",
    ),
    "a key twice": (
        "a.json",
        b'{"type": "Rotate", "degrees": 1, "degrees": 90}',
        r"a\.json: got \"the key 'degrees' twice in one object\"; accepted: every key once",
    ),
    "a key twice in YAML": (
        "a.yaml",
        b"type: Rotate\ndegrees: 1\ndegrees: 90\n",
        r"a\.yaml: line 3 column 1: got \"the key 'degrees' twice in one object\"",
    ),
    "keys that are no strings": (
        "a.yaml",
        b"{type: Rotate, 3: 4, x: 1}",
        r"a\.yaml: 3: got 3; accepted: a name of an arg",
    ),
    "keys of a schedule": (
        "a.yaml",
        b"{format: variegate-schedule/1, 3: 4, x: 1}",
        r"a\.yaml: 3: got 3; accepted: a name of an argument, which is a string",
    ),
    "a long key": ("a.json", b'{"type": "Rotate", "' + b"k" * 100_000 + b'": 1}', r"a\.json: kkk.* \.\.\.: got 1; acc"),
    "lines in a key": ("a.json", b'{"type": "Rotate", "a\\nb": 1}', r"a\.json: a b: got 1; accepted: arguments of Rot"),
    "a long value": (
        "a.json",
        b'{"type": "' + b"k" * 100_000 + b'"}',
        r"a\.json: type: got 'k+.*'; accepted: a class of",
    ),
    "Python": (
        "a.yaml",
        b"!!python/object/apply:os.system ['true']",
        r"a\.yaml: line 1 column 1: got .could not",
    ),
    "many operations": (
        "a.json",
        b'{"type": "RandAugment", "num_ops": 1000000}',
        r"num_ops: got 1000000; .* from 0 to 64",
    ),
}


def _load(path: Path) -> str:
    """The message; one line, of a length that a terminal shows, and soon."""
    start = time.process_time()
    with pytest.raises(PolicyError) as caught:
        load_policy(path)
    assert time.process_time() - start < 10  # a second or two at most
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 3000
    return str(caught.value)


@pytest.mark.parametrize("case", FILES)
def test_one_line_says_what_is_wrong(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name, data, message = FILES[case]
    monkeypatch.chdir(tmp_path)
    Path(name).write_bytes(data)
    assert re.search(message, _load(Path(name)))


@pytest.mark.parametrize("suffix", [".json", ".yaml"])
def test_a_file_of_a_gigabyte_is_not_read(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"large{suffix}"
    with open(path, "wb") as file:
        file.truncate(1 << 30)  # a hole: it takes no room
    assert "bytes'; accepted: policies of at most" in _load(path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes are POSIX")
def test_nothing_but_files_is_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.json")
    (tmp_path / "folder.yaml").mkdir()
    (tmp_path / "device.json").symlink_to("/dev/zero")
    for name, kind in (("pipe.json", "a named pipe (FIFO)"), ("device.json", "a device")):
        assert _load(tmp_path / name).endswith(f"{name}: got {kind!r}; accepted: a regular file")
    assert "folder.yaml: got " in _load(tmp_path / "folder.yaml")


def test_what_is_only_unusual_loads(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(b'\xef\xbb\xbf{"type": "Rotate", "degrees": 3}')  # the mark that Windows editors begin a file with
    assert load_policy(path) == T.Rotate(3)
    path = tmp_path / "a.yaml"
    path.write_text("type: Compose\ntransforms: [&a {type: Rotate, degrees: 3}, *a]\n")
    assert load_policy(path) == T.Compose([T.Rotate(3), T.Rotate(3)])
    path.write_text("type: Cond\nby: label\ncases: {0: {type: Invert}, 7: {type: Equalize}}\n")
    assert load_policy(path) == T.Cond("label", {0: T.Invert(), 7: T.Equalize()})
    many = T.Cond("label", {i: [T.Rotate(3), T.RandAugment(), T.Invert()] for i in range(1000)})  # type: ignore[misc]
    assert T.from_dict(json.loads(json.dumps(many.to_dict()))) == many


def _cyclic_list() -> Any:
    held: list[Any] = []
    held.append(held)
    return held


def _cyclic_transform() -> Any:
    described: dict[str, Any] = {"type": "Compose"}
    described["transforms"] = [described]
    return described


def _nested(levels: int) -> Any:
    described: Any = {"type": "Invert"}
    for _ in range(levels):
        described = {"type": "Compose", "transforms": [described]}
    return described


@pytest.mark.parametrize("load", [T.from_dict, load_policy])
@pytest.mark.parametrize(
    ("described", "message"),
    [
        (_cyclic_transform(), "got 'a description nested more deeply, or without end'"),
        ({"type": "Rotate", "degrees": _cyclic_list()}, "got 'a description nested more deeply, or without end'"),
        ({"type": "RandAugment", "operations": _cyclic_list()}, "nested more deeply, or without end"),
        ({"type": "AutoAugment", "policy": _cyclic_list()}, "nested more deeply, or without end"),
        ({"type": "PBA", "schedule": _cyclic_transform()}, "nested more deeply, or without end"),
        ({"format": "variegate-policy/1", "policy": _cyclic_list()}, "nested more deeply, or without end"),
        ({"format": "variegate-schedule/1", "segments": _cyclic_list()}, "nested more deeply, or without end"),
        (_nested(35), r"transforms: got 33 transforms within one another; accepted: at most 32"),
        (_nested(5000), "nested more deeply, or without end"),
        ({"type": "Rotate", 3: 4, "degrees": 1}, r"3: got 3; accepted: a name of an argument, which is a string"),
        ({("a", 1): 4, "type": "Rotate"}, r"\('a', 1\): got \('a', 1\); accepted: a name of an argument"),
        ({"type": ["Rotate"]}, r"type: got \['Rotate'\]; accepted: a class of"),
        ({"type": "Transform"}, r"type: got 'Transform'; accepted: a class of"),
        ({"type": "Rotate", "degrees": np.arange(10**6)}, r"degrees: got array\(\[.*; accepted: a number"),
        ({"type": "Rotate", "degrees": object()}, r"degrees: got <object object at .*>; accepted: a number"),
    ],
)
def test_dicts_are_refused_alike(load: Any, described: Any, message: str) -> None:
    with pytest.raises(PolicyError, match=message) as caught:
        load(described)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 3000


def test_what_is_read_can_be_used() -> None:
    """The deepest and the largest trees that are taken."""
    deep = T.from_dict(_nested(31))
    wide = T.Compose([T.RandomHorizontalFlip()] * 2000)
    for transform in (deep, wide):
        assert vg.Augmenter(transform)([np.zeros((4, 5, 3), np.uint8)])[0].shape == (3, 4, 5)
        assert T.from_dict(transform.to_dict()) == transform
        assert repr(transform)
