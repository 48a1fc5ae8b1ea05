"""Targets of the loader other than one class or masks: several classes, or the position of the image."""

import numpy as np
import pytest
import tensorflow as tf
from ingesting import examples, run
from PIL import Image

from shardwright import loader
from shardwright.dataset.reader import ImageDataset
from shardwright.errors import UsageError
from shardwright.tfrecords.encode import ints

COUNT = 37


def write_images(root, count=COUNT):
    """Writes gray images of different brightness."""
    (root / "images").mkdir(parents=True)
    for number in range(count):
        Image.new("RGB", (8, 8), (number, number, number)).save(root / "images" / f"{number:03d}.png")


def gray(images):
    return images.numpy()[:, 0, 0, 0].astype(int).tolist()


@pytest.fixture(scope="module")
def unlabeled(tmp_path_factory):
    root = tmp_path_factory.mktemp("unlabeled")
    write_images(root)
    raw = {"images": str(root / "images"), "labels": {"format": "none"}}
    run({"task": "classification", "input": raw, "shards": {"records": 4}}, root / "out")
    return root / "out"


@pytest.fixture(scope="module")
def several(tmp_path_factory):
    root = tmp_path_factory.mktemp("several")
    write_images(root)
    rows = [
        "image,labels",
        *(f"{n:03d}.png,{'|'.join(c for c in 'abc' if n >> 'abc'.index(c) & 1)}" for n in range(COUNT)),
    ]
    (root / "labels.csv").write_text("\n".join(rows))
    raw = {"images": str(root / "images"), "labels": {"path": str(root / "labels.csv")}}
    run({"task": "classification", "input": raw, "shards": {"records": 7}}, root / "out")
    return root / "out"


@pytest.mark.parametrize(("hosts", "shuffle"), [(1, True), (2, False), (3, True)])
def test_an_id_is_the_position_in_the_split_whatever_the_order(unlabeled, shuffle, hosts):
    keys = ImageDataset.open(unlabeled).keys("train")
    seen = []
    for host in range(hosts):
        batches = loader.load(
            unlabeled,
            "train",
            5,
            normalize="none",
            shuffle=shuffle,
            seed=3,
            host=host,
            hosts=hosts,
            augment=["flip_left_right", "brightness"] if shuffle else [],
        )
        assert batches.element_spec[1].dtype == tf.int64
        for images, ids in batches:
            seen += ids.numpy().tolist()
            if not shuffle:
                assert [f"{value:03d}.png" for value in gray(images)] == [keys[i] for i in ids.numpy()]
    assert sorted(seen) == list(range(len(keys)))


@pytest.mark.parametrize("hosts", [1, 3])
def test_an_id_is_the_position_in_the_exact_order_too(unlabeled, hosts):
    keys = ImageDataset.open(unlabeled).keys("train")
    seen = []
    for host in range(hosts):
        batches = loader.load(
            unlabeled, "train", 4, normalize="none", shuffle=True, seed=3, host=host, hosts=hosts, order="exact"
        )
        for images, ids, weights in batches:
            counted = weights.numpy() > 0
            found = [keys[i] for i in ids.numpy()[counted]]
            assert found == [f"{value:03d}.png" for value in np.array(gray(images))[counted]]
            seen += found
    assert sorted(seen) == sorted(keys)


@pytest.mark.parametrize(
    ("hosts", "options"),
    [
        (2, {}),
        pytest.param(3, {"shuffle": True, "cache": "memory"}, marks=pytest.mark.slow),
        pytest.param(8, {}, marks=pytest.mark.slow),
    ],
)
def test_padded_hosts_have_equal_steps_and_every_image_counts_once(unlabeled, hosts, options):
    total = ImageDataset.open(unlabeled).num_records("train")
    steps = loader.steps_per_epoch(unlabeled, "train", 4, hosts=hosts, pad=True)
    seen = []
    for host in range(hosts):
        batches = loader.load(unlabeled, "train", 4, normalize="none", pad=True, host=host, hosts=hosts, **options)
        assert [spec.shape.as_list() for spec in batches.element_spec] == [[4, 8, 8, 3], [4], [4]]
        found = [[part.numpy() for part in batch] for batch in batches]
        assert len(found) == steps
        seen += [position for _, ids, weights in found for position in ids[weights > 0].tolist()]
    assert sorted(seen) == list(range(total))
    assert hosts * steps * 4 > total


def test_a_host_without_a_record_is_padded_with_one_of_the_split(unlabeled):
    ((images, ids, weights),) = loader.load(unlabeled, "train", 4, normalize="none", pad=True, host=0, hosts=99)
    assert images.shape == (4, 8, 8, 3)
    assert ids.numpy().tolist() == [0] * 4
    assert weights.numpy().tolist() == [0.0] * 4


@pytest.mark.parametrize("options", [{"repeat": True}, {"drop_remainder": True}])
def test_what_has_no_last_batch_is_not_padded(unlabeled, options):
    with pytest.raises(UsageError, match="pad: has no effect with repeat"):
        loader.load(unlabeled, "train", 4, pad=True, **options)


def test_keys_are_those_of_the_records_in_their_order(unlabeled):
    dataset = ImageDataset.open(unlabeled)
    assert dataset.manifest.labels == "none"
    assert dataset.manifest.classes == ()
    for split in dataset.splits:
        assert dataset.keys(split) == [key for key, _ in dataset.records(split)]
    assert all(example["image/class/label"].tolist() == [] for example in examples(unlabeled).values())


def test_ids_go_on_over_repetitions(unlabeled):
    count = ImageDataset.open(unlabeled).num_records("train")
    batches = loader.load(unlabeled, "train", count, normalize="none", repeat=True).take(3)
    assert [sorted(ids.numpy().tolist()) for _, ids in batches] == [list(range(count))] * 3


def test_several_classes_are_a_one_for_each(several):
    manifest = ImageDataset.open(several).manifest
    assert (manifest.labels, manifest.classes) == ("multi", ("a", "b", "c"))
    found = {}
    for split in manifest.splits:
        batches = loader.load(several, split, 5, normalize="none", augment=["flip_up_down", "rotate90"], seed=1)
        assert batches.element_spec[1].shape.as_list() == [None, 3]
        assert batches.element_spec[1].dtype == tf.float32
        for images, targets in batches:
            found.update(zip(gray(images), targets.numpy().tolist(), strict=True))
    assert found == {n: [float(n >> bit & 1) for bit in range(3)] for n in range(COUNT)}
    labels = {key: example["image/class/label"] for key, example in examples(several).items()}
    assert {key: label.tolist() for key, label in labels.items()} == {
        f"{n:03d}.png": [bit for bit in range(3) if n >> bit & 1] for n in range(COUNT)
    }
    assert all(label.dtype == np.int64 for label in labels.values())


def test_an_image_without_its_class_is_named(small_dataset, tmp_path):
    def change(number, example):
        return {**example, "image/class/label": ints([] if number == 1 else [0])}

    root = small_dataset(tmp_path, task="classification", counts={"train": [3]}, change=change)
    with pytest.raises(
        tf.errors.InvalidArgumentError, match=r"key train/0001: has no label; leave unlabeled images out"
    ):
        list(loader.load(root, "train", 3))


def test_a_class_out_of_range_is_named(small_dataset, tmp_path):
    def change(number, example):
        return {**example, "image/class/label": 7}

    root = small_dataset(tmp_path, task="classification", counts={"train": [2]}, change=change)
    manifest = ImageDataset.open(root).manifest
    changed = manifest.__class__(**{**vars(manifest), "labels": "multi"}).with_digest()
    (root / "manifest.json").write_text(changed.to_json())
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"key train/000.: has a class that is not one of the 2"):
        list(loader.load(root, "train", 2))
