"""What stands under a picture: a line for each operation, in the order in which they ran."""

from __future__ import annotations

from typing import Any

from variegate.program import describe


def captions(operations: list[dict[str, Any]]) -> list[str]:
    """As ``program.describe``, but operations that all chains of a blend begin with are written once."""
    if len(operations) != 1 or operations[0]["op"] != "Blend":
        return describe.captions(operations)
    chains = operations[0]["chains"]
    common = _shared([chain["operations"] for chain in chains])
    lines = describe.captions(chains[0]["operations"][:common]) if common else []
    lines.append(f"blend of {len(chains)}:")
    for chain in chains:
        own = chain["operations"][common:]
        lines.append(f"{chain['weight']:.0%} {', '.join(describe.captions(own)) if own else 'no operation'}")
    return lines


def _shared(chains: list[list[dict[str, Any]]]) -> int:
    """How many operations all of them begin with."""
    count = 0
    for first, *others in zip(*chains, strict=False):
        if any(other != first for other in others):
            break
        count += 1
    return count
