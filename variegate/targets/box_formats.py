"""The ways to write a box, and their corners and edges."""

from __future__ import annotations

import numpy as np

from variegate.arrays import Float64Array

BOX_FORMATS = ("xyxy", "xywh", "cxcywh", "cxcywhr")


def columns_of(box_format: str) -> int:
    return 5 if box_format == "cxcywhr" else 4


def corners_of(boxes: Float64Array, box_format: str) -> Float64Array:
    """Boxes [M, 4 or 5] -> float64[M, 4, 2]."""
    if box_format == "cxcywhr":
        radians = np.radians(boxes[:, 4])
        along = np.stack([np.cos(radians), -np.sin(radians)], axis=1) * boxes[:, 2:3] / 2.0
        down = np.stack([np.sin(radians), np.cos(radians)], axis=1) * boxes[:, 3:4] / 2.0
        center = boxes[:, :2]
        return np.stack([center - along - down, center + along - down, center + along + down, center - along + down], 1)
    left, top, right, bottom = edges_of(boxes, box_format).T
    return np.stack([left, top, right, top, right, bottom, left, bottom], axis=1).reshape(-1, 4, 2)


def edges_of(boxes: Float64Array, box_format: str) -> Float64Array:
    """Upright boxes [M, 4] -> left, top, right, bottom."""
    first = boxes[:, :2]
    second = boxes[:, 2:]
    if box_format == "xywh":
        second = first + second
    elif box_format == "cxcywh":
        first, second = first - second / 2.0, first + second / 2.0
    return np.concatenate([first, second], axis=1)


def from_edges(edges: Float64Array, box_format: str) -> Float64Array:
    """left, top, right, bottom [M, 4] -> upright boxes in their format."""
    first = edges[:, :2]
    second = edges[:, 2:]
    if box_format == "xyxy":
        return edges
    return np.concatenate([first if box_format == "xywh" else (first + second) / 2.0, second - first], axis=1)


def from_corners(corners: Float64Array) -> Float64Array:
    """The rectangle [M, 5] along the side that was the box's width, around all corners [M, 4, 2]."""
    side = corners[:, 1] - corners[:, 0] + corners[:, 2] - corners[:, 3]
    angle = np.arctan2(-side[:, 1], side[:, 0])
    along = np.stack([np.cos(angle), -np.sin(angle)], axis=1)
    down = np.stack([np.sin(angle), np.cos(angle)], axis=1)
    u = np.einsum("mij,mj->mi", corners, along)
    v = np.einsum("mij,mj->mi", corners, down)
    middle_u = (u.min(axis=1) + u.max(axis=1)) / 2.0
    middle_v = (v.min(axis=1) + v.max(axis=1)) / 2.0
    center = middle_u[:, None] * along + middle_v[:, None] * down
    sizes = np.stack([np.ptp(u, axis=1), np.ptp(v, axis=1), np.degrees(angle)], axis=1)
    return np.concatenate([center, sizes], axis=1)
