"""Rules, the problems that they find, and the report of all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from shardwright.pipelines.preflight.run_facts import Facts

ERROR, WARNING = "error", "warning"

# Facts that rules need, and how the user gives them.
DATASET, TRIED, SPEED, NEEDED = "dataset", "tried", "speed", "needed"
_ASKED_FOR = {
    DATASET: "give --dataset DIR",
    TRIED: "give --dataset DIR of a dataset that the loader can read",
    SPEED: "give --dataset DIR of a dataset that the loader can read",
    NEEDED: "give --needed IMAGES_PER_SECOND",
}


@dataclass(frozen=True)
class Problem:
    """A problem that a rule found.

    Attributes:
        where: YAML path of the value to change, or the part of the dataset.
        problem: what is wrong, with the values.
        fix: what to do.
    """

    where: str
    problem: str
    fix: str


@dataclass(frozen=True)
class Rule:
    """A check.

    Attributes:
        id: its name in tables and JSON.
        severity: `ERROR` stops the training or spoils it; `WARNING` costs time or money.
        about: what must hold, as a sentence.
        find: yields the problems.
        needs: the facts that it needs.
    """

    id: str
    severity: str
    about: str
    find: Callable[[Facts], Iterable[Problem]]
    needs: tuple[str, ...] = ()


@dataclass(frozen=True)
class PreflightFinding:
    """A problem with the rule that found it; see `Problem`."""

    rule: str
    severity: str
    where: str
    problem: str
    fix: str


@dataclass(frozen=True)
class PreflightReport:
    """The result of all rules.

    Attributes:
        findings: errors first, then in the order of the rules.
        passed: ids of rules that found nothing.
        unchecked: ids of rules that lack facts -> the option to give.
    """

    findings: tuple[PreflightFinding, ...]
    passed: tuple[str, ...]
    unchecked: dict[str, str]

    @property
    def failed(self) -> bool:
        """True if there is an error among the findings."""
        return any(finding.severity == ERROR for finding in self.findings)


def check(rules: Sequence[Rule], facts: Facts) -> PreflightReport:
    """Checks facts by rules."""
    findings: list[PreflightFinding] = []
    passed, unchecked = [], {}
    for rule in rules:
        lacking = next((need for need in rule.needs if not _known(need, facts)), None)
        if lacking is not None:
            unchecked[rule.id] = _ASKED_FOR[lacking]
            continue
        found = [PreflightFinding(rule.id, rule.severity, **vars(problem)) for problem in rule.find(facts)]
        findings += found
        if not found:
            passed.append(rule.id)
    return PreflightReport(tuple(sorted(findings, key=lambda one: one.severity != ERROR)), tuple(passed), unchecked)


def _known(need: str, facts: Facts) -> bool:
    dataset = facts.dataset
    known = {
        DATASET: dataset is not None,
        TRIED: dataset is not None and bool(dataset.fed),
        SPEED: facts.measured is not None,
        NEEDED: facts.needed is not None,
    }
    return known[need]


def problem_if(wrong: bool, where: str, problem: str, fix: str) -> Iterator[Problem]:
    """Yields the problem if there is one: most rules are one comparison."""
    if wrong:
        yield Problem(where, problem, fix)
