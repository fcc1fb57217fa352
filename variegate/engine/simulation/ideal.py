"""The bound that no strategy can go below."""

from __future__ import annotations

import heapq

from variegate.engine.simulation.chance import TICKS, Chance
from variegate.options.simulation import Scenario


def ideal_seconds(scenario: Scenario, chance: Chance) -> float:
    """When all work would be done if every device worked at its speed whenever its worker is up.

    Without failures that is the sum of the work by the sum of the speeds. Workers are lost at times that do not depend
    on the strategy, so the very same failures count here; but nothing is lost with them.
    """
    work, speed, now = float(sum(chance.work)), sum(chance.speeds), 0
    if not scenario.failure_rate:
        return work / speed / TICKS
    restart = round(scenario.restart * TICKS)
    # (when, device, life of the worker, whether it is lost then or starts)
    changes = [(chance.uptime(device, 0), device, 0, True) for device in range(scenario.devices)]
    heapq.heapify(changes)
    up = [True] * scenario.devices
    while True:
        when, device, life, is_loss = heapq.heappop(changes)
        if (when - now) * speed >= work:
            return (now + work / speed) / TICKS
        work -= (when - now) * speed
        now, up[device] = when, not is_loss
        if is_loss:
            heapq.heappush(changes, (when + restart, device, life + 1, False))
        else:
            heapq.heappush(changes, (when + chance.uptime(device, life), device, life, True))
        # Summed anew, so that nothing of the speeds that came and went is left by rounding.
        speed = sum(speed for speed, is_up in zip(chance.speeds, up, strict=True) if is_up)
