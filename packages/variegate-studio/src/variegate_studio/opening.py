"""``vg.studio``: opens a studio, in a notebook or for the command."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from variegate.apps.preview.choosing import Annotations
from variegate.checks import integer
from variegate.ops.base import Transform
from variegate.policies.load import load_policy
from variegate_studio.drawing import Studio
from variegate_studio.photos import Photos
from variegate_studio.runs import views_of
from variegate_studio.server import StudioServer


def studio(
    source: str | os.PathLike[str] | None = None,
    policy: str | os.PathLike[str] | Mapping[str, Any] | Transform | None = "randaugment",
    *,
    size: int | None = 224,
    annotations: Any = None,
    findings: str | os.PathLike[str] | None = None,
    port: int = 0,
) -> StudioServer:
    """Serve a page on which a policy is tuned on your own images, until ``close()`` or the end of the process.

    Args:
        source: a folder of images, with or without classes, shards, or one image; None for sample photos.
            What ``variegate augment`` wrote also has a gallery by operation.
        policy: the policy to begin with, as ``load_policy`` takes it, or a transform; None for none.
        size: longer side in pixels to which images are scaled before the policy; None for up to 1,024 pixels.
        annotations: boxes, masks and key points, as of ``open_source``; they are drawn over the pictures.
        findings: the table that ``variegate check`` wrote for ``source``; its images are shown by finding.
        port: of 127.0.0.1; 0 for any that is free.

    Returns:
        A server with the ``url`` of the page, which a notebook shows as a frame. The address holds a token, without
        which every request is refused, and no data leave this machine.

    Raises:
        SourceError, DecodeError, PolicyError, ValueError, OSError: naming the argument and accepted values.
    """
    port = integer("port", port, 0, 65535)
    size = None if size is None else integer("size", size, 16, 1024)
    given = annotations if isinstance(annotations, Annotations) or annotations is None else Annotations(annotations)
    transform = policy if isinstance(policy, Transform) or policy is None else load_policy(policy)
    photos = Photos(source, given)
    return StudioServer(Studio(photos), transform, size, port, views_of(photos, findings))
