"""What is wrong with each image by itself, and with the sizes of the classes, judged by the table's measures."""

from __future__ import annotations

import pyarrow as pa

from variegate.apps.curate.finding import DataFinding
from variegate.apps.curate.judging.classes import class_findings
from variegate.apps.curate.judging.files import file_findings
from variegate.apps.curate.judging.looks import look_findings
from variegate.apps.curate.judging.thresholds import Thresholds, thresholds_for
from variegate.apps.curate.judging.verdicts import Verdicts

__all__ = ["Thresholds", "judge", "thresholds_for"]


def judge(table: pa.Table, thresholds: Thresholds | None = None) -> list[DataFinding]:
    """``table``: of ``SCHEMA``, findings apart. All findings but duplicates and doubtful labels; an image that does not
    decode has those of its file alone."""
    if thresholds is None:
        thresholds = thresholds_for(table)
    table = table.combine_chunks()
    verdicts = Verdicts(table)
    file_findings(verdicts)
    look_findings(verdicts, thresholds)
    return [*verdicts.findings, *class_findings(table, thresholds)]
