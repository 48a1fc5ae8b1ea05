"""Rules, the problems that they find, and the report of all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from shardwright.pipelines.preflight.run_facts import Facts

ERROR, WARNING = "error", "warning"

# Facts that rules need: how the user gives them, and whether they are known.
DATASET, TRIED, SPEED, NEEDED = "dataset", "tried", "speed", "needed"
_READABLE = "give --dataset DIR of a dataset that the loader can read"
_NEEDS: dict[str, tuple[str, Callable[[Facts], bool]]] = {
    DATASET: ("give --dataset DIR", lambda facts: facts.dataset is not None),
    TRIED: (_READABLE, lambda facts: facts.dataset is not None and bool(facts.dataset.fed)),
    SPEED: (_READABLE, lambda facts: facts.measured is not None),
    NEEDED: ("give --needed IMAGES_PER_SECOND", lambda facts: facts.needed is not None),
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
        lacking = [ask for ask, known in map(_NEEDS.__getitem__, rule.needs) if not known(facts)]
        if lacking:
            unchecked[rule.id] = lacking[0]
            continue
        problems = [PreflightFinding(rule.id, rule.severity, **vars(problem)) for problem in rule.find(facts)]
        findings += problems
        if not problems:
            passed.append(rule.id)
    findings.sort(key=lambda finding: finding.severity != ERROR)
    return PreflightReport(tuple(findings), tuple(passed), unchecked)


def problem_if(wrong: bool, where: str, problem: str, fix: str) -> Iterator[Problem]:
    """Yields the problem if there is one: most rules are one comparison."""
    if wrong:
        yield Problem(where, problem, fix)
