"""The summary of an evaluation has the metrics of every class, whatever its name; TFMA's output stands in for a run."""

import sys
from types import SimpleNamespace

import pytest

from shardwright.components.evaluator.result_files import summarize
from shardwright.evaluation.figures import Measured
from shardwright.evaluation.verdict import Interval, Verdict


class Message(SimpleNamespace):
    """Stands in for a message of protocol buffers."""

    def HasField(self, name):
        return hasattr(self, name)


def pair(name, value, model="", is_diff=False):
    key = Message(name=name, model_name=model, output_name="", is_diff=is_diff)
    return Message(key=key, value=Message(double_value=SimpleNamespace(value=value)))


ONE = [pair("images", 9), pair("f1/a", 0.5), pair("f1/a_diff", 0.7), pair("f1/b_diff", 0.6)]
TWO = [
    *(pair(one.key.name, one.value.double_value.value, "candidate") for one in ONE),
    # They have the names of metrics in TFMA's own view.
    *(pair(one.key.name, 0.1, "candidate", is_diff=True) for one in ONE),
    *(pair(one.key.name, 0.4, "baseline") for one in ONE),
]
METRICS = {"f1/a": 0.5, "f1/a_diff": 0.7, "f1/b_diff": 0.6}


@pytest.mark.parametrize(
    ("pairs", "names", "baseline"),
    [(ONE, ["candidate"], {}), (TWO, ["candidate", "baseline"], dict.fromkeys(METRICS, 0.4))],
    ids=["alone", "compared"],
)
def test_differences_are_left_out_and_a_class_with_their_ending_is_not(monkeypatch, pairs, names, baseline):
    specs = [SimpleNamespace(is_baseline=name == "baseline", name=name) for name in names]
    whole = SimpleNamespace(slice_key=SimpleNamespace(single_slice_keys=[]), metric_keys_and_values=pairs)
    validation = SimpleNamespace(metric_validations_per_slice=[], validation_ok=True)
    tfma = SimpleNamespace(
        load_eval_result=lambda folder: SimpleNamespace(config=SimpleNamespace(model_specs=specs)),
        load_metrics=lambda folder: [whole],
        load_validation_result=lambda folder: validation,
    )
    monkeypatch.setitem(sys.modules, "tensorflow_model_analysis", tfma)
    measured = Measured("test", 9, (24, 40))
    verdict = Verdict(reasons=(), keys=(), notes=(), interval=Interval(0.5, 0.4, 0.6), change=None)
    found = summarize("anywhere", measured, verdict)
    assert (found.metrics, found.baseline) == (METRICS, baseline)
