"""XML of strangers: no document types, so that no entity can be defined, expanded or fetched."""

from __future__ import annotations

from typing import Any
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

_DEEPEST = 64


def parse_xml(data: bytes) -> Element:
    """The root. Raises ValueError with a reason for what is no XML, has a document type, or is nested deeply."""
    builder, parser = TreeBuilder(), expat.ParserCreate()
    depth = 0

    def refuse(*_: Any) -> None:
        raise ValueError("a document type (<!DOCTYPE ...>), which is not read")

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > _DEEPEST:
            raise ValueError(f"nested more than {_DEEPEST} deep")
        builder.start(tag, attributes)

    def end(tag: str) -> None:
        nonlocal depth
        depth -= 1
        builder.end(tag)

    parser.buffer_text = True
    parser.StartDoctypeDeclHandler = parser.EntityDeclHandler = refuse
    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler = builder.data
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        raise ValueError(f"no XML: {error}") from None
    return builder.close()
