"""A data set expanded on disk: ``Expansion`` runs a ``Plan`` on the devices of an engine."""

from variegate.jobs.augment.annotated import AnnotatedPlan, plan_for
from variegate.jobs.augment.plan import Plan
from variegate.jobs.augment.run import Expansion, ExpansionProgress, Report
from variegate.jobs.output.run_folder import check_not_nested

__all__ = ["AnnotatedPlan", "Expansion", "ExpansionProgress", "Plan", "Report", "check_not_nested", "plan_for"]
