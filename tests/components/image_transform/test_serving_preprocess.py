"""Serving begins with the file of the camera, and repeats the changes of the ingest."""

import dataclasses
import io
import struct
from types import SimpleNamespace
from typing import Any

import build
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_transform as tft
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from property_tests import tries

from shardwright.components.image_trainer.export.signatures import FlippedMean, ServedModel
from shardwright.components.image_trainer.spec import TrainRecipe
from shardwright.components.image_transform.serving_preprocess import as_ingested, exif_orientation
from shardwright.components.image_transform.transform_recipe import ingest_image_options
from shardwright.components.predictor.sources import servable
from shardwright.config import parse_config
from shardwright.config.images import ImagesConfig, images_config
from shardwright.dataset.reader import ImageDataset
from shardwright.dataset.stored_image import prepare
from shardwright.images.exif import only_orientation, read_orientation
from shardwright.images.read_header import read_header
from shardwright.ingest import ingest
from shardwright.loader import dataset_statistics, load
from shardwright.pipelines.standalone_transform import EXAMPLES, GRAPH, transform_dataset
from shardwright.tfrecords.records import decode_example

pytestmark = pytest.mark.slow

ORIENTATIONS = range(1, 9)

ORIENTATION = tf.function(exif_orientation, input_signature=[tf.TensorSpec([], tf.string)])


def little(orientation, tag=274, kind=3, count=1):
    """A little-endian block with another value before the orientation."""
    entries = [(0x0100, 3, 1, 77), (tag, kind, count, orientation)]
    packed = b"".join(struct.pack("<HHII", *entry) for entry in entries)
    return b"II*\0" + struct.pack("<IH", 8, len(entries)) + packed + bytes(4)


def photograph(kind, block=b"", seed=0, size=(37, 50)):
    """Smooth, not symmetric, of colors."""
    noise = np.random.default_rng(seed).integers(0, 256, (4, 5, 3), dtype=np.uint8)
    image = Image.fromarray(noise).resize(size[::-1], Image.Resampling.BICUBIC)
    file = io.BytesIO()
    metadata = {"exif": (b"Exif\0\0" if kind == "jpeg" else b"") + block} if block else {}
    image.save(file, kind, **({"quality": 95, "subsampling": 0} if kind == "jpeg" else {}), **metadata)
    return file.getvalue()


def pixels_of(file):
    return np.asarray(Image.open(io.BytesIO(file)).convert("RGB"), int)


@pytest.mark.parametrize("kind", ["jpeg", "png"])
def test_the_orientation_is_found_where_the_ingest_finds_it(kind):
    blocks = [*map(only_orientation, ORIENTATIONS), *map(little, ORIENTATIONS), little(6, kind=4)]
    blocks += [little(9), little(0), little(6, tag=0x0113), little(6, kind=1), little(6, count=2), b"II*\0", b"no TIFF"]
    for block in blocks:
        data = photograph(kind, block)
        assert ORIENTATION(data).numpy() == read_header(data, max_pixels=10**6).orientation == read_orientation(block)
    assert {read_orientation(block) for block in blocks} == set(ORIENTATIONS)
    # Behind a segment of something else.
    data = photograph("jpeg", only_orientation(8))
    other = b"\xff\xe2" + struct.pack(">H", 302) + b"Exif\0\0".ljust(300, b"\xff")
    assert ORIENTATION(data[:2] + other + data[2:]).numpy() == 8


@tries(150)
@given(st.sampled_from([only_orientation(6), little(3)]), st.data())
def test_damaged_blocks_are_read_alike(block, data):
    spoilt = bytearray(block)
    for _ in range(data.draw(st.integers(1, 3))):
        spoilt[data.draw(st.integers(0, len(block) - 1))] = data.draw(st.sampled_from([0, 1, 3, 8, 0x12, 0xFF]))
    cut = bytes(spoilt[: data.draw(st.integers(1, len(spoilt)))])
    file = photograph("jpeg", cut)
    assert ORIENTATION(file).numpy() == read_header(file, max_pixels=10**6).orientation


@tries(60)
@given(st.binary(max_size=60), st.booleans())
def test_any_bytes_have_an_orientation(data, jpeg):
    start = b"\xff\xd8\xff\xe1\0\x30Exif\0\0II*\0" if jpeg else b"\x89PNG\r\n\x1a\n\0\0\0\x20eXIfMM\0*"
    assert ORIENTATION(start + data).numpy() in ORIENTATIONS
    assert ORIENTATION(data).numpy() in ORIENTATIONS


@pytest.mark.parametrize(
    "options",
    [
        {"orientation": "apply"},
        {"orientation": "apply", "encoding": "png"},
        {"resize": "longest_side", "size": 30},
        {"orientation": "apply", "resize": "letterbox", "size": [20, 30], "encoding": "jpeg", "chroma": 444},
        {"resize": "fill_crop", "size": [24, 24], "quality": 98},
    ],
)
@pytest.mark.parametrize("kind", ["jpeg", "png"])
def test_the_ingests_steps_are_repeated(kind, options):
    images = build.config(images=options).images
    repeat = tf.function(
        lambda data: as_ingested(data, ingest_image_options({"images": options})),
        input_signature=[tf.TensorSpec([], tf.string)],
    )
    for number, orientation in enumerate(ORIENTATIONS):
        data = photograph(kind, only_orientation(orientation), number, (37 + number, 50))
        stored, header, _ = prepare(data, images)
        again = repeat(data).numpy()
        assert (again[:3] == b"\xff\xd8\xff") == (header.format == "jpeg")
        exact, _, _ = prepare(data, dataclasses.replace(images, encoding="png"))
        wanted, found, lossless = (pixels_of(file) for file in (stored, again, exact))
        assert wanted.shape == found.shape
        if images.resize == "keep":
            np.testing.assert_array_equal(found, wanted)
        # TensorFlow's filter and Pillow's round differently; what else there is, is one round trip through JPEG.
        trip, difference = np.abs(wanted - lossless), np.abs(found - wanted)
        assert difference.mean() <= trip.mean() + 0.5
        assert difference.max() <= 2 * trip.max() + 1


CONVERTED = [
    {"unsupported_formats": "png"},
    {"unsupported_formats": "jpeg", "quality": 70},
    {"unsupported_formats": "jpeg", "orientation": "apply", "chroma": 444},
    {"unsupported_formats": "png", "orientation": "apply", "encoding": "jpeg"},
    {"unsupported_formats": "png", "orientation": "apply", "resize": "letterbox", "size": [20, 30]},
]


@pytest.mark.parametrize("options", CONVERTED)
def test_files_of_other_formats_are_converted_as_the_ingest_has_converted_them(options):
    images = images_config(options)
    repeat = tf.function(
        lambda data: as_ingested(data, ingest_image_options({"images": options})),
        input_signature=[tf.TensorSpec([], tf.string)],
    )
    for number, (kind, mode) in enumerate([("bmp", "RGB"), ("webp", "RGB"), ("gif", "P"), ("tiff", "CMYK")]):
        image = Image.open(io.BytesIO(photograph("png", seed=number))).convert(mode)
        file = io.BytesIO()
        if kind in ("webp", "tiff"):
            exif = Image.Exif()
            exif[0x0112] = 6
            image.save(file, kind, exif=exif, **({"lossless": True} if kind == "webp" else {}))
        else:
            image.save(file, kind)
        data = file.getvalue()
        stored, _, frames = prepare(data, images)
        for file_served in [servable(data, images)[0], *([data] if kind == "bmp" else [])]:
            again = repeat(file_served).numpy()
            assert again[:3] == stored[:3]
            if images.resize == "keep" or file_served is not data:
                np.testing.assert_array_equal(pixels_of(again), pixels_of(stored))
        assert servable(data, images)[1] == frames
        if kind != "bmp":
            with pytest.raises(tf.errors.InvalidArgumentError, match="shardwright predict"):
                repeat(data)
    jpeg = photograph("jpeg")
    assert servable(jpeg, images)[0] == jpeg


def test_what_the_ingest_leaves_alone_is_not_touched():
    assert ingest_image_options({}) == ingest_image_options({"images": {"quality": 80, "verify": "full"}}) == {}
    data = photograph("jpeg", only_orientation(6))
    assert as_ingested(data, {}) == data
    upright = photograph("jpeg")
    assert as_ingested(tf.constant(upright), {"orientation": "apply"}).numpy() == upright
    assert ImagesConfig().orientation == "keep"


def test_turned_images_are_served_as_they_were_trained_on(tmp_path):
    """The same files through ingest, transform and loader; through the serving signature; through the graph."""
    policy = "letterbox"
    (tmp_path / "images").mkdir()
    files = {}
    for orientation in ORIENTATIONS:
        for kind in ("jpeg", "png"):
            data = photograph(kind, only_orientation(orientation), orientation, (61, 90))
            files[f"{orientation}.{kind}"] = data
            (tmp_path / "images" / f"{orientation}.{kind}").write_bytes(data)
    config = parse_config(
        {
            "input": {"images": "images", "labels": {"format": "none"}}, "task": "classification",
            "split": {"ratios": {"train": 1.0}}, "evaluator": {"split": "train"}, "images": {"orientation": "apply"},
            "transform": {"size": [20, 24], "resize": policy, "encoding": "png"}, "loader": {"normalize": "none"},
        },
        base=str(tmp_path),
    )  # fmt: skip
    ingest(config, tmp_path / "in", quiet=True)
    source = ImageDataset.open(tmp_path / "in")
    transform_dataset(str(tmp_path / "in"), config, tmp_path / "made")
    out, graph = (tmp_path / "made" / name for name in (EXAMPLES, GRAPH))
    spec: Any = SimpleNamespace(
        height=20, width=24, resize=policy, mean=None, std=None, multi=False, task="segmentation",
        classes=("a", "b", "c"), recipe=TrainRecipe.from_config(config), ignore=False, texts=(),
        ingested=dataset_statistics(out)["ingested"],
    )  # fmt: skip
    assert spec.ingested == {"orientation": "apply"}
    served = ServedModel(FlippedMean(lambda images, training: images, spec), spec)
    records = [decode_example(record) for _, record in ImageDataset.open(out).records("train")]
    batch = next(load(out, "train", len(files), normalize="none").as_numpy_iterator())
    trained = batch[0] if isinstance(batch, tuple) else batch
    encoded = tf.constant([files[example["image/key"][0].decode()] for example in records])
    found = served.signatures()["serving_default"](image_bytes=encoded)["probabilities"].numpy()
    assert len(found) == len(files)
    # Turning is exact and the JPEG the same, so nothing differs at all.
    np.testing.assert_array_equal(found, trained)
    transformed = tft.TFTransformOutput(str(graph)).transform_raw_features({"image/encoded": encoded})
    np.testing.assert_array_equal(transformed["image"], trained)
    # The ingested examples of the evaluation are prepared in the same way.
    stored = [decode_example(record)["image/encoded"][0] for _, record in source.records("train")]
    found = served._probabilities(tf.stack([served._resized(one) for one in stored]), None)
    np.testing.assert_array_equal(found, trained)
