"""What is concluded from numbers: one kind of bottleneck after another, on made-up measurements."""

from __future__ import annotations

import json

import pytest

from tests.apps.diagnose.made_up import measurements, rate
from variegate.apps.diagnose import Diagnosis, Finding, Measurements, advise
from variegate.apps.diagnose import measurements as m
from variegate.apps.diagnose.advise import consumed
from variegate.apps.diagnose.report import finding_lines


def finding(found: Diagnosis, kind: str) -> Finding:
    return next(one for one in found.findings if one.kind == kind)


def kinds(data: Measurements) -> list[str]:
    return [one.kind for one in advise(data).findings]


def test_decoding_is_the_wall_and_nothing_can_be_done() -> None:
    found = advise(measurements())
    assert found.bottleneck == "decode"
    assert found.findings == ()
    assert found.summary == "The loader delivers 790 images/s. Decoding is the bottleneck: it takes 80% of CPU time."
    assert "No change is expected" in finding_lines(found)[-1]


def test_pixels_that_fit_in_memory_are_worth_a_cache() -> None:
    found = advise(measurements(samples=50_000))
    cache = finding(found, "cache")
    # 1.25 ms for decoding and augmenting become 0.25 ms.
    assert cache.gain == pytest.approx(5.0)
    assert cache.images_per_second == pytest.approx(5 * 790)
    assert 'cache="host"' in cache.advice
    for number in ("50,000 images", "600 kB", "30 GB", "64 GB", "4,000 images/s"):
        assert number in cache.why
    assert found.findings[0] is cache


def test_pixels_that_fit_only_when_reduced() -> None:
    alternatives = {m.DECODE_REDUCED: 2500.0, m.AUGMENT_REDUCED: 5000.0}
    data = measurements(alternatives, samples=100_000, reduced_side=256, out_side=224)
    cache = finding(advise(data), "cache")
    # 60 GB are more than half of 64; (256 / 400)**2 of it are 24.6.
    assert "cache_side=256" in cache.advice
    assert '"host"' in cache.advice
    assert "24.6 GB" in cache.why
    assert cache.gain == pytest.approx(1.25 / 0.2)
    assert not cache.is_limit
    huge = finding(advise(measurements(alternatives, reduced_side=256, out_side=224)), "cache")
    assert '"FOLDER"' in huge.advice
    assert huge.is_limit


def test_smaller_files_decode_faster() -> None:
    data = measurements({m.DECODE_REDUCED: 2500.0, m.AUGMENT_REDUCED: 5000.0}, reduced_side=256, out_side=224)
    reduce = finding(advise(data), "reduce")
    assert reduce.gain == pytest.approx(1.25 / (0.4 + 0.2))
    for number in ("500 x 400", "224", "2,500 images/s", "1,000 images/s"):
        assert number in reduce.why


def test_an_index_is_advised_where_it_is_surely_faster() -> None:
    index = finding(advise(measurements({m.DECODE_INDEXED: 2000.0})), "index")
    assert index.gain == pytest.approx(1.25 / (0.5 + 0.25))
    for number in ("2,000 images/s", "1,000 images/s"):
        assert number in index.why
    assert all(found.kind != "index" for found in advise(measurements({m.DECODE_INDEXED: 1010.0})).findings)
    assert all(found.kind != "index" for found in advise(measurements()).findings)


def test_with_a_cache_no_decoding_is_advised_on() -> None:
    data = measurements(
        {m.LOADER: 3900.0, m.DECODE_REDUCED: 2500.0, m.AUGMENT_REDUCED: 5000.0},
        samples=50_000,
        cache="host",
        reduced_side=256,
    )
    found = advise(data)
    assert found.bottleneck == "augment"
    assert {one.kind for one in found.findings}.isdisjoint({"cache", "reduce"})


def test_a_cache_without_room_for_all() -> None:
    remark = finding(advise(measurements({m.LOADER: 3900}, cache="host")), "cache room")
    for number in ("1,000,000 images of 600 kB are 600 GB", "32 GB fit"):
        assert number in remark.why
    assert "cache room" not in kinds(measurements({m.LOADER: 3900}, cache="host", samples=50_000))


def test_cores_that_idle() -> None:
    data = measurements({m.DECODE: 500, m.DECODE_ONE: 255, m.DECODE_AUGMENT: 400, m.LOADER: 395}, threads=2)
    threads = finding(advise(data), "threads")
    assert threads.advice == "num_threads=4: use all cores"
    assert threads.gain == pytest.approx(2 * 500 / 255 / 2, rel=0.01)
    assert "2 of 4 cores" in threads.why
    assert "threads" not in kinds(measurements())


def test_one_thread_scales_at_most_by_the_cores() -> None:
    without = dict.fromkeys((m.DECODE_ONE, m.AUGMENT_ONE))
    threads = finding(advise(measurements(without, threads=1)), "threads")
    assert threads.gain == pytest.approx(4.0)
    assert threads.is_limit


def test_threads_that_do_not_scale() -> None:
    scaling = finding(advise(measurements({m.DECODE_ONE: 600})), "scaling")
    assert "1.67x" in scaling.why
    assert scaling.gain == pytest.approx(0.9 * 4 / (1000 / 600))
    assert "scaling" not in kinds(measurements({m.DECODE_ONE: 600, m.DECODE: rate(1000, spread=1.5)}))


@pytest.mark.parametrize("in_page_cache", [0.0, 1.0])
def test_small_files_from_a_slow_disk(in_page_cache: float) -> None:
    # A terabyte: what is read first is what every epoch meets, unless these files were in memory by chance.
    data = measurements(
        {m.READ_FIRST: 300, m.LOADER: 290}, samples=10_000_000, in_page_cache=in_page_cache, available_memory=10**9
    )
    found = advise(data)
    if in_page_cache:
        assert found.bottleneck != "read"
        return
    assert found.bottleneck == "read"
    assert "Reading is the bottleneck, at 300 images/s" in found.summary
    shards = finding(found, "shards")
    assert shards.gain == pytest.approx(800 / 300)
    assert shards.is_limit
    for number in ("300 images/s", "33 MB/s", "110 kB", "800 images/s"):
        assert number in shards.why
    assert "faster disk" in finding(found, "storage").advice


def test_shards_are_not_advised_for_shards_nor_for_large_files() -> None:
    slow = {m.READ: 300, m.LOADER: 290}
    assert "shards" in kinds(measurements(slow))
    assert "shards" not in kinds(measurements(slow, has_a_file_each=False))
    assert "shards" not in kinds(measurements(slow, mean_bytes=3e6))
    remote = advise(measurements(slow, is_remote=True))
    assert "local disk" in finding(remote, "storage").advice


def test_a_cold_first_epoch_is_remarked_upon() -> None:
    data = measurements({m.READ_FIRST: 300}, samples=50_000, in_page_cache=0.1)
    found = advise(data)
    remark = finding(found, "first epoch")
    assert remark.images_per_second is None
    assert "300 images/s" in remark.why
    assert found.bottleneck == "decode"
    assert found.findings[-1] is remark


AUGMENT_BOUND = {m.DECODE: 8000, m.DECODE_ONE: 2000, m.AUGMENT: 1000, m.AUGMENT_ONE: 250, m.DECODE_AUGMENT: 889.0,
                 m.LOADER: 880.0}  # fmt: skip


def test_a_policy_that_costs() -> None:
    found = advise(measurements({**AUGMENT_BOUND, m.AUGMENT_PLAIN: 3000}))
    assert found.bottleneck == "augment"
    policy = finding(found, "policy")
    assert policy.is_limit
    assert policy.gain == pytest.approx(1.125 / (0.125 + 1 / 3), rel=0.01)
    for number in ("1.00 ms", "0.67 ms", "3,000 images/s"):
        assert number in policy.why
    noise = measurements({**AUGMENT_BOUND, m.AUGMENT_PLAIN: rate(1100, spread=0.4)})
    assert "policy" not in kinds(noise)


def test_batches_that_cost_by_themselves() -> None:
    batch = finding(advise(measurements({**AUGMENT_BOUND, m.AUGMENT_LARGE: 2000}, batch_size=8)), "batch")
    assert "batch_size=32" in batch.advice
    assert "batches of 32 are augmented at 2,000 images/s, of 8 at 1,000 images/s" in batch.why
    assert batch.gain == pytest.approx(1.125 / 0.625, rel=0.01)


def test_a_gpu_that_stands_idle() -> None:
    gpu = finding(advise(measurements(AUGMENT_BOUND, gpus=1)), "gpu")
    assert 'device="cuda"' in gpu.advice
    assert gpu.gain == pytest.approx(1.125 / 0.125, rel=0.01)


def test_on_a_gpu_stages_run_beside_each_other() -> None:
    rates = {m.AUGMENT: 100_000, m.TRANSFER: 5000, m.DECODE_AUGMENT: 990, m.LOADER: 980, m.AUGMENT_ONE: None}
    found = advise(measurements(rates, device="cuda:0", gpus=1))
    assert found.bottleneck == "decode"
    assert "of the cores" not in found.summary
    assert "gpu" not in [one.kind for one in found.findings]
    decode = finding(found, "gpu decode")
    assert decode.is_limit
    assert decode.gain == pytest.approx(5.0)  # up to where sending would be the wall
    assert "variegate[gpu]" in decode.advice
    assert "4 threads decode 1,000 images/s" in decode.why
    assert "gpu decode" not in kinds(measurements(rates, device="cuda:0", gpus=1, decoder="gpu"))
    rates = rates | {m.DECODE: 20_000, m.DECODE_ONE: 5000, m.DECODE_AUGMENT: 4900, m.LOADER: 4800}
    found = advise(measurements(rates, device="cuda:0", gpus=1))
    assert found.bottleneck == "transfer"
    assert "5,000 images/s" in found.summary


@pytest.mark.parametrize(("prefetch", "advice"), [(0, "prefetch=2"), (2, "prefetch=4")])
def test_a_loader_slower_than_its_stages(prefetch: int, advice: str) -> None:
    found = advise(measurements({m.LOADER: 400}, prefetch=prefetch))
    assert found.bottleneck == "loader"
    ahead = finding(found, "prefetch")
    assert ahead.advice.startswith(advice)
    assert ahead.gain == pytest.approx(2.0)
    assert "the loader delivers 400 images/s, its stages together 800 images/s" in ahead.why


def test_bad_files_are_named() -> None:
    found = advise(measurements(skipped=3, bad=("photos/cat/9.jpg: truncated",)))
    remark = finding(found, "bad files")
    assert "3 of 1,003 samples could not be read, such as photos/cat/9.jpg: truncated" in remark.why


def test_most_gainful_first_remarks_last() -> None:
    data = measurements(
        {m.AUGMENT_PLAIN: 8000, m.DECODE_REDUCED: 2500, m.AUGMENT_REDUCED: 5000},
        **{"samples": 50_000, "skipped": 1, "bad": ("x: y",), "reduced_side": 256, "out_side": 224, "gpus": 1},
    )
    found = advise(data)
    gains = [one.gain for one in found.findings if one.images_per_second is not None]
    assert gains == sorted(gains, reverse=True)
    assert [one.kind for one in found.findings] == ["cache", "reduce", "gpu", "policy", "bad files"]


def test_does_it_keep_up() -> None:
    data = measurements(samples=50_000)
    assert advise(data).keeps_up is None
    well = advise(data, consume=500)
    assert well.keeps_up
    assert well.margin == pytest.approx(0.58)
    assert "the loader keeps up, with 58% to spare" in well.summary
    badly = advise(data, consume=1580)
    assert badly.keeps_up is False
    assert badly.margin == pytest.approx(-0.5)
    assert "it waits for data 50% of the time" in badly.summary
    assert any("enough for the model" in line for line in finding_lines(badly))
    with pytest.raises(ValueError, match="consume: got 0; accepted: a positive number"):
        advise(data, consume=0)


def test_remote_workers_pay_for_a_model_that_waits() -> None:
    data = measurements(out_side=224)
    assert all(found.kind != "workers" for found in (*advise(data).findings, *advise(data, 700).findings))
    workers = finding(advise(data, 3160, wire=10.0), "workers")
    assert (workers.gain, workers.images_per_second, workers.is_limit) == (pytest.approx(4), pytest.approx(3160), True)
    assert "vg.RayWorkers(count=4, cpus=4)" in workers.advice
    # 3 x 224 x 224 bytes; 3,160 of them are 3.81 Gbit, and 10 Gbit are 8,304 of them.
    for figure in ("75% of the time", "790 images/s", "151 kB", "3.81 Gbit/s", "8,304 images/s"):
        assert figure in workers.why
    cut = finding(advise(data, 3160, wire=2.0), "workers")
    assert cut.images_per_second == pytest.approx(2e9 / 8 / 150_528)
    assert "count=3" in cut.advice
    assert "carries" not in finding(advise(data, 3160), "workers").why


def test_remote_workers_do_not_pay_over_a_slow_wire() -> None:
    found = advise(measurements(out_side=224), 3160, wire=0.9)
    kept = finding(found, "workers")
    assert kept.images_per_second is None
    assert "would not pay" in kept.advice
    assert "747 images/s" in kept.why
    assert f"   {kept.advice}" in finding_lines(found)
    with pytest.raises(ValueError, match="consume: got inf; accepted: a positive number of images per second"):
        advise(measurements(out_side=224), float("inf"))
    with pytest.raises(ValueError, match="wire: got 0; accepted: a positive number of gigabits per second"):
        advise(measurements(), wire=0)


def test_what_a_model_takes() -> None:
    assert consumed(None, None, 64) is None
    assert consumed(1200, None, 64) == 1200
    assert consumed(None, 50, 64) == 1280
    for arguments in ((1.0, 1.0), (0.0, None), (None, -1.0), (float("inf"), None)):
        with pytest.raises(ValueError, match="accepted: "):
            consumed(arguments[0], arguments[1], 64)


def test_a_diagnosis_is_json() -> None:
    data = measurements(samples=50_000)
    told = json.loads(json.dumps({**advise(data, 1000).to_dict(), "measurements": data.to_dict()}))
    assert told["bottleneck"] == "decode"
    assert told["findings"][0]["kind"] == "cache"
    assert told["measurements"]["rates"]["decode"]["images_per_second"] == 1000
