"""Objects with the class names, modules and attributes of other libraries' transforms."""

from __future__ import annotations

from typing import Any


def stand_in(name: str, module: str = "torchvision.transforms.v2._geometry", **attributes: Any) -> Any:
    made = type(name, (), {"__module__": module, "__repr__": lambda self: f"{name}()"})()
    vars(made).update(attributes, training=True, _modules={})
    return made
