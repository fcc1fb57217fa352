"""Tables of what is refused: a call as a user types it, and what the error says."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pytest


def every_refusal(rows: Mapping[str, str]) -> pytest.MarkDecorator:
    """Parametrizes ``call`` and ``message``."""
    return pytest.mark.parametrize(("call", "message"), rows.items(), ids=list(rows))


def check_refused(call: str, message: str, names: Mapping[str, Any]) -> None:
    """``call`` raises a ValueError (or, if ``message`` begins with "TypeError: ", a TypeError) of one line that holds
    ``message``, in which "..." stands for any text."""
    kind, _, text = message.rpartition("TypeError: ")
    error = TypeError if len(text) < len(message) else ValueError
    assert not kind
    pattern = ".*".join(re.escape(part) for part in text.split("..."))
    with pytest.raises(error, match=pattern) as raised:
        eval(call, dict(names))
    assert "\n" not in str(raised.value)
