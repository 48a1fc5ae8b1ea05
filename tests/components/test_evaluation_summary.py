"""The summary of an evaluation has the metrics of every class, whatever its name; TFMA's output stands in for a run."""

import sys
from types import SimpleNamespace

from shardwright.components.evaluator.summary import summarize


def output(**values):
    metrics = {name: {"doubleValue": value} for name, value in values.items()}
    return SimpleNamespace(
        slicing_metrics=[((), {"": {"": metrics}})],
        config=SimpleNamespace(model_specs=[SimpleNamespace(is_baseline=False, name="candidate")]),
    )


def test_differences_are_left_out_and_a_class_with_their_ending_is_not(monkeypatch):
    found = output(**{"images": 9, "f1/a": 0.5, "f1/a_diff": 0.1, "f1/b_diff": 0.7, "f1/b_diff_diff": 0.2})
    verdict = SimpleNamespace(metric_validations_per_slice=[], validation_ok=True)
    tfma = SimpleNamespace(
        load_eval_result=lambda folder, model_name="": found, load_validation_result=lambda folder: verdict
    )
    monkeypatch.setitem(sys.modules, "tensorflow_model_analysis", tfma)
    assert summarize("anywhere", []).metrics == {"f1/a": 0.5, "f1/b_diff": 0.7}
