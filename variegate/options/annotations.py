"""What commands can be told of boxes, masks and key points beside images."""

from __future__ import annotations

from dataclasses import dataclass

from variegate.options import option


@dataclass(frozen=True, kw_only=True)
class AnnotationOptions:
    """``annotations``: as ``open_source`` takes it."""

    annotations: str | None = option(
        None,
        "Boxes, masks and key points of the images in the folder SRC: a COCO .json file, voc, yolo or masks, and "
        "options after commas, as in instances.json,mask=each or yolo,split=train. Without it, SRC is looked at for "
        "the layouts of voc and yolo.",
        "Images",
        metavar="FILE|LAYOUT[,OPTION=VALUE]",
    )
