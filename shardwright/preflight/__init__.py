"""Whether a training on TPUs would work and be fed: rules that are asked on a CPU, before anyone rents one."""

from shardwright.preflight.facts import DatasetFacts, Facts, Fed, Host, Slice, SplitFacts
from shardwright.preflight.report import ERROR, WARNING, Finding, Problem, Report, Rule, check
from shardwright.preflight.rules import RULES

__all__ = [
    "ERROR",
    "RULES",
    "WARNING",
    "DatasetFacts",
    "Facts",
    "Fed",
    "Finding",
    "Host",
    "Problem",
    "Report",
    "Rule",
    "Slice",
    "SplitFacts",
    "check",
]
