"""All defects, of both files."""

from __future__ import annotations

from tests.strength import defects_pixels, defects_work

DEFECTS = (*defects_pixels.DEFECTS, *defects_work.DEFECTS)
