"""Annotations move with the pixels: shapes, class ids, boxes, labels; all Exif turns, odd sizes."""

import build
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from PIL import Image, ImageDraw
from property_tests import tries

from shardwright.config import ImagesConfig
from shardwright.dataset.resampled_annotations import label_features, resample_annotations, stored_runs
from shardwright.dataset.stored_image import prepare
from shardwright.errors import ConfigError
from shardwright.images.boxes import PREFIX, move_boxes
from shardwright.images.geometry import POLICIES, plan_geometry, source_columns, source_rows
from shardwright.images.header import ImageHeader
from shardwright.images.orientation import displayed_size
from shardwright.masks import rle
from shardwright.masks.coordinate_frame import orient_runs
from shardwright.tfrecords import encode, records

SIDES = st.integers(5, 140)


def example(height, width, masks, **more):
    """As ingested: masks by class."""
    features = {"image/encoded": b"", "image/key": b"k", "image/height": height, "image/width": width, **more}
    for name, mask in masks.items():
        runs = rle.encode(mask)
        features[f"image/segmentation/{name}/rle"] = encode.ints(runs.reshape(-1))
        features[f"image/segmentation/{name}/area"] = rle.area(runs)
    return records.decode_example(encode.encode_example(features))


def moved(found, plan, classes, **options):
    header = ImageHeader("png", plan.height, plan.width, 3, 1)
    return resample_annotations(found, plan, header, task="segmentation", classes=classes, **options)


def drawn(features, name, plan):
    runs = rle.from_flat(np.asarray(features[f"image/segmentation/{name}/rle"].values))
    return rle.draw(runs, plan.height, plan.width)


@tries(50)
@given(
    st.sampled_from(POLICIES), st.integers(1, 8), st.sampled_from([10, 14, 25, 50]), st.floats(1, 3), st.integers(0, 99)
)
def test_a_drawn_shape_stays_on_the_shape(policy, orientation, radius, shrink, seed):
    """A disc of 10 output pixels' radius or more, turned by Exif, shrunk: its mask covers it."""
    from shardwright.images import tf_ops

    random = np.random.default_rng(seed)
    height, width = (int(radius * random.uniform(2.8, 4)) | 1 for _ in range(2))
    # The output of a source whose sides are `shrink` times as long, in either frame, of slightly another aspect.
    out = displayed_size(height, width, orientation)
    source_height, source_width = round(height * shrink), round(width * shrink * random.uniform(1, 1.2))
    image = Image.new("RGB", (source_width, source_height))
    x, y, r = source_width / 2, source_height / 2, radius * shrink * 1.25
    ImageDraw.Draw(image).ellipse((x - r, y - r, x + r, y + r), fill=(255, 255, 255))
    runs = rle.encode(np.asarray(image)[..., 0] > 127)
    # Through the ingest, which turns image and mask, then through the transform.
    data, header, _ = prepare(build.encoded(image, orientation=orientation), ImagesConfig(orientation="apply"))
    turned = orient_runs(runs, source_height, source_width, orientation)
    plan = plan_geometry(policy, header.height, header.width, *out)
    shown = tf_ops.decode_planned(data, plan, jpeg=False)[..., 0] > 127
    mask = rle.draw(rle.resample(turned, plan), plan.height, plan.width) > 0
    overlap = (shown & mask).sum() / (shown | mask).sum()
    smaller = r * min(plan.resized_height / plan.crop_height, plan.resized_width / plan.crop_width)
    assume(smaller >= 10)
    assert overlap >= (0.99 if smaller >= 50 else 0.95), (overlap, smaller, plan)


@tries(60)
@given(st.sampled_from(POLICIES), SIDES, SIDES, SIDES, SIDES, st.integers(0, 99))
def test_masks_are_the_drawn_and_sampled_ones_and_no_class_appears(policy, h, w, height, width, seed):
    """In a picture of class ids, every output pixel has the id of the very source pixel it shows, or none."""
    ids = np.random.default_rng(seed).integers(0, 4, (h, w))
    classes = ("a", "b", "c")
    plan = plan_geometry(policy, h, w, height, width)
    found = moved(example(h, w, {name: ids == i + 1 for i, name in enumerate(classes)}), plan, classes)
    rows, columns = source_rows(plan), source_columns(plan)
    expected = np.where((rows < 0)[:, None] | (columns < 0), 0, ids[np.ix_(rows, columns)])
    masks = [drawn(found.features, name, plan) for name in classes]
    assert np.sum(masks, axis=0).max() <= 1
    np.testing.assert_array_equal(sum(mask.astype(int) * (i + 1) for i, mask in enumerate(masks)), expected)
    shown = sorted(set(expected.reshape(-1).tolist()) - {0})
    assert found.area == [int((expected == i + 1).sum()) for i in range(3)]
    assert found.present == [int(i + 1 in shown) for i in range(3)]
    assert list(found.features["image/class/label"].values) == [i - 1 for i in shown]


def test_boxes_captions_and_what_is_ignored_go_along():
    plan = plan_geometry("fill_crop", 40, 80, 20, 20)
    edges = {"xmin": [0.0, 0.5], "xmax": [0.1, 0.75], "ymin": [0.0, 0.25], "ymax": [1.0, 0.5]}
    more = {f"{PREFIX}bbox/{name}": encode.floats(values) for name, values in edges.items()}
    more |= {f"{PREFIX}class/label": encode.ints([1, 2]), "image/caption/text": encode.byte_strings([b"x", b"y"])}
    ignore = np.zeros((40, 80), bool)
    ignore[:, 30:50] = True
    before = example(40, 80, {"a": ~ignore, "ignore": ignore}, **more)
    found = moved(before, plan, ("a",)).features
    boxes = move_boxes({name: values for name, values in before.items() if name.startswith(PREFIX)}, plan)
    assert found[f"{PREFIX}class/label"] == 2
    assert boxes[f"{PREFIX}class/label"].tolist() == [2]
    assert list(found["image/caption/text"].values) == [b"x", b"y"]
    assert (drawn(found, "ignore", plan) + drawn(found, "a", plan) == 1).all()
    assert found["image/key"] == b"k"
    assert (found["image/original/height"], found["image/original/width"]) == (40, 80)


@pytest.mark.parametrize(("labels", "kind"), [("one_hot", "single"), ("multi_hot", "multi"), ("multi_hot", "masks")])
def test_labels_become_a_number_for_each_class(labels, kind):
    assert label_features(labels, kind) == {f"image/class/{labels}": "float32"}
    plan = plan_geometry("stretch", 4, 4, 2, 2)
    masks = {"a": np.zeros((4, 4)), "b": np.ones((4, 4))}
    found = moved(example(4, 4, masks), plan, ("a", "b"), labels=labels)
    assert list(found.features[f"image/class/{labels}"].values) == [0, 1]


@pytest.mark.parametrize(("labels", "kind"), [("one_hot", "multi"), ("one_hot", "masks"), ("multi_hot", "none")])
def test_labels_that_do_not_fit_are_refused(labels, kind):
    with pytest.raises(ConfigError, match=r"transform\.labels"):
        label_features(labels, kind)


FLAT = st.lists(st.integers(0, 6), max_size=4).map(lambda values: np.array(values, np.int64))


@given(st.lists(st.one_of(FLAT, st.lists(st.integers(1, 4), max_size=6).map(np.cumsum)), max_size=3))
def test_several_masks_are_checked_as_each_alone(masks):
    def attempt(call):
        try:
            return [runs.tolist() for runs in call()]
        except rle.RleError as error:
            return str(error)

    assert attempt(lambda: stored_runs(masks)) == attempt(lambda: [rle.from_flat(mask) for mask in masks])


@pytest.mark.parametrize("runs", [[0, 2, 2, 1], [3, 1, 0, 1], [0, 0], [-1, 2]])
def test_invalid_runs_among_good_ones_are_refused(runs):
    with pytest.raises(rle.RleError, match="stored run"):
        stored_runs([np.array([0, 1, 5, 2]), np.array(runs)])
