"""Random access without TensorFlow: what items contain, and that any kind of worker can use a source."""

import io
import multiprocessing
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from ingesting import run
from PIL import Image
from recording import picture, reading, write_records

import shardwright
from shardwright.dataset.reader import ImageDataset
from shardwright.dataset.source import source
from shardwright.errors import DatasetError, UsageError
from shardwright.masks import rle
from shardwright.tfrecords.encode import byte_strings, encode_example, floats, ints

CLASSES = ["boat", "tv/monitor"]
SIZE = (10, 12)
ALL_TRAIN = {"split": {"train": 1.0}}
SECONDS = 60


def mask(number, i):
    pixels = np.zeros(SIZE, np.uint8)
    pixels[number % 5 : number % 5 + 3, i : i + 4] = (number + i) % 3 > 0
    return pixels


def expected_masks(number):
    masks = np.stack([mask(number, 0), mask(number, 1)], axis=-1)
    masks[mask(number, 2) > 0] = 255
    return masks


def record(number, labels):
    found = {"image/encoded": picture(number, "png"), "image/key": b"%d.png" % number}
    if labels is None:
        names = (*CLASSES, "ignore")
        return found | {
            f"image/segmentation/{name.replace('/', '%2F')}/rle": ints(rle.encode(mask(number, i)).reshape(-1))
            for i, name in enumerate(names)
        }
    return found | {"image/class/text": byte_strings([CLASSES[label].encode() for label in labels])}


def boxes(number):
    """Two boxes, and none for every third image."""
    sides = {"xmin": [0.0, 0.5], "ymin": [0.25, 0.0], "xmax": [0.5, 1.0], "ymax": [1.0, 0.125]}
    found = {f"image/object/bbox/{side}": floats(values) for side, values in sides.items()}
    found |= {"image/object/class/label": ints([2, 1])}
    found |= {"image/object/class/text": byte_strings([CLASSES[1].encode(), CLASSES[0].encode()])}
    return found if number % 3 else {}


def dataset(root, labels=None, further=None, task="classification", **options):
    count = 7
    records = [record(i, labels(i) if labels else None) | (further(i) if further else {}) for i in range(count)]
    write_records(root / "records/a.tfrecord", [encode_example(one) for one in records])
    given = {"classes": CLASSES, **options.pop("input", {})}
    raw = {**reading(root / "records", task, **given), "shards": {"records": 3}, **options}
    run(raw, root / "ds", workers=1)
    return root / "ds"


def by_key(folder):
    """The items of all splits, by the number of the image."""
    items = [item for split in ImageDataset.open(folder).splits for item in source(folder, split)]
    found = {int(item["key"].removesuffix(".png")): item for item in items}
    assert len(found) == 7
    return found


def pixels(number):
    return np.asarray(Image.open(io.BytesIO(picture(number, "png"))))


@pytest.fixture(scope="module")
def masked(tmp_path_factory):
    return dataset(tmp_path_factory.mktemp("masked"), task="segmentation")


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"features": {"preset": "tfds"}},
        {"features": {"map": {"image/encoded": "x", "image/segmentation/boat/rle": "y"}}},
        {"images": {"encoding": "tensor"}},
        {"images": {"encoding": "raw"}},
    ],
    ids=str,
)
def test_pixels_and_masks(tmp_path, options):
    for number, item in by_key(dataset(tmp_path, task="segmentation", **options)).items():
        assert np.array_equal(item["image"], pixels(number))
        assert np.array_equal(item["masks"], expected_masks(number))
        assert (item["image"].dtype, item["masks"].dtype) == (np.uint8, np.uint8)
        assert item["labels"].tolist() == [float((expected_masks(number)[..., i] == 1).any()) for i in range(2)]


def test_one_class_and_boxes(tmp_path):
    found = by_key(
        dataset(
            tmp_path,
            lambda number: [number % 2] if number else [],
            boxes,
            input={"unlisted_images": "unlabeled"},
        )
    )
    assert {number: int(item["label"]) for number, item in found.items()} == {0: -1, 1: 1, 2: 0, 3: 1, 4: 0, 5: 1, 6: 0}
    assert found[1]["boxes"].tolist() == [[0, 0.25, 0.5, 1], [0.5, 0, 1, 0.125]]
    assert found[1]["box_labels"].tolist() == [1, 0]
    assert found[3]["boxes"].shape == (0, 4)
    assert {frozenset(item) for item in found.values()} == {frozenset(["image", "key", "label", "boxes", "box_labels"])}


def test_several_classes(tmp_path):
    found = by_key(dataset(tmp_path, lambda number: [0, 1, 0][: number % 4]))
    assert {tuple(item["labels"].tolist()) for item in found.values()} == {(0, 0), (1, 0), (1, 1)}
    assert found[2]["labels"].tolist() == [1, 1]


def equal(one, other):
    return all(np.array_equal(value, other[name]) for name, value in one.items()) and one.keys() == other.keys()


def test_it_is_a_sequence_in_the_order_of_the_keys(masked):
    keys = ImageDataset.open(masked).keys("train")
    train = source(masked, "train")
    assert shardwright.source is source
    assert len(train) == len(keys)
    assert [item["key"] for item in train] == keys
    assert train[np.int64(-1)]["key"] == keys[-1]
    assert [item["key"] for item in train.__getitems__([2, 0])] == [keys[2], keys[0]]
    for index in (len(keys), -len(keys) - 1):
        with pytest.raises(IndexError, match="no item"):
            train[index]
    with pytest.raises(TypeError):
        train["0"]
    with pytest.raises(DatasetError, match="no split 'tran'"):
        source(masked, "tran")


def _items(pipe, made, numbers):
    pipe.send([made[number] for number in numbers])


def test_a_forked_worker_reads_the_same(masked):
    made = source(masked, "train")
    context = multiprocessing.get_context("fork")
    receiving, sending = context.Pipe(duplex=False)
    worker = context.Process(target=_items, args=(sending, made, [1, 0]))
    worker.start()
    assert receiving.poll(SECONDS), "the worker gave no answer"
    one, other = receiving.recv()
    worker.join(SECONDS)
    assert equal(one, made[1])
    assert equal(other, made[0])


def test_another_process_reads_the_same(masked):
    """A spawned worker gets the source pickled."""
    made = source(masked, "train")
    program = "import pickle, sys; print(pickle.load(sys.stdin.buffer)[1]['masks'].sum())"
    call = [sys.executable, "-c", program]
    done = subprocess.run(call, input=pickle.dumps(made), capture_output=True, timeout=SECONDS, check=True)
    assert int(done.stdout) == made[1]["masks"].sum()


def test_no_file_stays_open(masked):
    open_before = len(os.listdir("/proc/self/fd"))
    made = pickle.loads(pickle.dumps(source(masked, "train")))
    assert len([made[number] for number in range(len(made))]) == len(made)
    assert len(os.listdir("/proc/self/fd")) == open_before


def turned(encoded):
    return np.asarray(Image.open(io.BytesIO(encoded)).convert("RGB")).transpose(1, 0, 2)


def reversed_colors(encoded):
    return np.asarray(Image.open(io.BytesIO(encoded)).convert("RGB"))[..., ::-1]


def test_another_decoder_gives_the_pixels(masked):
    plain, other = source(masked, "train"), source(masked, "train", decode=reversed_colors)
    for one, changed in zip(plain, pickle.loads(pickle.dumps(other)), strict=True):
        np.testing.assert_array_equal(changed["image"], one["image"][..., ::-1])
        np.testing.assert_array_equal(changed["masks"], one["masks"])
    for wrong, shown in ((turned, r"uint8 \(12, 10, 3\), not uint8 \(10, 12, 3\)"), (len, "None None, not uint8")):
        with pytest.raises(UsageError, match=rf"record 0 .*`decode` returned {shown}.*\. Return the stored pixels\.$"):
            source(masked, "train", decode=wrong)[0]


def test_masks_as_texts_are_refused(tmp_path):
    folder = dataset(tmp_path, task="segmentation", features={"preset": "rle_text"})
    with pytest.raises(UsageError, match=r"stored as texts.*tf_vision"):
        source(folder, "train")


def test_damage_is_named(tmp_path):
    folder = dataset(tmp_path, lambda number: [number % 2])
    found = ImageDataset.open(folder)
    shard = found.shards("train")[0]
    data = bytearray(Path(shard.file).read_bytes())
    data[40] ^= 1
    Path(shard.file).write_bytes(data)
    with pytest.raises(DatasetError, match=r"record 0"):
        source(folder, "train")[0]


def test_grain_reads_it(masked):
    grain = pytest.importorskip("grain.python", exc_type=ImportError)
    made = source(masked, "train")
    assert isinstance(made, grain.RandomAccessDataSource)
    loader = grain.DataLoader(
        data_source=made,
        sampler=grain.IndexSampler(len(made), shuffle=True, seed=3, num_epochs=1, shard_options=grain.NoSharding()),
        operations=[grain.Batch(2)],
        worker_count=0,
    )
    keys = [key for batch in loader for key in batch["key"]]
    assert sorted(keys) == sorted(ImageDataset.open(masked).keys("train"))
    mapped = grain.MapDataset.source(made).shuffle(seed=1).map(lambda item: item["masks"].sum())
    assert sorted(mapped) == sorted(item["masks"].sum() for item in made)


def test_pytorch_reads_it(masked):
    data = pytest.importorskip("torch.utils.data")
    made = source(masked, "train")
    batches = list(data.DataLoader(made, batch_size=2, num_workers=2, timeout=SECONDS))
    images = np.concatenate([batch["image"].numpy() for batch in batches])
    assert np.array_equal(images, np.stack([item["image"] for item in made]))


def test_the_loader_sees_the_same(masked):
    from shardwright.loader import load

    made = source(masked, "train")
    batches = load(masked, "train", batch_size=2, order="exact", normalize="none", drop_remainder=False)
    seen = [pair for images, masks, *_ in batches for pair in zip(images.numpy(), masks.numpy(), strict=True)]
    assert len(seen) >= len(made)
    for item, (image, masks) in zip(made, seen, strict=False):
        assert np.array_equal(image, item["image"])
        assert np.array_equal(masks, item["masks"])
