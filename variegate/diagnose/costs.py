"""What an image costs in a loader, and what it would cost if something were else: arithmetic on measured rates.

Reading waits, so it runs beside everything else. On a CPU decoding and augmenting share the cores, so that their times
add up; with a GPU the stages run beside each other, and the slowest one counts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from variegate.diagnose import measurements as m

# Of the memory that is free, how much the system can be expected to keep files in.
_CACHED_SHARE = 0.8
_IN_MEMORY = 0.5


@dataclass(frozen=True)
class Costs:
    """Seconds per image of each stage, when it has all threads for itself."""

    read: float
    decode: float
    augment: float
    transfer: float
    shares_cores: bool

    @property
    def seconds(self) -> float:
        """Per image, of all of them."""
        busy = self.decode + self.augment if self.shares_cores else max(self.decode, self.augment, self.transfer)
        return max(self.read, busy, 1e-12)

    def gain(self, **changes: float | bool) -> float:
        """How many times as fast with other costs."""
        return self.seconds / replace(self, **changes).seconds  # type: ignore[arg-type]

    def largest(self) -> str:
        """The stage that holds up the others."""
        if self.read >= self.seconds:
            return m.READ
        stages = {m.DECODE: self.decode, m.AUGMENT: self.augment}
        if not self.shares_cores:
            stages[m.TRANSFER] = self.transfer
        return max(stages, key=lambda stage: stages[stage])


def costs_of(data: m.Measurements) -> Costs:
    """Today's. A cache takes reading and decoding away, as far as the loader was measured with it full."""

    def seconds(stage: str) -> float:
        rate = data.rate(stage)
        return 0.0 if rate is None else 1.0 / rate

    shares_cores = not data.device.startswith("cuda")
    if data.cache is not None:
        return Costs(0.0, 0.0, seconds(m.AUGMENT), seconds(m.TRANSFER), shares_cores)
    decode, augment = seconds(m.DECODE), seconds(m.AUGMENT)
    together = seconds(m.DECODE_AUGMENT)
    if shares_cores and together:
        # Decoding at a reduced scale leaves less to resample than whole pictures do, which were measured alone.
        augment = min(max(together - decode, 0.3 * augment), augment)
    return Costs(1.0 / read_rate(data), decode, augment, seconds(m.TRANSFER), shares_cores)


def read_rate(data: m.Measurements) -> float:
    """Images per second of reading in epochs to come: from the page cache where the files fit in it."""
    warm = data.rates[m.READ].images_per_second
    first = data.rate(m.READ_FIRST)
    if first is None or keeps_files_in_memory(data) or data.in_page_cache is None:
        return warm
    return warm if data.in_page_cache >= _IN_MEMORY else min(warm, first)


def keeps_files_in_memory(data: m.Measurements) -> bool:
    """Do the files of a local data set fit in the memory that is free?"""
    stored = data.stored_bytes
    return stored is not None and not data.is_remote and stored <= _CACHED_SHARE * data.available_memory
