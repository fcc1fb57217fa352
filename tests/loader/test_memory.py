"""Memory stays flat: nothing of an epoch is left when it is over."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.children import run_python

pytestmark = pytest.mark.process

PROGRAM = """
from tests.loader.samples import MemorySource, MemoryShards
from tests.loader.loading import load
from variegate import transforms as T

def resident():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * 4096

def run(source, **options):
    large = T.Compose([T.RandomResizedCrop(128), T.RandAugment(1, 9), T.Normalize(0.5, 0.25)])
    loader = load(source, large, batch_size=16, **options)
    after = []
    for epoch in range(50):
        for images, labels in loader:
            pass
        after.append(resident())
    return max(after[40:]) - max(after[:10])

broken = {{5: b"no image"}}
print(run({source}, **{options}))
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads the resident memory from /proc")
@pytest.mark.parametrize(
    ("source", "options"),
    [
        pytest.param("MemorySource(96)", "{}", marks=pytest.mark.slow),
        pytest.param("MemoryShards(96)", "{}", marks=pytest.mark.slow),
        ("MemorySource(96, broken)", "{'on_error': 'skip'}"),
        pytest.param("MemorySource(96)", "{'cache': 'host'}", marks=pytest.mark.slow),
    ],
)
def test_fifty_epochs_take_no_more_than_ten(source: str, options: str) -> None:
    program = PROGRAM.format(source=source, options=options)
    run = run_python(program)
    # Some batches more than before may be left with the allocator; one kept per epoch would be 3 MB, 120 MB in forty.
    assert run.returncode == 0, run.stderr
    assert int(run.stdout) < 24 << 20
