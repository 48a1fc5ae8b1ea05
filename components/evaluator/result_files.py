"""The results of an evaluation in files that need no TFMA to be read.

`summary.json` has the metrics of the whole split; `evaluation.json` (see `pictures`) also those of slices, and the
confusion matrix.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shardwright.components.runtime.artifacts import read_record, write_record
from shardwright.errors import DatasetError
from shardwright.evaluation.figures import Figures, Measured
from shardwright.evaluation.verdict import Verdict
from shardwright.untrusted import json_text as untrusted
from shardwright.untrusted.json_text import parse_untrusted_json

SUMMARY_FILE = "summary.json"
DETAILS_FILE = "evaluation.json"
_SPREAD = untrusted.record(dict.fromkeys(("value", "low", "high"), untrusted.number))
_PICTURE = untrusted.record(
    {"file": untrusted.text, "kind": untrusted.text},
    {"key": untrusted.text, "score": untrusted.measured},
    closed=False,
)
_SLICE = untrusted.record(
    {"by": untrusted.text, "images": untrusted.measured, "metrics": untrusted.mapped(untrusted.measured)}, closed=False
)
_DETAILS = untrusted.record(
    {},
    {
        "pictures": untrusted.listed(_PICTURE),
        "scored": untrusted.count,
        "slices": untrusted.listed(_SLICE),
        "classes": untrusted.listed(untrusted.text),
        "confusion": untrusted.optional(untrusted.listed(untrusted.listed(untrusted.measured))),
    },
    closed=False,
)
# Property of the evaluation with the folder or URL of its images; not set for a relative folder.
EXAMPLES_PLACE = "examples_place"

# Metric -> the key of its least value.
_LIMITS = {"mean_dice": "evaluator.min_dice", "accuracy": "evaluator.min_accuracy", "mean_f1": "evaluator.min_f1"}
# Entries that are not metrics: the number of images in a slice, and the confusion matrix.
IMAGES = "images"
CONFUSION = "confusion/"


@dataclass(frozen=True)
class EvaluationSummary:
    """An evaluation over a whole split.

    Attributes:
        metrics: `mean_dice`, `dice/<class>`, ... or `accuracy`, `f1/<class>`, ...
        baseline: metrics of the last blessed model on the same images; empty without a comparison.
        blessed: whether the model meets all conditions.
        reasons: why it was not blessed or not compared, and which images were left out; one sentence each.
        measured: what the metrics are of, as `Measured.to_dict` returns it.
        keys: keys of the configuration that decided against the model.
        interval: `value`, `low` and `high` of the task's metric, with 95 % confidence.
        change: the same of its difference from the last blessed model; empty without a comparison.
    """

    metrics: dict[str, float]
    baseline: dict[str, float]
    blessed: bool
    reasons: list[str]
    measured: dict[str, Any]
    keys: list[str]
    interval: dict[str, float]
    change: dict[str, float]

    @property
    def figures(self) -> Figures:
        """The metrics with what they are of."""
        return Figures(self.metrics, Measured.from_dict(self.measured))


def write_evaluation(evaluation_dir: str | os.PathLike[str], summary: EvaluationSummary) -> None:
    """Writes the summary into an evaluation's folder."""
    write_record(Path(evaluation_dir, SUMMARY_FILE), summary, allow_nan=False)


def read_evaluation(evaluation_dir: str | os.PathLike[str]) -> EvaluationSummary:
    """Reads the summary of an evaluation.

    Raises:
        DatasetError: the folder does not contain one.
    """
    fix = "Run the Evaluator again."
    found = read_record(Path(evaluation_dir, SUMMARY_FILE), EvaluationSummary, "evaluation", fix)
    try:
        Measured.from_dict(found.measured)
        for spread in (found.interval, found.change):
            _SPREAD(spread, "") if spread else None
    except ValueError as error:
        raise DatasetError(f"{Path(evaluation_dir, SUMMARY_FILE)}: no readable evaluation ({error}). {fix}") from None
    return found


def summarize(
    evaluation_dir: str, measured: Measured, verdict: Verdict, notes: Sequence[str] = ()
) -> EvaluationSummary:
    """Returns a summary of TFMA's output and of the verdict on the answers to single images.

    Args:
        evaluation_dir: TFMA's output.
        measured: what its figures are of.
        verdict: the verdict, to which TFMA adds the thresholds that were missed.
        notes: further sentences, e.g. why no baseline was compared.
    """
    import tensorflow_model_analysis as tfma

    names = _model_names(evaluation_dir)
    candidate, baseline = (
        _by_slice(evaluation_dir, names[which])[()] if which in names else {} for which in (False, True)
    )
    validation = tfma.load_validation_result(evaluation_dir)
    failures = [one for per_slice in validation.metric_validations_per_slice for one in per_slice.failures]
    missed = [_failure(failure, candidate, baseline) for failure in failures]
    keys = [_LIMITS[f.metric_key.name] for f in failures if f.metric_key.name in _LIMITS]
    return EvaluationSummary(
        metrics=_figures(candidate),
        baseline=_figures(baseline),
        blessed=bool(validation.validation_ok) and not verdict.reasons,
        reasons=[*missed, *verdict.reasons, *verdict.notes, *notes],
        measured=measured.to_dict(),
        keys=list(dict.fromkeys([*keys, *verdict.keys])),
        interval=verdict.interval.to_dict(),
        change={} if verdict.change is None else verdict.change.to_dict(),
    )


def details(evaluation_dir: str, classes: Sequence[str]) -> dict[str, Any]:
    """Returns slices and confusion matrix of TFMA's output.

    Args:
        evaluation_dir: TFMA's output.
        classes: names in the order of the model's outputs.

    Returns:
        `classes`; `slices`: a list of `by` (class, folder, brightness), `value`, `images`, `metrics` and, where a
        baseline was compared, `baseline`, sorted; `confusion`: rows of counts by true class, `None` for masks.
    """
    from shardwright.components.evaluator.slices import SLICES

    measured = {which: _by_slice(evaluation_dir, name) for which, name in _model_names(evaluation_dir).items()}
    rows = []
    for key in sorted(measured[False], key=lambda k: (len(k), [(SLICES.index(n), str(v)) for n, v in k])):
        if len(key) != 1:
            continue
        ((feature, value),) = key
        images = int(measured[False][key].get(IMAGES, 0))
        row = {"by": feature.rpartition("/")[2], "value": str(value), "images": images}
        row["metrics"] = _figures(measured[False][key])
        if True in measured and key in measured[True]:
            row["baseline"] = _figures(measured[True][key])
        rows.append(row)
    return {"classes": list(classes), "slices": rows, "confusion": _confusion(measured[False][()], len(classes))}


def read_details(evaluation_dir: str | os.PathLike[str]) -> dict[str, Any]:
    """Reads `evaluation.json`; empty if it does not exist.

    Raises:
        DatasetError: it is damaged.
    """
    file = Path(evaluation_dir, DETAILS_FILE)
    try:
        return dict(_DETAILS(parse_untrusted_json(file.read_text(encoding="utf-8")), ""))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise DatasetError(f"{file}: no readable evaluation ({error}). Run the Evaluator again.") from None


def write_details(evaluation_dir: str | os.PathLike[str], value: Mapping[str, Any]) -> None:
    """Writes `evaluation.json` into an evaluation's folder."""
    text = json.dumps(value, sort_keys=True, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    Path(evaluation_dir, DETAILS_FILE).write_text(text, encoding="utf-8")


def _model_names(evaluation_dir: str) -> dict[bool, str]:
    """Returns is-baseline -> name of the model; TFMA gives a single model the empty name."""
    import tensorflow_model_analysis as tfma

    specs = tfma.load_eval_result(evaluation_dir).config.model_specs
    return {spec.is_baseline: spec.name if len(specs) > 1 else "" for spec in specs}


def _by_slice(evaluation_dir: str, model: str) -> dict[Any, dict[str, float]]:
    """Returns slice -> metrics of a model with a value; `()` is the whole split.

    `load_eval_result` names the difference to a baseline like the metric, with `_diff` at its end. That may be the name
    of another class's metric, so the records are read.
    """
    import tensorflow_model_analysis as tfma

    found = {}
    for record in tfma.load_metrics(evaluation_dir):
        pairs = [pair for pair in record.metric_keys_and_values if _is_of_model(pair, model)]
        if pairs:
            numbers = {pair.key.name: float(pair.value.double_value.value) for pair in pairs}
            keys = [(one.column, getattr(one, one.WhichOneof("kind"))) for one in record.slice_key.single_slice_keys]
            place = tuple((n, v.decode("utf-8", "replace") if isinstance(v, bytes) else v) for n, v in keys)
            found[place] = {name: value for name, value in sorted(numbers.items()) if math.isfinite(value)}
    return found


def _is_of_model(pair: Any, model: str) -> bool:
    """Returns whether a metric is a number of a model, and not its difference to another one."""
    key = pair.key
    if key.is_diff or key.output_name or key.HasField("sub_key") or key.HasField("aggregation_type"):
        return False
    # An evaluation of a single model does not name it, and some metrics are those of all models.
    return pair.value.HasField("double_value") and (not model or key.model_name in (model, ""))


def _figures(values: Mapping[str, float]) -> dict[str, float]:
    """Returns the metrics of the model, without counts and confusion matrix."""
    return {name: value for name, value in values.items() if name != IMAGES and not name.startswith(CONFUSION)}


def _confusion(values: Mapping[str, float], classes: int) -> list[list[int]] | None:
    names = [name for name in values if name.startswith(CONFUSION)]
    if not names:
        return None
    matrix = [[0] * classes for _ in range(classes)]
    for name in names:
        true, predicted = name.removeprefix(CONFUSION).split("/")
        matrix[int(true)][int(predicted)] = int(values[name])
    return matrix


def _failure(failure: Any, candidate: Mapping[str, float], baseline: Mapping[str, float]) -> str:
    name, threshold = failure.metric_key.name, failure.metric_threshold
    if failure.metric_key.is_diff:
        # Of an `eval_config` of the user; our own compares image by image.
        least = threshold.change_threshold.absolute.value
        change = candidate[name] - baseline[name]
        return (
            f"{name} {candidate[name]:.4f} against {baseline[name]:.4f} of the last blessed model: "
            f"a change of {change:+.4f} is less than {least:+.4f}"
        )
    least, key = threshold.value_threshold.lower_bound.value, _LIMITS.get(name, "").rpartition(".")[2]
    return f"{name} {candidate.get(name, 0.0):.4f} is less than {key} {least:.4f}".replace("  ", " ")
