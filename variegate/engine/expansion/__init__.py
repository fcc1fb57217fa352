"""A data set expanded on disk: ``Expansion`` runs a ``Plan`` on the devices of an engine."""

from variegate.engine.expansion.annotated_plan import AnnotatedPlan, plan_for
from variegate.engine.expansion.commit import Report
from variegate.engine.expansion.plan import Plan
from variegate.engine.expansion.run import Expansion, check_apart

__all__ = ["AnnotatedPlan", "Expansion", "Plan", "Report", "check_apart", "plan_for"]
