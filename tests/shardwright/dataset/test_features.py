"""Presets: names and forms of stored features, renaming, refusals."""

import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from shardwright.config.shards import PRESETS
from shardwright.dataset.feature_presets import StoredFeatures
from shardwright.errors import ConfigError
from shardwright.masks import rle
from shardwright.tfrecords.encode import byte_strings, encode_example, ints
from shardwright.tfrecords.records import decode_example

OURS = {
    "image/encoded": "bytes",
    "image/format": "bytes",
    "image/height": "int64",
    "image/width": "int64",
    "image/filename": "bytes",
    "image/key": "bytes",
    "image/blake3": "bytes",
    "image/class/label": "int64",
    "image/class/text": "bytes",
}
MASKED = {
    **OURS,
    "image/segmentation/Fish/rle": "int64",
    "image/segmentation/Fish/area": "int64",
    "image/segmentation/ignore/rle": "int64",
    "image/segmentation/ignore/area": "int64",
}
EXAMPLE = {
    "image/encoded": b"\xff\xd8\xff",
    "image/format": b"jpeg",
    "image/height": 3,
    "image/width": 4,
    "image/filename": b"a.jpg",
    "image/key": b"x/a.jpg",
    "image/blake3": b"00",
    "image/class/label": ints([1]),
    "image/class/text": byte_strings([b"Fish"]),
    "depth": 2.5,
}


def stored(preset="tf_vision", renamed=None, features=None, labels="single", classes=3):
    features = {**OURS, "depth": "float32"} if features is None else features
    return StoredFeatures.of(preset, renamed or {}, features, labels=labels, classes=classes)


def as_read(features):
    return {name: list(values) for name, values in decode_example(encode_example(features)).items()}


def test_tf_vision_changes_nothing():
    assert stored().apply(EXAMPLE) == EXAMPLE
    assert stored().names == {}
    assert stored().kinds == {**OURS, "depth": "float32"}


def test_tfds_has_the_names_of_its_image_folders():
    features = stored("tfds")
    assert as_read(features.apply(EXAMPLE)) == {
        "depth": [2.5],
        "id": [b"x/a.jpg"],
        "image": [b"\xff\xd8\xff"],
        "image/filename": [b"a.jpg"],
        "label": [1],
    }
    assert features.names == {"image/encoded": "image", "image/key": "id", "image/class/label": "label"}


@pytest.mark.parametrize(("labels", "name"), [("single", "label"), ("multi", "labels"), ("masks", "labels")])
def test_tfds_has_labels_where_there_may_be_several(labels, name):
    assert name in stored("tfds", labels=labels).kinds


def test_tfds_has_no_label_where_the_input_has_none():
    assert not {"label", "labels"} & set(stored("tfds", labels="none").kinds)


def test_kaggle_flowers_has_size_and_one_hot_class():
    features = stored("kaggle_flowers")
    assert as_read(features.apply(EXAMPLE)) == {
        "class": [1],
        "depth": [2.5],
        "id": [b"x/a.jpg"],
        "image": [b"\xff\xd8\xff"],
        "label": [b"Fish"],
        "one_hot_class": [0.0, 1.0, 0.0],
        "size": [3, 4],
    }
    assert features.kinds["one_hot_class"] == "float32"


@pytest.mark.parametrize("labels", ["multi", "masks", "none"])
def test_kaggle_flowers_needs_one_class_an_image(labels):
    with pytest.raises(ConfigError, match="features.preset"):
        stored("kaggle_flowers", labels=labels)


def test_rle_text_needs_masks():
    with pytest.raises(ConfigError, match="has none"):
        stored("rle_text")


@given(st.data(), st.integers(1, 12), st.integers(1, 12))
def test_masks_are_pngs_of_zero_and_one_under_tfds(data, height, width):
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=height * width, max_size=height * width)))
    mask = mask.reshape(height, width)
    example = {
        **EXAMPLE,
        "image/height": height,
        "image/width": width,
        "image/segmentation/Fish/rle": ints(rle.encode(mask).reshape(-1)),
    }
    found = stored("tfds", features=MASKED, labels="masks").apply(example)["segmentation_mask/Fish"]
    pixels = np.asarray(Image.open(io.BytesIO(found)))
    assert pixels.dtype == np.uint8
    assert np.array_equal(pixels, mask.astype(np.uint8))


def test_rle_text_stores_the_sources_own_strings_or_writes_the_usual_ones():
    features = stored("rle_text", features=MASKED, labels="masks")
    example = {
        **EXAMPLE,
        "image/segmentation/Fish/rle": ints([1, 2, 5, 1]),
        "image/segmentation/Fish/area": 3,
        "image/segmentation/ignore/rle": ints([]),
        "image/segmentation/ignore/area": 0,
    }
    name = "image/segmentation/Fish/rle"
    found = as_read(features.apply(example, {name: ["0 2", "9 1"]}))
    assert found[f"{name}_text"] == [b"0 2", b"9 1"]
    assert name not in found
    assert found["image/segmentation/Fish/area"] == [3]
    assert found["image/segmentation/ignore/rle_text"] == [b""]
    assert as_read(features.apply(example))[f"{name}_text"] == [b"2 2 6 1"]
    assert features.kinds[f"{name}_text"] == "bytes"


def test_map_renames_ours_and_what_a_preset_adds():
    features = stored("kaggle_flowers", {"image/encoded": "jpeg", "size": "shape"})
    assert {"jpeg", "shape"} <= set(features.apply(EXAMPLE))
    assert features.names["image/encoded"] == "jpeg"


def test_map_brings_back_what_a_preset_leaves_out():
    assert stored("tfds", {"image/blake3": "sha"}).apply(EXAMPLE)["sha"] == b"00"


def test_map_renames_a_mask_in_the_form_of_the_preset():
    features = stored("tfds", {"image/segmentation/Fish/rle": "fish"}, MASKED, "masks")
    assert features.kinds["fish"] == "bytes"
    assert "segmentation_mask/Fish" not in features.kinds


def test_names_may_be_swapped():
    features = stored(renamed={"image/key": "image/filename", "image/filename": "image/key"})
    assert features.apply(EXAMPLE)["image/filename"] == b"x/a.jpg"


@pytest.mark.parametrize(
    ("preset", "renamed", "message"),
    [
        ("tf_vision", {"image/nothing": "x"}, "features.map.image/nothing: .image/nothing. is not a feature"),
        ("tf_vision", {"size": "x"}, "is not a feature"),
        ("tf_vision", {"image/key": "image/filename"}, "image/filename"),
        ("tfds", {"depth": "image"}, "both be stored as 'image'"),
        ("kaggle_flowers", {"size": "class"}, "both be stored as 'class'"),
    ],
)
def test_unknown_names_and_collisions_are_refused(preset, renamed, message):
    with pytest.raises(ConfigError, match=message):
        stored(preset, renamed)


def test_a_further_feature_that_takes_a_name_of_the_preset_is_refused():
    with pytest.raises(ConfigError, match="'image'"):
        stored("tfds", features={**OURS, "image": "bytes"})


@pytest.mark.parametrize("preset", PRESETS)
def test_a_feature_that_an_example_lacks_stays_missing(preset):
    labels = "masks" if preset == "rle_text" else "single"
    example = {name: value for name, value in EXAMPLE.items() if name != "depth"}
    assert "depth" not in stored(preset, labels=labels).apply(example)
