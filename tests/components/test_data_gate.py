"""DataGate: silence passes, anomalies stop with a table that names keys, allowed kinds pass and are recorded."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tensorflow_metadata.proto.v0 import anomalies_pb2, schema_pb2
from tfx.types import Channel, standard_artifacts

from shardwright.components.data_gate.anomalies import Anomaly, names_of_images, offends, read_anomalies, table
from shardwright.components.data_gate.component import DataGate, GateDecision
from shardwright.components.data_gate.executor import Executor
from shardwright.dataset.dataset_schema import identity_features, render_schema
from shardwright.dataset.feature_presets import COMMON_FEATURES
from shardwright.errors import CheckFailed, ConfigError
from shardwright.lineage.record import read_lineage
from shardwright.storage.checksum import checksum_file
from shardwright.tfrecords.encode import encode_example
from shardwright.tfrecords.records import frame


def example(key, height, text):
    return encode_example({"image/key": key.encode(), "image/height": [height], "image/class/text": [text.encode()]})


def anomalies(**reasons):
    proto = anomalies_pb2.Anomalies()
    for feature, kind in reasons.items():
        reason = proto.anomaly_info[feature.replace("__", "/")].reason.add()
        reason.type = anomalies_pb2.AnomalyInfo.Type.Value(kind)
        reason.description = f"About {feature}."
    return proto.SerializeToString()


@pytest.fixture
def gate(tmp_path):
    """Runs the executor on three examples, one too high and one of an unknown class, and given anomalies."""
    schema = standard_artifacts.Schema()
    schema.uri = str(tmp_path / "schema")
    text = render_schema("classification", ["cat", "dog"], "single", {})
    Path(schema.uri).mkdir()
    Path(schema.uri, "schema.pbtxt").write_text(text)

    examples = standard_artifacts.Examples()
    examples.uri = str(tmp_path / "examples")
    examples.split_names = '["train"]'
    examples.set_string_custom_property("dataset_digest", "d" * 64)
    rows = [example("a.jpg", 10, "cat"), example("b.jpg", 0, "cat"), example("c.jpg", 10, "bird")]
    Path(examples.uri, "Split-train").mkdir(parents=True)
    Path(examples.uri, "Split-train", "data-00000-of-00001.tfrecord").write_bytes(b"".join(map(frame, rows)))

    def run(found: bytes, allow: list[str]) -> dict[str, Any]:
        artifact = standard_artifacts.ExampleAnomalies()
        artifact.uri = str(tmp_path / "anomalies")
        artifact.split_names = '["train"]'
        Path(artifact.uri, "Split-train").mkdir(parents=True)
        Path(artifact.uri, "Split-train", "SchemaDiff.pb").write_bytes(found)
        decision = GateDecision()
        decision.uri = str(tmp_path / "decision")
        Path(decision.uri).mkdir()
        inputs = {"anomalies": [artifact], "examples": [examples], "schema": [schema]}
        Executor().Do(inputs, {"decision": [decision]}, {"allow": json.dumps(allow)})
        return json.loads(Path(decision.uri, "decision.json").read_text())

    return run


def test_nothing_odd_passes(gate, tmp_path):
    assert gate(anomalies(), []) == {"splits": ["train"], "anomalies": 0, "allowed": []}
    schema = checksum_file(tmp_path / "schema" / "schema.pbtxt")
    assert read_lineage(tmp_path / "decision")["parents"] == {"dataset": "d" * 64, "schema": schema}


def test_the_run_stops_and_offending_keys_are_named(gate):
    found = anomalies(image__height="INT_TYPE_SMALL_INT", image__class__text="ENUM_TYPE_UNEXPECTED_STRING_VALUES")
    with pytest.raises(CheckFailed) as caught:
        gate(found, [])
    message = str(caught.value)
    assert "image/height in train: INT_TYPE_SMALL_INT, 1 example\n    About image__height.\n    e.g. b.jpg" in message
    assert "image/class/text in train: ENUM_TYPE_UNEXPECTED_STRING_VALUES, 1 example" in message
    assert "e.g. c.jpg" in message
    # Not for the classes, and only for the feature that has the anomaly.
    assert "allow it with gate.allow_anomalies: [INT_TYPE_SMALL_INT:image/height]. If the cl" in message
    assert "ENUM_TYPE_UNEXPECTED_STRING_VALUES]" not in message


def test_allowed_kinds_pass_and_are_recorded(gate):
    decision = gate(anomalies(image__height="INT_TYPE_SMALL_INT"), ["INT_TYPE_SMALL_INT"])
    assert decision["anomalies"] == 1
    assert decision["allowed"][0]["feature"] == "image/height"


def test_allowing_one_kind_does_not_let_another_pass(gate):
    found = anomalies(image__height="INT_TYPE_SMALL_INT", image__class__text="ENUM_TYPE_UNEXPECTED_STRING_VALUES")
    with pytest.raises(CheckFailed, match="1 anomaly"):
        gate(found, ["INT_TYPE_SMALL_INT"])


def test_an_anomaly_is_allowed_for_one_feature(gate):
    found = anomalies(image__height="INT_TYPE_SMALL_INT", image__width="INT_TYPE_SMALL_INT")
    with pytest.raises(CheckFailed, match="1 anomaly") as refused:
        gate(found, ["INT_TYPE_SMALL_INT:image/height"])
    assert "image/width in train" in str(refused.value)


@pytest.mark.parametrize("feature", [*sorted(identity_features(COMMON_FEATURES, {})), "image/hash/dhash"])
def test_names_of_images_do_not_stop_a_run_and_other_classes_do(gate, capsys, feature):
    kind = "ENUM_TYPE_UNEXPECTED_STRING_VALUES"
    found = anomalies(**{feature.replace("/", "__"): kind, "image__class__text": kind})
    with pytest.raises(CheckFailed, match="1 anomaly") as refused:
        gate(found, [])
    assert "image/class/text in train" in str(refused.value)
    assert "gate.allow_anomalies" not in str(refused.value)
    assert f"only allowed values of {feature}. These are names" in capsys.readouterr().out


def test_a_column_of_names_is_known_by_its_values_and_few_values_are_not_enough():
    rows = [Anomaly("train", "patient", "ENUM_TYPE_UNEXPECTED_STRING_VALUES", "")]
    for count, names in ((10, {"patient"}), (9, set())):
        records = [encode_example({"patient": [str(number).encode()]}) for number in range(count)]
        assert names_of_images(rows, {}, partial(iter, records)) == names
    cameras = [encode_example({"patient": [str(number % 5).encode()]}) for number in range(30)]
    assert names_of_images(rows, {}, partial(iter, cameras)) == set()
    # Every image of a set may have another class.
    classes = [Anomaly("train", "label", rows[0].kind, "")]
    records = [encode_example({"label": [str(number).encode()]}) for number in range(40)]
    assert names_of_images(classes, {"image/class/text": "label"}, partial(iter, records)) == set()


def test_a_split_without_data_stops_the_run(gate):
    with pytest.raises(CheckFailed, match="NO_DATA_IN_SPAN"):
        gate(anomalies_pb2.Anomalies(data_missing=True).SerializeToString(), [])


def test_a_kind_that_does_not_exist_is_refused_when_the_graph_is_built():
    types = (standard_artifacts.ExampleAnomalies, standard_artifacts.Examples, standard_artifacts.Schema)
    channels = [Channel(type=kind) for kind in types]
    assert DataGate(*channels, gate={"allow_anomalies": ["INT_TYPE_SMALL_INT"]}).outputs
    with pytest.raises(ConfigError, match="Did you mean INT_TYPE_SMALL_INT"):
        DataGate(*channels, gate={"allow_anomalies": ["INT_TYPE_SMALL_INTS"]})


def test_whole_split_anomalies_have_no_keys():
    proto = anomalies_pb2.Anomalies()
    reason = proto.dataset_anomaly_info.reason.add()
    reason.type = anomalies_pb2.AnomalyInfo.DATASET_LOW_NUM_EXAMPLES
    reason.short_description = "Few."
    rows = read_anomalies(proto.SerializeToString(), "test")
    assert rows == [Anomaly("test", "", "DATASET_LOW_NUM_EXAMPLES", "Few.")]
    assert table(rows) == "  (whole split) in test: DATASET_LOW_NUM_EXAMPLES\n    Few."


@given(values=st.lists(st.integers(-5, 15), max_size=4), low=st.integers(-5, 5), high=st.integers(5, 15))
def test_int_domains_are_closed_intervals(values, low, high):
    feature = schema_pb2.Feature(name="x", type=schema_pb2.INT)
    feature.int_domain.min, feature.int_domain.max = low, high
    offending = offends({"x": np.array(values, np.int64)}, "x", feature, {})
    assert offending == any(not low <= value <= high for value in values)


def test_what_else_offends():
    required = schema_pb2.Feature(name="x", type=schema_pb2.FLOAT)
    required.presence.min_fraction = 1
    assert offends({}, "x", required, {})
    assert offends({"x": np.array([np.nan], np.float32)}, "x", required, {})
    assert offends({"x": [b"text"]}, "x", required, {})
    assert not offends({"x": np.array([1.0], np.float32)}, "x", required, {})
    single = schema_pb2.Feature(name="x", type=schema_pb2.BYTES, domain="names")
    single.shape.dim.add(size=1)
    domains = {"names": frozenset({"cat"})}
    assert offends({"x": [b"cat", b"cat"]}, "x", single, domains)
    assert offends({"x": [b"dog"]}, "x", single, domains)
    assert not offends({"x": [b"cat"]}, "x", single, domains)
    assert offends({"x": [b"cat"]}, "x", None, {})
    assert not offends({}, "x", None, {})
