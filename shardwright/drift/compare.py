"""Compares two samples of images: a test for every measure, and one bound on false alarms for all tests.

The classes get half of the bound, as they carry the least signal. The embedding gets a fifth, as its permutation test
cannot reach smaller chances. All other measures share the rest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
from markupsafe import Markup

from shardwright.config.evaluation import ALPHA
from shardwright.display.histograms import number
from shardwright.display.html import box, isolate, line, rows
from shardwright.drift.measures import NUMBERS
from shardwright.drift.sampling import Sample, frequent
from shardwright.drift.two_samples import (
    TestResult,
    chi_square,
    discrepancy,
    holm,
    kolmogorov_smirnov,
    permutations_for,
)
from shardwright.running.progress import counted

_SHOWN = 12
_KEYS = 5
CLASSES, EMBEDDED, AREA = "classes", "embedding", "area"
_CLASS_WEIGHT, _EMBEDDING_WEIGHT = 0.5, 0.2
_KIND_WORDS = {"format": "file format", "size": "height and width", "channels": "channels"}
# With fewer images the tests have no power.
LEAST = 20


class Measure(NamedTuple):
    """A test of one measure."""

    name: str
    words: str
    result: TestResult
    weight: float
    one: float | None
    other: float | None


@dataclass(frozen=True)
class DriftFinding:
    """One measure of both samples.

    Attributes:
        measure: its name: of `NUMBERS`, `format`, `size`, `channels`, `classes`, `area/<class>`, `embedding`.
        words: its name for people.
        drifted: whether it has changed, within the bound on false alarms over all measures.
        p: chance of such a difference without a change.
        distance: size of the difference, from 0.
        reference: mean of the reference, if the measure is a number.
        current: mean of the current sample, if the measure is a number.
    """

    measure: str
    words: str
    drifted: bool
    p: float
    distance: float
    reference: float | None
    current: float | None

    @property
    def chance(self) -> str:
        """The chance `p` as a text."""
        return "< 0.0001" if self.p < 0.0001 else f"{self.p:.4f}"


@dataclass(frozen=True)
class Comparison:
    """The result of comparing two samples.

    Attributes:
        reference: name of the reference.
        current: name of the current sample.
        reference_images: images in the reference.
        current_images: images in the current sample.
        findings: a finding for every measure, drifted ones first.
        reference_unreadable: keys of images of the reference that are left out, as they cannot be read or decoded.
        current_unreadable: those of the current sample.
        current_known: images of the current dataset that are left out because the reference has them, too.
        reference_of: images of the reference that could have been in its sample.
        current_of: those of the current side.
    """

    reference: str
    current: str
    reference_images: int
    current_images: int
    findings: tuple[DriftFinding, ...]
    reference_unreadable: tuple[str, ...] = ()
    current_unreadable: tuple[str, ...] = ()
    current_known: int = 0
    reference_of: int = 0
    current_of: int = 0

    @property
    def reference_sample(self) -> str:
        """Which images of the reference were measured, in words."""
        return _sample(self.reference_images, self.reference_of, self.reference_unreadable)

    @property
    def current_sample(self) -> str:
        """Which images of the current side were measured, in words."""
        return _sample(self.current_images, self.current_of, self.current_unreadable)

    @property
    def known(self) -> str:
        """A text about the images that are left out because both sides have them; empty if there are none."""
        if not self.current_known:
            return ""
        return f"Left out of {self.current}: {counted(self.current_known, 'image')} that {self.reference} has, too"

    @property
    def unreadable(self) -> tuple[str, ...]:
        """The images that are left out, a text for each side: the count and some keys; empty if there are none."""
        return tuple(
            f"{len(keys)} of {images + len(keys)} images of {name} cannot be read and are left out: "
            f"{', '.join(keys[:_KEYS])}" + (f" and {len(keys) - _KEYS} more" if len(keys) > _KEYS else "")
            for name, images, keys in (
                (self.reference, self.reference_images, self.reference_unreadable),
                (self.current, self.current_images, self.current_unreadable),
            )
            if keys
        )

    @property
    def enough(self) -> bool:
        """`True` if both samples have enough images for a verdict."""
        return min(self.reference_images, self.current_images) >= LEAST

    @property
    def drifted(self) -> tuple[DriftFinding, ...]:
        """The findings of measures that have changed."""
        return tuple(finding for finding in self.findings if finding.drifted)

    def _repr_html_(self) -> str:
        """Returns the verdict and the measures with the strongest evidence, for a notebook."""
        count, every = len(self.drifted), len(self.findings)
        verdict = f"{count} of {every} measures have changed" if count else "Nothing has changed"
        if not self.enough:
            verdict = f"Too few images: at least {LEAST} of each are needed"
        sides = Markup("{}: {}; against {}: {}").format(
            isolate(self.current, 60),
            self.current_sample,
            isolate(self.reference, 60),
            self.reference_sample,
        )
        body = [
            (
                isolate(finding.words, 60),
                Markup("<b>changed</b>") if finding.drifted else "as before",
                finding.chance,
                *("–" if mean is None else number(mean) for mean in (finding.reference, finding.current)),
            )
            for finding in self.findings[:_SHOWN]
        ]
        table = rows(("measure", "verdict", "chance", "before", "now"), body)
        left = f"{every - _SHOWN} more measures: `findings` has all." if every > _SHOWN else ""
        unread = [line(isolate(text)) for text in (self.known, *self.unreadable) if text]
        return box(verdict, line(sides), *unread, table, *([line(left)] if left else []))

    def to_dict(self) -> dict[str, Any]:
        """Returns plain values for JSON."""
        return {**asdict(self), "enough": self.enough, "findings": [asdict(finding) for finding in self.findings]}


def _sample(images: int, of: int, unreadable: Sequence[str]) -> str:
    """Returns which images were measured: all that can be read, or some that a hash chose."""
    if of > images + len(unreadable):
        return f"{images:,} of {of:,} images, chosen by hash"
    return counted(images, "image")


def compare(
    reference: Sample, current: Sample, *, alpha: float = ALPHA, ignore: Sequence[str] = (), seed: int = 0
) -> Comparison:
    """Compares two samples.

    Args:
        reference: the expected images.
        current: the images to check.
        alpha: the bound on the chance of any false alarm.
        ignore: names of measures to leave out; `area` means all areas.
        seed: seed of the embedding's permutations.

    Returns:
        A finding for each measure; none is drifted if a sample has fewer than 20 images.
    """
    # An ignored embedding needs no extra permutations.
    permutations = permutations_for(1.0 if EMBEDDED in ignore else alpha * _EMBEDDING_WEIGHT)
    measures = [
        measure
        for measure in _measures(reference, current, seed, permutations)
        if measure.name not in ignore and measure.name.split("/")[0] not in ignore
    ]
    enough = min(len(reference), len(current)) >= LEAST
    # Those without a weight of their own share the rest equally.
    rest = (1 - sum(m.weight for m in measures)) / max(1, sum(m.weight == 0 for m in measures))
    drifts = holm([m.result.p for m in measures], [m.weight or rest for m in measures], alpha)
    findings = [
        DriftFinding(m.name, m.words, drifted and enough, m.result.p, round(m.result.distance, 6), m.one, m.other)
        for m, drifted in zip(measures, drifts, strict=True)
    ]
    findings.sort(key=lambda f: (not f.drifted, f.p, f.measure))
    return Comparison(
        reference.name,
        current.name,
        len(reference),
        len(current),
        tuple(findings),
        tuple(reference.unreadable),
        tuple(current.unreadable),
        current.known,
        reference.total,
        current.total,
    )


def _measures(reference: Sample, current: Sample, seed: int, permutations: int) -> Iterator[Measure]:
    for column, (name, words) in enumerate(NUMBERS.items()):
        one, other = reference.numbers[:, column], current.numbers[:, column]
        yield Measure(name, words, kolmogorov_smirnov(one, other), 0.0, _mean(one), _mean(other))
    for name, words in _KIND_WORDS.items():
        result = chi_square(_counts(reference.kinds[name]), _counts(current.kinds[name]))
        yield Measure(name, words, result, 0.0, None, None)
    yield Measure(
        EMBEDDED,
        "content of the pictures",
        discrepancy(reference.embeddings, current.embeddings, seed, permutations),
        _EMBEDDING_WEIGHT,
        None,
        None,
    )
    if reference.labels and current.labels:
        yield Measure(CLASSES, "balance of the classes", _class_result(reference, current), _CLASS_WEIGHT, None, None)
        for name in frequent((reference, current)) if any(reference.areas) else ():
            one, other = reference.areas_of(name), current.areas_of(name)
            words = f"area of {name}"
            yield Measure(f"{AREA}/{name}", words, kolmogorov_smirnov(one, other), 0.0, _mean(one), _mean(other))


def _class_result(reference: Sample, current: Sample) -> TestResult:
    """Tests the shares of the classes; if images have several classes, each class alone, and takes the smallest p."""
    if all(len(names) <= 1 for sample in (reference, current) for names in sample.labels):
        return chi_square(_counts(reference.labels), _counts(current.labels))
    results = []
    for name in frequent((reference, current)):
        has = [[name in names for names in sample.labels] for sample in (reference, current)]
        results.append(chi_square(_counts(has[0]), _counts(has[1])))
    if not results:
        return TestResult(1.0, 0.0)
    least = min(results)
    return TestResult(min(1.0, least.p * len(results)), least.distance)


def _counts(values: Sequence[Hashable]) -> Counter[Hashable]:
    return Counter(values)


def _mean(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float | None:
    return round(float(values.mean()), 6) if len(values) else None
