"""Conclusions from made-up rates: each bottleneck, each advice, and the verdict on a model."""

from __future__ import annotations

import json

import pytest

from tests.apps.doctor.measured import measurements
from variegate.apps.doctor import Advice, Diagnosis, Measurements, advise
from variegate.apps.doctor.advise import ALL_CORES, AUGMENT, DECODE, DECODE_AUGMENT, ON_GPU, READ, SMALLER, WHOLE


def advice(found: Diagnosis, kind: str) -> Advice:
    return next(one for one in found.advice if one.kind == kind)


def kinds(found: Measurements) -> list[str]:
    return [one.kind for one in advise(found).advice]


def test_decoding_is_the_bottleneck_and_no_change_helps() -> None:
    found = advise(measurements())
    assert found.bottleneck == "decode"
    assert found.advice == ()
    assert found.summary == "The loader delivers 790 images/s. Decoding is the bottleneck: it takes 80% of CPU time."
    assert str(found).endswith("No change is expected to gain 5% or more.")


def test_augmentation_is_the_bottleneck() -> None:
    found = advise(measurements({DECODE: 8000.0, AUGMENT: 1000.0, DECODE_AUGMENT: 889.0, WHOLE: 880.0}))
    assert found.bottleneck == "augment"
    assert "Augmentation is the bottleneck: it takes 89% of CPU time" in found.summary
    pixels = advise(measurements({DECODE: None, DECODE_AUGMENT: None, WHOLE: 3900.0}))
    assert pixels.bottleneck == "augment"
    assert "it takes 100% of CPU time" in pixels.summary


def test_a_loader_slower_than_its_stages() -> None:
    found = advise(measurements({WHOLE: 400.0}))
    assert found.bottleneck == "loader"
    assert "Its stages alone are faster" in found.summary


def test_idle_cores_gain_what_was_measured_with_all_of_them() -> None:
    threads = advice(
        advise(measurements({WHOLE: 395.0, DECODE_AUGMENT: 400.0, ALL_CORES: 770.0}, threads=2)), "threads"
    )
    assert threads.change == "num_threads=4: use all cores"
    assert "2 of 4 cores" in threads.reason
    assert threads.gain == pytest.approx(770 / 395)
    assert threads.images_per_second == 770
    assert kinds(measurements({ALL_CORES: 800.0}, threads=3)) == [], "less than 5 % is noise"


def test_decoded_images_that_fit_in_memory_are_worth_a_cache() -> None:
    cache = advice(advise(measurements(samples=50_000)), "cache")
    assert cache.change == 'cache="host": decode once'
    assert cache.gain == pytest.approx(4000 / 790)
    assert not cache.is_limit
    for number in ("30 GB of decoded images fit", "64 GB of free memory", "4,000 images/s"):
        assert number in cache.reason
    assert kinds(measurements()) == [], "600 GB do not fit"


def test_large_images_are_worth_packing() -> None:
    pack = advice(advise(measurements({SMALLER: 2500.0}, smaller_side=256)), "pack")
    assert pack.change == "store smaller images: variegate pack SRC DST --size 256"
    assert pack.gain == pytest.approx(2500 / 790)
    for number in ("500 x 400", "2,500 images/s"):
        assert number in pack.reason
    slow = advice(advise(measurements({SMALLER: 2500.0, READ: 1600.0}, smaller_side=256)), "pack")
    assert slow.images_per_second == 1600, "no more than is read"


def test_small_files_of_a_slow_disk_are_worth_packing() -> None:
    slow: dict[str, float | None] = {READ: 300.0, WHOLE: 290.0}
    found = advise(measurements(slow))
    assert found.bottleneck == "read"
    assert "Reading is the bottleneck, at 300 images/s" in found.summary
    pack = advice(found, "pack")
    assert "--keep-jpeg" in pack.change
    assert pack.gain == pytest.approx(800 / 290)
    assert pack.is_limit
    assert "at most 2.8x, 800 images/s" in str(found)
    assert kinds(measurements(slow, has_single_files=False)) == ["storage"]
    assert kinds(measurements(slow, file_bytes=3e6)) == ["storage"]
    assert "a local disk" in advice(advise(measurements(slow, file_bytes=3e6, is_remote=True)), "storage").change


def test_a_gpu_that_is_not_used() -> None:
    gpu = advice(advise(measurements({ON_GPU: 1000.0})), "gpu")
    assert gpu.change.startswith('device="cuda"')
    assert gpu.gain == pytest.approx(1000 / 790)
    assert "1,000 images/s" in gpu.reason


def test_on_a_gpu_stages_run_beside_each_other() -> None:
    rates: dict[str, float | None] = {AUGMENT: 5000.0, DECODE_AUGMENT: 990.0, WHOLE: 980.0}
    found = advise(measurements(rates, device="cuda:0"))
    assert found.bottleneck == "decode"
    assert "Decoding is the bottleneck, at 1,000 images/s" in found.summary
    gpu = advice(found, "gpu")
    assert "variegate[gpu]" in gpu.change
    assert gpu.is_limit
    assert gpu.gain == pytest.approx(5000 / 980)
    assert kinds(measurements(rates | {DECODE: None}, device="cuda:0", decodes_on_gpu=True)) == []


def test_the_largest_gain_comes_first() -> None:
    found = advise(measurements({ON_GPU: 1000.0, ALL_CORES: 1500.0}, samples=50_000, threads=2))
    assert [one.kind for one in found.advice] == ["cache", "threads", "gpu"]
    lines = str(found).splitlines()
    assert [line[:3] for line in lines if line[:1].isdigit()] == ["1. ", "2. ", "3. "]


def test_whether_the_loader_keeps_up_with_a_model() -> None:
    assert advise(measurements()).keeps_up is None
    fast = advise(measurements(), consume=500)
    assert fast.keeps_up
    assert "the loader keeps up, with 58% to spare" in fast.summary
    slow = advise(measurements(samples=50_000), consume=1580)
    assert slow.keeps_up is False
    assert "it waits for data 50% of the time" in slow.summary
    assert "enough for the model" in str(slow)


def test_a_diagnosis_is_json() -> None:
    found = json.loads(json.dumps(advise(measurements(samples=50_000), 1000).to_dict()))
    assert (found["bottleneck"], found["keeps_up"]) == ("decode", False)
    assert found["advice"][0]["kind"] == "cache"
    assert found["measurements"]["rates"]["decode"]["images_per_second"] == 1000


def test_unreadable_files_do_not_count_as_measured() -> None:
    assert "1,000 held in memory, 3 unreadable skipped" in str(advise(measurements(bad=3)))
