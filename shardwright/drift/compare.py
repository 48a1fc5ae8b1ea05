"""Compares two samples of images: a test for every measure, and one bound on false alarms for all of them.

Half of the bound goes to the classes, which carry the least signal; a fifth to the embedding, whose permutations cannot
tell smaller chances; the rest is shared by all others.

What a comparison of images says, at a glance.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np

from shardwright.config.evaluation import ALPHA
from shardwright.display.html import box, escape, line, rows
from shardwright.display.numbers import number
from shardwright.drift.measures import NUMBERS
from shardwright.drift.sample import Sample, frequent
from shardwright.drift.two_samples import (
    TestResult,
    chi_square,
    discrepancy,
    holm,
    kolmogorov_smirnov,
    permutations_for,
)

_SHOWN = 12


def comparison_html(comparison: Comparison) -> str:
    """The verdict and the measures that speak loudest."""
    count, every = len(comparison.drifted), len(comparison.findings)
    verdict = f"{count} of {every} measures have changed" if count else "Nothing has changed"
    if not comparison.enough:
        verdict = f"Too few images to tell: {LEAST} of each are needed"
    sides = (
        f"{number(comparison.current_images)} images of {escape(comparison.current, 60)} against "
        f"{number(comparison.reference_images)} of {escape(comparison.reference, 60)}"
    )
    body = [
        (
            escape(finding.words, 60),
            "<b>changed</b>" if finding.drifted else "as before",
            "&lt; 0.0001" if finding.p < 0.0001 else f"{finding.p:.4f}",
            *("–" if mean is None else number(mean) for mean in (finding.reference, finding.current)),
        )
        for finding in comparison.findings[:_SHOWN]
    ]
    table = rows(("measure", "verdict", "chance", "before", "now"), body)
    left = f"{every - _SHOWN} more measures: `findings` has all." if every > _SHOWN else ""
    return box(verdict, line(sides), table, *([line(left)] if left else []))


CLASSES, EMBEDDED, AREA = "classes", "embedding", "area"
_CLASS_WEIGHT, _EMBEDDING_WEIGHT = 0.5, 0.2
_KIND_WORDS = {"format": "file format", "size": "height and width", "channels": "channels"}
# Fewer images say nothing, whatever the tests say.
LEAST = 20


class Measure(NamedTuple):
    """One test that was made."""

    name: str
    words: str
    outcome: TestResult
    weight: float
    one: float | None
    other: float | None


@dataclass(frozen=True)
class DriftFinding:
    """One measure of both samples.

    Attributes:
        measure: its name: of `rows.NUMBERS`, `format`, `size`, `channels`, `classes`, `area/<class>` or `embedding`.
        words: the same for people.
        drifted: whether it speaks, with the bound on false alarms over all measures.
        p: chance of such a difference without a change.
        distance: how large it is, from 0.
        reference: mean of the reference, of measures that are numbers.
        current: mean of the other one.
    """

    measure: str
    words: str
    drifted: bool
    p: float
    distance: float
    reference: float | None
    current: float | None


@dataclass(frozen=True)
class Comparison:
    """What the comparison of two samples says.

    Attributes:
        reference: name of the one.
        current: name of the other.
        reference_images: images looked at.
        current_images: likewise.
        findings: of every measure, those that drifted first.
    """

    reference: str
    current: str
    reference_images: int
    current_images: int
    findings: tuple[DriftFinding, ...]

    @property
    def enough(self) -> bool:
        """Whether there are enough images on both sides to say anything."""
        return min(self.reference_images, self.current_images) >= LEAST

    @property
    def drifted(self) -> tuple[DriftFinding, ...]:
        """Those that speak."""
        return tuple(finding for finding in self.findings if finding.drifted)

    def _repr_html_(self) -> str:
        return comparison_html(self)

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        return {**asdict(self), "enough": self.enough, "findings": [asdict(finding) for finding in self.findings]}


def compare(
    reference: Sample, current: Sample, *, alpha: float = ALPHA, ignore: Sequence[str] = (), seed: int = 0
) -> Comparison:
    """Compares two samples.

    Args:
        reference: what is expected.
        current: what there is now.
        alpha: the bound on the chance of any false alarm.
        ignore: names of measures that are not looked at; `area` stands for all areas.
        seed: of the embedding's permutations.

    Returns:
        A finding a measure; none of them drifted where a sample has fewer than 20 images.
    """
    # What is not looked at needs no more than the fewest.
    permutations = permutations_for(1.0 if EMBEDDED in ignore else alpha * _EMBEDDING_WEIGHT)
    measures = [
        measure
        for measure in _measures(reference, current, seed, permutations)
        if measure.name not in ignore and measure.name.split("/")[0] not in ignore
    ]
    enough = min(len(reference), len(current)) >= LEAST
    speaks = holm([m.outcome.p for m in measures], _weights(measures), alpha)
    findings = [
        DriftFinding(m.name, m.words, drifted and enough, m.outcome.p, round(m.outcome.distance, 6), m.one, m.other)
        for m, drifted in zip(measures, speaks, strict=True)
    ]
    findings.sort(key=lambda f: (not f.drifted, f.p, f.measure))
    return Comparison(reference.name, current.name, len(reference), len(current), tuple(findings))


def _weights(measures: Sequence[Measure]) -> list[float]:
    """Named shares as they are; what is left is dealt among the others."""
    named = sum(measure.weight for measure in measures)
    others = sum(measure.weight == 0 for measure in measures)
    return [measure.weight or (1 - named) / others for measure in measures]


def _measures(reference: Sample, current: Sample, seed: int, permutations: int) -> Iterator[Measure]:
    for column, (name, words) in enumerate(NUMBERS.items()):
        one, other = reference.numbers[:, column], current.numbers[:, column]
        yield Measure(name, words, kolmogorov_smirnov(one, other), 0.0, _mean(one), _mean(other))
    for name, words in _KIND_WORDS.items():
        outcome = chi_square(_counts(reference.kinds[name]), _counts(current.kinds[name]))
        yield Measure(name, words, outcome, 0.0, None, None)
    yield Measure(
        EMBEDDED,
        "what the pictures show",
        discrepancy(reference.embeddings, current.embeddings, seed, permutations),
        _EMBEDDING_WEIGHT,
        None,
        None,
    )
    if reference.labels and current.labels:
        yield Measure(CLASSES, "balance of the classes", _class_outcome(reference, current), _CLASS_WEIGHT, None, None)
        for name in frequent((reference, current)) if any(reference.areas) else ():
            one, other = reference.areas_of(name), current.areas_of(name)
            words = f"area of {name}"
            yield Measure(f"{AREA}/{name}", words, kolmogorov_smirnov(one, other), 0.0, _mean(one), _mean(other))


def _class_outcome(reference: Sample, current: Sample) -> TestResult:
    """Of one class an image: their shares. Of several: for each whether an image has it, the smallest p of all."""
    if all(len(names) <= 1 for sample in (reference, current) for names in sample.labels):
        return chi_square(_counts(reference.labels), _counts(current.labels))
    outcomes = []
    for name in frequent((reference, current)):
        has = [[name in names for names in sample.labels] for sample in (reference, current)]
        outcomes.append(chi_square(_counts(has[0]), _counts(has[1])))
    if not outcomes:
        return TestResult(1.0, 0.0)
    least = min(outcomes)
    return TestResult(min(1.0, least.p * len(outcomes)), least.distance)


def _counts(values: Sequence[Hashable]) -> Counter[Hashable]:
    return Counter(values)


def _mean(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float | None:
    return round(float(values.mean()), 6) if len(values) else None
