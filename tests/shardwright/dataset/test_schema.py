"""Rendered schemas: deterministic, curated freely, refused where they no longer fit."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tensorflow_metadata.proto.v0 import schema_pb2

from shardwright.dataset.dataset_schema import check_schema, parse_schema, render_schema, schema_file_for
from shardwright.dataset.manifest import MULTI, mask_feature
from shardwright.errors import UsageError
from shardwright.formats.base import Survey
from shardwright.ingest import example_features, labels_kind
from shardwright.text.escaping import escape

CLASSES = ("Fish", "Flower", "Gravel", "Sugar")
NAMES = st.lists(
    st.text(
        st.characters(min_codepoint=32, blacklist_categories=("Cs",))
        | st.sampled_from("\x7f\x85\x9b\u200d\u202e\u2028\U000e0041"),
        min_size=1,
        max_size=12,
    ),
    min_size=1,
    max_size=5,
    unique=True,
)


def rendered(task, classes, **options):
    survey = Survey(classes=tuple(classes), listed=bytearray(), **options)
    return render_schema(task, classes, labels_kind(task, survey), example_features(task, survey))


@given(classes=NAMES, task=st.sampled_from(["segmentation", "classification"]))
def test_whatever_is_rendered_parses_and_fits(classes, task):
    text = rendered(task, classes)
    check_schema(text, text, "x.schema.pbtxt")
    assert escape(text, lines=True) == text
    features = {f.name: f for f in parse_schema(text, "x").feature}
    assert list(features["image/class/text"].string_domain.value) == classes
    assert features["image/class/label"].int_domain.max == len(classes) - 1
    assert (mask_feature(classes[0]) in features) == (task == "segmentation")


def test_curation_is_welcome():
    schema = parse_schema(rendered("segmentation", CLASSES), "x")
    for feature in schema.feature:
        if feature.name == "image/height":
            feature.int_domain.min = 350
            feature.int_domain.max = 350
    assert feature.type == schema_pb2.INT
    check_schema(str(schema), rendered("segmentation", CLASSES), "x")


def test_another_class_is_refused_with_the_difference():
    text = rendered("segmentation", CLASSES)
    with pytest.raises(UsageError, match=r"(?s)clouds\.schema.*-feature image/segmentation/Sugar/area: INT.*Salt"):
        check_schema(text, rendered("segmentation", ("Fish", "Flower", "Gravel", "Salt")), "clouds.schema.pbtxt")


def test_order_of_classes_matters():
    there, wanted = rendered("classification", CLASSES), rendered("classification", CLASSES[::-1])
    with pytest.raises(UsageError, match="class 0: Sugar"):
        check_schema(there, wanted, "x")


def test_further_features_and_several_labels_are_optional_lists():
    text = rendered("classification", ["a", "b"], labels=MULTI, features={"image/meta/age": "float32"})
    features = {f.name: f for f in parse_schema(text, "x").feature}
    assert features["image/meta/age"].type == schema_pb2.FLOAT
    for name in ("image/class/label", "image/class/text", "image/meta/age"):
        assert not features[name].HasField("presence")
        assert not features[name].HasField("shape")
    with pytest.raises(UsageError, match="feature image/meta/age: FLOAT"):
        check_schema(text, rendered("classification", ["a", "b"], labels=MULTI), "x")


def test_what_is_not_counted_has_a_mask_of_its_own():
    names = {f.name for f in parse_schema(rendered("segmentation", CLASSES, ignore=True), "x").feature}
    assert {"image/segmentation/ignore/rle", "image/segmentation/ignore/area"} <= names


def test_text_that_is_no_schema_names_file_and_line():
    with pytest.raises(UsageError, match=r"bad\.pbtxt: not a schema: 2:"):
        parse_schema("feature {\n nonsense: 1\n}", "bad.pbtxt")


def test_file_is_next_to_the_configuration():
    assert schema_file_for("configs/clouds.yaml") == Path("configs/clouds.schema.pbtxt")
