"""The way of the tutorial: a schema is inferred and copied, and the next month has other images of the same classes."""

import json

import pytest
import tensorflow_data_validation as tfdv
from tfx.components.example_validator.executor import Executor as Validate
from tfx.components.schema_gen.executor import Executor as Infer
from tfx.components.statistics_gen.executor import Executor as Stock
from tfx.dsl.components.base.base_beam_executor import BaseBeamExecutor
from tfx.types import standard_artifacts
from tfx.types.experimental import simple_artifacts

from shardwright.components import statistics_options
from shardwright.components.data_gate.component import GateDecision
from shardwright.components.data_gate.executor import Executor as Gate
from shardwright.components.report.executor import Executor as Report
from shardwright.components.statistics_gen.executor import Executor as Ours
from shardwright.dataset.dataset_schema import identity_features, parse_schema
from shardwright.errors import CheckFailed, ConfigError
from shardwright.report.anomaly_chapter import read_verdict

CLASSES = ("daisy", "rose", "tulip")
PROPERTIES = {
    "ours": (Ours, {"features": ""}),
    "TFX's": (Stock, {"stats_options_json": statistics_options(["patient"]).to_json()}),
}


def artifact(kind, uri, splits):
    made = kind()
    made.uri = str(uri)
    if splits:
        made.split_names = json.dumps(splits)
    return made


class Month:
    """The delivery of a month, and what the components make of it."""

    def __init__(self, small_dataset, root, name, classes=CLASSES, whose="ours"):
        def with_columns(number, example):
            # A column with few values, and one that is different for each image.
            return {**example, "camera": [b"a", b"b"][number % 2], "patient": f"{name}-{number}".encode()}

        splits = {"train": [30], "eval": [12], "test": [12]}
        self.root = small_dataset(
            root / name,
            task="classification",
            counts=splits,
            classes=classes,
            change=with_columns,
            key_of=lambda split, number: f"{name}/{split}/{number:03d}",
        )
        self.splits, self.whose = list(splits), whose
        self.examples = artifact(standard_artifacts.Examples, self.root, self.splits)
        self.statistics = artifact(standard_artifacts.ExampleStatistics, root / name / "statistics", self.splits)
        executor, properties = PROPERTIES[whose]
        context = BaseBeamExecutor.Context(beam_pipeline_args=[], tmp_dir=str(root / name / "tmp"), unique_id="1")
        executor(context).Do({"examples": [self.examples]}, {"statistics": [self.statistics]}, properties)

    def schema(self):
        schema = artifact(standard_artifacts.Schema, self.root.parent / "schema", [])
        properties = {"infer_feature_shape": 1, "exclude_splits": "[]"}
        Infer().Do({"statistics": [self.statistics]}, {"schema": [schema]}, properties)
        return schema

    def pass_gate(self, schema):
        found = artifact(standard_artifacts.ExampleAnomalies, self.root.parent / "anomalies", self.splits)
        inputs = {"statistics": [self.statistics], "schema": [schema]}
        Validate().Do(inputs, {"anomalies": [found]}, {"exclude_splits": "[]"})
        decision = artifact(GateDecision, self.root.parent / "decision", [])
        (self.root.parent / "decision").mkdir()
        inputs = {"anomalies": [found], "examples": [self.examples], "schema": [schema]}
        page = artifact(simple_artifacts.File, self.root.parent / "report", [])
        (self.root.parent / "report").mkdir(exist_ok=True)
        Report().Do(inputs, {"report": [page]}, {"drift": ""})
        Gate().Do(inputs, {"decision": [decision]}, {"allow": "[]"})
        return json.loads((self.root.parent / "decision/decision.json").read_text())


@pytest.mark.slow
@pytest.mark.two_stacks
@pytest.mark.parametrize("whose", list(PROPERTIES))
def test_the_next_month_passes_with_new_names_and_stops_on_a_new_class(small_dataset, tmp_path, whose):
    schema = Month(small_dataset, tmp_path, "january", whose=whose).schema()
    inferred = parse_schema((tmp_path / "january/schema/schema.pbtxt").read_text(), "schema")
    domains = {feature.name: feature.domain or feature.HasField("string_domain") for feature in inferred.feature}
    assert [name for name, domain in domains.items() if domain] == ["camera", "image/class/text", "image/format"]
    assert {"image/key", "image/filename", "image/blake3", "patient"} < set(domains)
    assert Month(small_dataset, tmp_path, "february", whose=whose).pass_gate(schema)["anomalies"] == 0
    march = Month(small_dataset, tmp_path, "march", classes=("daisy", "rose", "iris"), whose=whose)
    with pytest.raises(CheckFailed, match="image/class/text in train: ENUM_TYPE_UNEXPECTED_STRING_VALUES") as refused:
        march.pass_gate(schema)
    assert "image/key" not in str(refused.value)
    assert {anomaly.where.partition(" ")[0] for anomaly in read_verdict(march.root.parent / "report")} == {
        "image/class/text"
    }
    assert "gate.allow_anomalies" not in str(refused.value)


@pytest.mark.slow
def test_a_schema_that_lists_names_fits_the_next_month_too(small_dataset, tmp_path, monkeypatch, capsys):
    """It was made by TFX's own components without our options, or before they were there."""
    monkeypatch.setitem(PROPERTIES, "TFX's", (Stock, {}))
    schema = Month(small_dataset, tmp_path, "january", whose="TFX's").schema()
    february = Month(small_dataset, tmp_path, "february", whose="TFX's")
    assert february.pass_gate(schema)["anomalies"] > 0
    assert read_verdict(february.root.parent / "report") == []
    assert "only allowed values of image/filename, image/key, patient." in capsys.readouterr().out


def test_the_options_for_tfx_name_every_feature_of_identity():
    options = tfdv.StatsOptions.from_json(PROPERTIES["TFX's"][1]["stats_options_json"])
    named = {feature.name for feature in options.schema.feature}
    assert named == {*identity_features(["image/key", "image/filename", "image/blake3", "image/sha256"], {}),
                     "image/encoded", "patient"}  # fmt: skip
    for wrong in ("patient", [3], [""]):
        with pytest.raises(ConfigError, match="statistics_options: identifiers"):
            statistics_options(wrong)
