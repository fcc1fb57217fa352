"""The report of a check: one HTML file, which shows what was found and needs nothing else to be read."""

from variegate.apps.curate.report.writing import write_report

__all__ = ["write_report"]
