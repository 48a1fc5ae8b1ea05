"""`features.json` and `dataset_info.json`: every record is as they state, and TFDS, where installed, reads them."""

import io
import json
from pathlib import Path

import numpy as np
import pytest
from ingesting import run
from PIL import Image
from recording import picture, reading, write_records

from shardwright.dataset.manifest import Manifest, ShardInfo
from shardwright.dataset.reader import ImageDataset
from shardwright.dataset.tfds_files import FEATURES_FILE, INFO_FILE, tfds_files
from shardwright.masks import rle
from shardwright.tfrecords.encode import byte_strings, encode_example, floats, ints
from shardwright.tfrecords.records import decode_example
from shardwright.verify.findings import MISSING
from shardwright.verify.verify_dataset import verify

CLASSES = ["potted plant", "tv/monitor"]
PREFIX = "tensorflow_datasets.core.features."
# The class of TFDS and the field of its message `Feature` that belongs to it.
FIELDS = {
    "image_feature.Image": "image",
    "scalar.Scalar": "tensor",
    "tensor_feature.Tensor": "tensor",
    "text_feature.Text": "text",
    "class_label_feature.ClassLabel": "classLabel",
    "sequence_feature.Sequence": "sequence",
}


def mask(number, i):
    pixels = np.zeros((10, 12), np.uint8)
    pixels[number % 5 : number % 5 + 3, i : i + 4] = (number + i) % 3 > 0
    return pixels


def record(number, task, labels):
    found = {"image/encoded": picture(number), "image/key": b"%d.jpg" % number, "image/meta/depth": ints([1] * number)}
    if number % 2:
        found["image/caption/text"] = byte_strings([b"a caption", "Zürich".encode()])
        found |= {f"image/object/bbox/{side}": floats([0.25, 0.5]) for side in ("xmin", "ymin", "xmax", "ymax")}
        found["image/object/class/label"] = ints([1, 2])
        found["image/object/class/text"] = byte_strings([name.encode() for name in CLASSES])
    if task == "segmentation":
        return found | {
            f"image/segmentation/{name.replace('/', '%2F')}/rle": ints(rle.encode(mask(number, i)).reshape(-1))
            for i, name in enumerate([*CLASSES, "ignore"])
        }
    names = [CLASSES[label].encode() for label in labels]
    return found | {"image/class/text": byte_strings(names)}


def dataset(root, task="segmentation", labels=lambda number: [number % 2], **options):
    records = [encode_example(record(number, task, labels(number))) for number in range(7)]
    write_records(root / "records/a.tfrecord", records)
    given = {"classes": CLASSES, **options.pop("input", {})}
    raw = {**reading(root / "records", task, **given), "shards": {"records": 2}, **options}
    run(raw, root / "ds", workers=1)
    return ImageDataset.open(root / "ds")


DATASETS = {
    "masks": {},
    "masks-as-pictures": {"features": {"preset": "tfds"}},
    "masks-as-texts": {"features": {"preset": "rle_text"}},
    "one-class": {"task": "classification"},
    "one-class-flowers": {"task": "classification", "features": {"preset": "kaggle_flowers"}},
    "some-without": {
        "task": "classification",
        "labels": lambda number: [number % 2] if number else [],
        "input": {"unlisted_images": "unlabeled"},
    },
    "several": {"task": "classification", "labels": lambda number: [0, 1, 0][: number % 4]},
    "renamed": {"task": "classification", "features": {"map": {"image/class/label": "y", "image/encoded": "x"}}},
    "raw": {"task": "classification", "images": {"encoding": "raw", "size": [8, 8], "resize": "stretch"}},
}


@pytest.fixture(scope="module", params=DATASETS)
def made(request, tmp_path_factory):
    return request.param, dataset(tmp_path_factory.mktemp(request.param), **DATASETS[request.param])


def described(found):
    raw = json.loads((found / FEATURES_FILE).read_text())
    assert raw["pythonClassName"] == PREFIX + "features_dict.FeaturesDict"
    return raw["featuresDict"]["features"]


def check_value(feature, values, name):
    """Checks a record's values by the rules of TFDS' parser; raises where TFDS would."""
    kind = feature["pythonClassName"].removeprefix(PREFIX)
    # A message's `oneof` may be set once.
    assert set(feature) - {"pythonClassName", "description"} == {FIELDS[kind]}, name
    content = feature[FIELDS[kind]]
    if kind == "sequence_feature.Sequence":
        assert content["length"] == "-1"
        for value in values if values is not None else []:
            check_value(content["feature"], [value], name)
        return
    if kind == "tensor_feature.Tensor":
        sizes = [int(size) for size in content["shape"]["dimensions"]]
        count = 0 if values is None else len(values)
        assert (count % sizes[1] == 0) if sizes[0] == -1 else count == sizes[0], name
        return
    assert values is not None, name
    assert len(values) == 1, name
    if kind == "image_feature.Image":
        image = Image.open(io.BytesIO(values[0]))
        assert len(image.getbands()) == int(content["shape"]["dimensions"][2])
    elif kind == "class_label_feature.ClassLabel":
        assert 0 <= int(values[0]) < int(content["numClasses"])
    elif kind == "text_feature.Text":
        assert isinstance(values[0], bytes)
    else:
        assert np.asarray(values).dtype == content["dtype"], name


def test_every_record_is_as_described(made):
    name, found = made
    features = described(Path(found.root))
    assert features.keys() == found.manifest.features.keys()
    for split in found.splits:
        for _, payload in found.records(split):
            example = decode_example(payload)
            for stored, feature in features.items():
                check_value(feature, example.get(stored), f"{name}: {stored}")
    assert not verify(found.root).findings


def test_splits_shards_and_labels(made):
    name, found = made
    root = Path(found.root)
    info = json.loads((root / INFO_FILE).read_text())
    splits = {row["name"]: row for row in info["splits"]}
    assert splits.keys() == set(found.splits)
    for split, row in splits.items():
        shards = found.shards(split)
        assert row["shardLengths"] == [str(shard.records) for shard in shards]
        assert row["numBytes"] == str(sum(shard.bytes for shard in shards))
        numbers = [f"{i:05d}-of-{len(shards):05d}" for i in range(len(shards))]
        paths = [row["filepathTemplate"].replace("{SHARD_X_OF_Y}", number) for number in numbers]
        assert paths == [shard.path for shard in shards]
    image, label = (item["featureKey"] for item in info["supervisedKeys"]["tuple"]["items"])
    features = described(root)
    assert "ClassLabel" in json.dumps(features[label])
    assert ("Sequence" in features[label]["pythonClassName"]) == (
        name not in ("one-class", "one-class-flowers", "renamed", "raw")
    )
    assert ("Image" in features[image]["pythonClassName"]) == (name != "raw")
    assert (root / f"{label.replace('/', '.')}.labels.txt").read_text().splitlines() == CLASSES


def test_masks_are_documented(tmp_path):
    found = dataset(tmp_path)
    features = described(tmp_path / "ds")
    runs = features["image/segmentation/tv%2Fmonitor/rle"]
    assert "tv/monitor" in runs["description"]
    assert runs["tensor"]["shape"]["dimensions"] == ["-1", "2"]
    assert "shardwright.masks.rle.draw" in json.loads((tmp_path / "ds" / INFO_FILE).read_text())["description"]
    assert found.manifest.digest == found.manifest.with_digest().digest


@pytest.mark.parametrize("name", [FEATURES_FILE, INFO_FILE, "image.class.label.labels.txt"])
def test_verify_covers_them(tmp_path, name):
    dataset(tmp_path, "classification")
    file = tmp_path / "ds" / name
    data = file.read_bytes()
    file.write_bytes(data[:-2] + bytes([data[-2] ^ 1]) + data[-1:])
    assert [finding.file for finding in verify(tmp_path / "ds").findings] == [name]
    file.unlink()
    assert [finding.code for finding in verify(tmp_path / "ds").findings] == [MISSING]


def manifest(paths, **options):
    shards = tuple(ShardInfo("train", f"Split-train/{path}", 1, 100, "0" * 64, "a", "a") for path in paths)
    empty = {"recipe": {}, "recipe_fingerprint": "", "parent": None, "fingerprint": "f", "totals": {}, "parts": {}}
    given = {"classes": ("a", "b"), "features": {"image/encoded": "bytes", "image/class/label": "int64"}, **options}
    return Manifest(kind="ingest", task="classification", labels="single", shards=shards, **empty, **given)


@pytest.mark.parametrize(
    ("paths", "template"),
    [
        (["data-00000-of-00001.tfrecord"], "data-{SHARD_X_OF_Y}.tfrecord"),
        (["x00000.tfrec", "x00001.tfrec"], "x{SHARD_INDEX}.tfrec"),
        (["train00-7.tfrec"], "train00-7.tfrec"),
        (["train00-7.tfrec", "train01-7.tfrec"], None),
        (["a-00000-of-00002-5.tfrec", "a-00001-of-00002-4.tfrec"], None),
    ],
)
def test_names_of_shards(paths, template):
    files = tfds_files(manifest(paths), labeled=True)
    if template is None:
        assert not files
    else:
        (split,) = json.loads(files[INFO_FILE])["splits"]
        assert split["filepathTemplate"] == f"Split-train/{template}"


@pytest.mark.parametrize("names", [("a ", "b"), ("a\u2028b", "c")])
def test_names_of_classes_that_tfds_would_change_stay_numbers(names):
    files = tfds_files(manifest(["data-00000-of-00001.tfrecord"], classes=names), labeled=True)
    assert set(files) == {FEATURES_FILE, INFO_FILE}


def test_tfds_reads_them(made):
    tfds = pytest.importorskip("tensorflow_datasets")
    import tensorflow as tf

    name, found = made
    builder = tfds.builder_from_directory(found.root)
    key = found.manifest.stored("image/key")
    # TFDS reads no split that is empty.
    for split in (split for split in found.splits if found.num_records(split)):
        read = {example[key].decode(): example for example in tfds.as_numpy(builder.as_dataset(split=split))}
        stored = {key: decode_example(payload) for key, payload in found.records(split)}
        assert read.keys() == stored.keys()
        for one, example in stored.items():
            for feature, values in read[one].items():
                if "Image" not in type(builder.info.features[feature]).__name__:
                    assert np.ravel(values).tolist() == list(example.get(feature, [])), (name, feature)
                else:
                    decoded = tf.io.decode_image(example[feature][0], channels=values.shape[-1])
                    assert np.array_equal(values, decoded.numpy()), (name, feature)
    assert builder.info.features[found.manifest.stored("image/class/label")].names == CLASSES
    assert sum(1 for _ in builder.as_dataset(split="train[:2]", as_supervised=True)) == 2
