"""What an evaluation found, in a few figures, without TFMA to read it: `summary.json` in the evaluation's folder."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shardwright.errors import DatasetError

SUMMARY_FILE = "summary.json"

# What TFMA appends to the name of a metric for the candidate's value minus the baseline's.
_DIFFERENCE = "_diff"


@dataclass(frozen=True)
class EvaluationSummary:
    """An evaluation over a whole split.

    Attributes:
        metrics: `mean_dice`, `dice/<class>`, ... or `accuracy`, `f1/<class>`, ...
        baseline: the same of the last blessed model over the same split; empty when it was not compared.
        blessed: whether the model reached what was asked for.
        reasons: why it was not blessed or not compared, and what was left out; one sentence each.
    """

    metrics: dict[str, float]
    baseline: dict[str, float]
    blessed: bool
    reasons: list[str]


def write_evaluation(evaluation_dir: str | os.PathLike[str], summary: EvaluationSummary) -> None:
    """Writes the summary into an evaluation's folder."""
    text = json.dumps(vars(summary), sort_keys=True, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    Path(evaluation_dir, SUMMARY_FILE).write_text(text, encoding="utf-8")


def read_evaluation(evaluation_dir: str | os.PathLike[str]) -> EvaluationSummary:
    """Reads the summary of an evaluation.

    Raises:
        DatasetError: there is none in that folder.
    """
    file = Path(evaluation_dir, SUMMARY_FILE)
    try:
        return EvaluationSummary(**json.loads(file.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError) as error:
        raise DatasetError(f"{file}: no readable evaluation ({error}). Run the Evaluator again.") from None


def summarize(evaluation_dir: str, reasons: list[str]) -> EvaluationSummary:
    """Makes a summary of what TFMA wrote.

    Args:
        evaluation_dir: TFMA's output.
        reasons: sentences known before, e.g. why no baseline was compared.

    Returns:
        The summary; its reasons are the given ones and one for every threshold that was missed.
    """
    import tensorflow_model_analysis as tfma

    # TFMA knows a model that is alone by the empty name.
    specs = tfma.load_eval_result(evaluation_dir).config.model_specs
    names = {spec.is_baseline: spec.name if len(specs) > 1 else "" for spec in specs}
    candidate, baseline = (
        _overall(tfma.load_eval_result(evaluation_dir, model_name=names[which])) if which in names else {}
        for which in (False, True)
    )
    validation = tfma.load_validation_result(evaluation_dir)
    missed = [
        _failure(failure, candidate, baseline)
        for per_slice in validation.metric_validations_per_slice
        for failure in per_slice.failures
    ]
    return EvaluationSummary(
        metrics={name: value for name, value in candidate.items() if not name.endswith(_DIFFERENCE)},
        baseline=baseline,
        blessed=bool(validation.validation_ok),
        reasons=[*reasons, *missed],
    )


def _overall(result: Any) -> dict[str, float]:
    """Metrics of the slice that is everything; those without a value are left out."""
    values: Mapping[str, Mapping[str, float]] = dict(result.slicing_metrics)[()][""][""]
    numbers = {name: float(value["doubleValue"]) for name, value in values.items()}
    return {name: value for name, value in sorted(numbers.items()) if math.isfinite(value)}


def _failure(failure: Any, candidate: Mapping[str, float], baseline: Mapping[str, float]) -> str:
    name, threshold = failure.metric_key.name, failure.metric_threshold
    if failure.metric_key.is_diff:
        least = threshold.change_threshold.absolute.value
        change = candidate[name] - baseline[name]
        return (
            f"{name} {candidate[name]:.4f} against {baseline[name]:.4f} of the last blessed model: "
            f"a change of {change:+.4f} is less than min_change {least:+.4f}"
        )
    return f"{name} {candidate.get(name, 0.0):.4f} is less than {threshold.value_threshold.lower_bound.value:.4f}"
