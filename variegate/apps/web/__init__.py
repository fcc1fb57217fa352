"""Style that the pages of this package share: the report of a check, and the studio."""

from pathlib import Path

THEME = Path(__file__).with_name("theme.css")
