"""Descriptions, model files, manifests and requests are data: nothing that they name is opened, imported or fetched."""

from __future__ import annotations

import contextlib
import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import torch

import variegate as vg
from tests.hostile import POLICY, SCHEDULE, TRANSFORMS, hostile, injected
from tests.jobs.augment.samples import expansion, lay_photos
from tests.ops.examples import STICKER
from tests.recording_opens import ADDRESSES, MARK, RecordingFileSystem, recorded_opens
from variegate import transforms as T
from variegate.data.base import SourceError
from variegate.errors import DecodeError, PolicyError
from variegate.jobs.augment.replay import replay
from variegate.jobs.output.verify import verify
from variegate.learn import attribution
from variegate.learn.models import ModelError
from variegate.policies import load_policy


def test_every_registered_class_is_read() -> None:
    own = {name for name, cls in T.Transform.registry.items() if cls.__module__.startswith("variegate.")}
    assert own <= {type(part).__name__ for each in TRANSFORMS for part in parts(each)}


def parts(transform: Any) -> Iterator[Any]:
    from variegate.ops.description import walk

    return (part for part in walk(transform) if isinstance(part, T.Transform))


def test_opens_are_recorded(tmp_path: Path) -> None:
    """Else the tests below would pass whatever is done."""
    (tmp_path / MARK).write_bytes(b"")
    for touch in (
        lambda: (tmp_path / MARK).read_bytes(),
        lambda: vg.open_source(ADDRESSES[0]),
        lambda: __import__(MARK),
        lambda: vg.open_source(ADDRESSES[2], stream=False),
        lambda: T.Overlay(ADDRESSES[3]),
    ):
        with recorded_opens() as touched, contextlib.suppress(ImportError, ValueError, OSError):
            touch()
        assert touched
    assert RecordingFileSystem.protocol == "recording"


@pytest.mark.parametrize("read", [load_policy, T.from_dict])
def test_descriptions(read: Any) -> None:
    forms = itertools.cycle(ADDRESSES)
    described = [each.to_dict() for each in TRANSFORMS]
    some = [one for each in (*described, SCHEDULE, POLICY) for one in hostile(each, [next(forms)])]
    values = [[address, [address]] for address in ADDRESSES] + [[{"type": one}, {"png": one}] for one in ADDRESSES[:1]]
    with recorded_opens() as touched:
        for changed in itertools.chain(some, injected(*itertools.chain(*values))):
            with contextlib.suppress(PolicyError):
                read(changed)
    assert touched == []


@pytest.mark.parametrize("address", ADDRESSES[:4])
def test_paths_are_for_python_calls(address: str) -> None:
    described = T.Overlay(STICKER).to_dict()
    for value in (address, [address], [*described["images"], address], Path(address)):
        for changed in ({**described, "images": value}, {"type": "Compose", "transforms": [described, described]}):
            if changed["type"] == "Compose":
                changed["transforms"][1] = {**described, "images": value}
            with pytest.raises(PolicyError, match=r"images: got .*only a Python call, .*, opens files"):
                load_policy(changed)


def test_files(tmp_path: Path) -> None:
    path, forms = tmp_path / "policy.json", itertools.cycle(ADDRESSES)
    with recorded_opens() as touched:
        for described in [*injected([MARK]), SCHEDULE, POLICY]:
            path.write_text(json.dumps(described).replace(MARK, next(forms)))
            with contextlib.suppress(PolicyError):
                load_policy(path)
    assert touched == []


SAVED: dict[str, Any] = {"model": "wrn-10-1", "classes": ["a"], "weights": {}, "channels": 3}


def test_model_files(tmp_path: Path) -> None:
    path, scoring = tmp_path / "model.pt", {"type": "Compose", "transforms": [{"type": "Identity"}]}
    overlay = {"type": "Overlay", "images": [MARK]}
    for changed in [
        *({**SAVED, "scoring": scoring, key: address} for key in (*SAVED, "scoring") for address in ADDRESSES),
        *({**SAVED, "scoring": one} for one in hostile(overlay)),
        *({**SAVED, "scoring": scoring, "model": f"timm:{address}"} for address in ADDRESSES),
    ]:
        torch.save(changed, path)
        with recorded_opens() as touched, pytest.raises(ModelError):
            vg.load_model(path)
        assert touched == []


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("run")
    expansion(lay_photos(root / "photos"), root / "out", copies=1, policy="none").run()
    return root / "out"


def test_manifests(run: Path, tmp_path: Path) -> None:
    """Replays alone open the source in a manifest, if that is of this machine (SECURITY.md)."""
    table = pq.read_table(run / "manifest.parquet")
    metadata = table.schema.metadata
    settings = json.loads(metadata[b"variegate.settings"]) | {
        "exclude": "",
        "annotations": {"format": "coco", "file": ""},
    }
    for changed in hostile(settings, ADDRESSES[:3]):
        changed_metadata = {**metadata, b"variegate.settings": json.dumps(changed).encode()}
        pq.write_table(table.replace_schema_metadata(changed_metadata), tmp_path / "manifest.parquet")
        with recorded_opens() as touched:
            with pytest.raises((SourceError, DecodeError)) as caught:
                replay(tmp_path, 0)
            verify(tmp_path)
        assert touched == []
        assert "\n" not in str(caught.value)


@pytest.mark.filterwarnings("ignore:outputs of an earlier run", "ignore:.*has no record of what its source was")
def test_names_in_rows(run: Path, tmp_path: Path) -> None:
    table = pq.read_table(run / "manifest.parquet")
    (tmp_path / "variegate.json").write_bytes((run / "variegate.json").read_bytes())
    for row in hostile(table.slice(0, 1).to_pylist()[0], ADDRESSES[:4]):
        rows = [row, *table.slice(1).to_pylist()]
        pq.write_table(type(table).from_pylist(rows, table.schema), tmp_path / "manifest.parquet")
        with recorded_opens() as touched:
            verify(tmp_path)
            expansion(run.parent / "photos", tmp_path, copies=1, policy="none").run()
        assert touched == []


def test_a_run_on_an_address_is_told_how_to_name_it(run: Path) -> None:
    settings = {"source": ADDRESSES[0], "fingerprint": ""}
    with (
        recorded_opens() as touched,
        pytest.raises(SourceError, match=r"names the address .* as source; accepted"),
    ):
        attribution._open_images(run / "augmentation.json", settings, None)
    assert touched == []
