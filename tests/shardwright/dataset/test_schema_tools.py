"""Curating a schema: inferred domains hold the values seen and no others far off; differences are listed by feature."""

import pytest

from shardwright.dataset.dataset_schema import (
    check_schema,
    infer_schema,
    parse_schema,
    render_schema,
    schema_difference,
)
from shardwright.dataset.reader import ImageDataset
from shardwright.errors import UsageError
from shardwright.tfrecords.lazy_example import LazyExample


def measured(number, example):
    example["image/quality/brightness"] = 0.4 + number / 100
    example["image/quality/contrast"] = 0.12345678
    example["image/quality/sharpness"] = number * 1e-7
    return {**example, "image/meta/place": [b"here" if number % 2 else b"there"], "image/meta/age": [10 * number]}


@pytest.fixture(scope="module")
def dataset(small_dataset, tmp_path_factory):
    return ImageDataset.open(
        small_dataset(tmp_path_factory.mktemp("schema"), counts={"train": [6], "eval": [5]}, change=measured)
    )


def test_domains_are_as_narrow_as_the_values(dataset):
    text = infer_schema(dataset, margin=0.5)
    manifest = dataset.manifest
    check_schema(text, render_schema(manifest.task, manifest.classes, manifest.labels, manifest.features), "x")
    features = {feature.name: feature for feature in parse_schema(text, "x").feature}
    height = features["image/height"].int_domain
    assert (height.min, height.max) == (24, 24)
    assert list(features["image/format"].string_domain.value) == ["png"]
    brightness = features["image/quality/brightness"].float_domain
    assert (brightness.min, brightness.max) == pytest.approx((0.35, 0.55), abs=1e-5)
    age = features["image/meta/age"].int_domain
    assert (age.min, age.max) == (-50, 150)
    assert list(features["image/meta/place"].string_domain.value) == ["here", "there"]
    assert not features["image/key"].string_domain.value
    assert features["image/segmentation/Fish/area"].int_domain.min == 0
    assert text == infer_schema(dataset, margin=0.5)


def test_no_bound_is_rounded_past_a_value(dataset):
    features = {feature.name: feature for feature in parse_schema(infer_schema(dataset, margin=0), "x").feature}
    for name in ("contrast", "sharpness"):
        values = [
            LazyExample(payload).number(f"image/quality/{name}")
            for split in dataset.splits
            for _, payload in dataset.records(split)
        ]
        domain = features[f"image/quality/{name}"].float_domain
        assert domain.min <= min(values) <= max(values) <= domain.max
        assert domain.max - domain.min == pytest.approx(max(values) - min(values), abs=1e-6)


def test_what_a_served_image_has(dataset):
    schema = parse_schema(infer_schema(dataset), "x")
    assert list(schema.default_environment) == ["TRAINING", "SERVING"]
    served = {feature.name for feature in schema.feature if "SERVING" not in feature.not_in_environment}
    assert {"image/encoded", "image/height", "image/quality/brightness"} <= served
    assert not [name for name in served if "class" in name or "segmentation" in name or "key" in name]


def test_differences_are_listed_by_feature(dataset):
    one, other = infer_schema(dataset, margin=0), infer_schema(dataset, margin=0.5)
    lines = schema_difference(one, other, "one", "other")
    assert "-image/quality/brightness float_domain.max: 0.5" in lines
    assert "+image/quality/brightness float_domain.max: 0.55" in lines
    assert not [line for line in lines if "image/height" in line]
    assert schema_difference(one, one, "one", "other") == []
    with pytest.raises(UsageError, match="other: not a schema"):
        schema_difference(one, "nonsense: 1", "one", "other")
