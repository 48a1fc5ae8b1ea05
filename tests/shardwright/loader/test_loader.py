"""The loader: the batches a dataset promises, in an order that a seed fixes."""

import io
import shutil
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

from shardwright import loader
from shardwright.dataset.reader import ImageDataset
from shardwright.errors import DatasetError, UsageError
from shardwright.images import tf_ops
from shardwright.masks import rle
from shardwright.tfrecords.records import decode_example

MakeDataset = Callable[..., Path]


@pytest.fixture(scope="module")
def clouds(small_dataset: MakeDataset, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_dataset(tmp_path_factory.mktemp("clouds"), counts={"train": [5, 4, 4], "eval": [3]})


@pytest.fixture(scope="module")
def squares(small_dataset: MakeDataset, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_dataset(tmp_path_factory.mktemp("squares"), counts={"train": [6, 6]}, size=lambda number: (24, 24))


@pytest.fixture(scope="module")
def flowers(small_dataset: MakeDataset, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("flowers")
    return small_dataset(root, task="classification", classes=("daisy", "rose", "tulip"), image_format="jpeg")


def truth(dataset: Path, split: str) -> list[tuple[np.ndarray, np.ndarray]]:
    """Images and targets by PIL and numpy."""
    found = []
    opened = ImageDataset.open(dataset)
    for _, record in opened.records(split):
        example = decode_example(record)
        image = np.asarray(Image.open(io.BytesIO(example["image/encoded"][0])))
        if opened.manifest.task == "classification":
            found.append((image, example["image/class/label"][0]))
            continue
        runs = [rle.from_flat(example[f"image/segmentation/{name}/rle"]) for name in opened.manifest.classes]
        found.append((image, np.stack([rle.draw(r, *image.shape[:2]) for r in runs], axis=-1)))
    return found


def stream(dataset: tf.data.Dataset, steps: int | None = None) -> list[bytes]:
    """Returns the bytes of every example of a stream, in its order."""
    batches = dataset if steps is None else dataset.take(steps)
    return [
        i.tobytes() + t.tobytes()
        for images, targets in batches
        for i, t in zip(images.numpy(), targets.numpy(), strict=True)
    ]


def test_batches_hold_the_images_and_their_masks(clouds: Path) -> None:
    dataset = loader.load(clouds, "eval", 2, normalize="none")
    assert dataset.element_spec == (
        tf.TensorSpec((None, 24, 36, 3), tf.float32),
        tf.TensorSpec((None, 24, 36, 2), tf.uint8),
    )
    batches = list(dataset.as_numpy_iterator())
    assert [len(images) for images, _ in batches] == [2, 1]
    expected = truth(clouds, "eval")
    np.testing.assert_array_equal(np.concatenate([b[0] for b in batches]), [image for image, _ in expected])
    np.testing.assert_array_equal(np.concatenate([b[1] for b in batches]), [target for _, target in expected])
    assert any(target.any() for _, target in expected)


def test_classification_gives_labels(flowers: Path) -> None:
    dataset = loader.load(flowers, "train", 5, normalize="unit", drop_remainder=True)
    assert dataset.element_spec[1] == tf.TensorSpec((5,), tf.int32)
    images, labels = next(dataset.as_numpy_iterator())
    found = {round(float(i.mean()), 4): int(label) for i, label in zip(images, labels, strict=True)}
    assert found == {round(float((i / 255).mean()), 4): int(label) for i, label in truth(flowers, "train")}
    assert set(labels.tolist()) == {0, 1, 2}


def test_every_example_once_an_epoch(clouds: Path) -> None:
    everything = sorted(stream(loader.load(clouds, "train", 4)))
    assert len(everything) == 13
    shuffled = loader.load(clouds, "train", 4, shuffle=True, seed=3, deterministic=False)
    assert sorted(stream(shuffled)) == everything
    assert sorted(stream(shuffled)) == everything


def test_a_seed_fixes_the_order_and_another_changes_it(squares: Path) -> None:
    options = {"shuffle": True, "repeat": True, "augment": ["flip_left_right", "rotate90", "brightness"]}
    first, again, other = (stream(loader.load(squares, "train", 5, seed=s, **options), 6) for s in (1, 1, 2))
    assert first == again
    assert first != other
    assert len(first) == 30


def test_epochs_of_a_repeated_stream_differ(clouds: Path) -> None:
    order = stream(loader.load(clouds, "train", 13, shuffle=True, seed=0, repeat=True), 2)
    assert sorted(order[:13]) == sorted(order[13:])
    assert order[:13] != order[13:]


def test_without_a_seed_two_streams_differ(clouds: Path) -> None:
    orders = {tuple(stream(loader.load(clouds, "train", 13, shuffle=True))) for _ in range(2)}
    assert len(orders) == 2


def test_masks_follow_the_augmentation(squares: Path) -> None:
    """Every augmented pair is the original pair, moved: image and mask by the same of the eight symmetries."""
    moves = [lambda a, k=k, f=f: np.rot90(a[:, ::-1] if f else a, k) for k in range(4) for f in (0, 1)]
    allowed: dict[bytes, tuple[int, int]] = {}
    for number, (image, mask) in enumerate(truth(squares, "train")):
        for index, move in enumerate(moves):
            allowed[move(image).tobytes() + move(mask).tobytes()] = (number, index)
    augment = ["flip_left_right", "flip_up_down", "rotate90"]
    batches = loader.load(squares, "train", 12, normalize="none", augment=augment, repeat=True, seed=5).take(10)
    seen = [
        allowed[image.astype(np.uint8).tobytes() + mask.tobytes()]
        for images, masks in batches.as_numpy_iterator()
        for image, mask in zip(images, masks, strict=True)
    ]
    assert {number for number, _ in seen} == set(range(12))
    assert {index for _, index in seen} == set(range(8))


def test_brightness_shifts_the_image_alone(squares: Path) -> None:
    (plain, masks), (shifted, same) = (
        next(loader.load(squares, "train", 12, normalize="none", seed=1, augment=a).as_numpy_iterator())
        for a in ([], ["brightness"])
    )
    np.testing.assert_array_equal(masks, same)
    shifts = [np.unique((s - p)[(s > 0) & (s < 255)]) for p, s in zip(plain, shifted, strict=True)]
    assert all(len(values) == 1 and abs(values[0]) <= 51 for values in shifts)
    assert len({float(values[0]) for values in shifts}) > 3


def test_hosts_share_the_shards(clouds: Path) -> None:
    parts = [stream(loader.load(clouds, "train", 2, host=host, hosts=2)) for host in range(2)]
    assert [len(part) for part in parts] == [6, 7]
    assert sorted(parts[0] + parts[1]) == sorted(stream(loader.load(clouds, "train", 2)))
    with pytest.raises(UsageError, match="host: 2 is not below hosts, 2"):
        loader.load(clouds, "train", 2, host=2, hosts=2)


@pytest.mark.slow
def test_steps_are_what_the_loader_yields(clouds: Path) -> None:
    for batch_size in (1, 4, 13, 20):
        for drop in (False, True):
            batches = len(list(loader.load(clouds, "train", batch_size, drop_remainder=drop)))
            assert loader.steps_per_epoch(clouds, "train", batch_size, drop_remainder=drop) == batches
    assert loader.steps_per_epoch(clouds, "train", 2, hosts=2) == 3
    assert loader.steps_per_epoch(clouds, "train", 2, hosts=2, order="exact") == 4


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"batch_size": 0}, "batch_size: 0 is too small"),
        ({"batch_size": 2.5}, "batch_size: 2.5 is not a whole number"),
        ({"batch_size": "4"}, "batch_size: '4' is not a whole number"),
        ({"hosts": 0}, "hosts: 0 is too small"),
        ({"order": "x"}, "order: 'x' is not known"),
        ({"drop_remainder": "yes"}, "drop_remainder: 'yes' is neither True nor False"),
        ({"pad": True, "drop_remainder": True}, "pad: has no effect with"),
    ],
)
def test_the_loader_and_the_count_of_its_steps_refuse_the_same(
    clouds: Path, given: dict[str, object], message: str
) -> None:
    for function in (loader.load, loader.steps_per_epoch):
        with pytest.raises(UsageError, match=message):
            function(clouds, "train", **{"batch_size": 2, **given})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"augment": "flip_left_right"}, r"augment: .* is not a list\. Write augment=\['flip_left_right'\]\."),
        ({"augment": None}, "augment: None is not a list"),
        ({"augment": [1]}, "augment: 1 is not a text"),
        ({"texts": "caption"}, r"texts: .* Write texts=\['caption'\]\."),
        ({"numbers": "age"}, r"numbers: .* Write numbers=\['age'\]\."),
        ({"seed": "1"}, r"seed: '1' is not a whole number\. Write a number such as seed=1\."),
        ({"seed": 2**70}, "seed: .* is too large"),
        ({"order": "exact", "start_step": "1"}, "start_step: '1' is not a whole number"),
        ({"order": "exact", "start_step": -1}, "start_step: -1 is too small"),
        ({"shuffle_buffer": 0}, "shuffle_buffer: 0 is too small"),
        ({"host": -1}, "host: -1 is too small"),
        ({"shuffle": "no"}, "shuffle: 'no' is neither True nor False"),
        ({"statistics": "x"}, "statistics: 'x' has no 'mean' of three numbers"),
        ({"statistics": {"mean": [0, 0, 0]}}, ".*has no 'std' of three numbers"),
        ({"copies": "x"}, "copies: 'x' is not known"),
        ({"cache": "gs://b/c"}, "cache: 'gs://b/c' is a URL"),
        ({"cache": 3}, "cache: 3 is not a path"),
    ],
)
def test_values_of_a_wrong_type_are_named(clouds: Path, given: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=f"^{message}"):
        loader.load(clouds, "train", 2, **given)


def test_a_cache_inside_of_the_dataset_is_refused(clouds: Path) -> None:
    for folder in (clouds, clouds / "cache"):
        with pytest.raises(UsageError, match="cache: .* belongs to the dataset"):
            loader.load(clouds, "train", 2, cache=folder)
    assert not (clouds / "cache").exists()


def test_normalization_by_given_and_by_stored_figures(small_dataset: MakeDataset, tmp_path: Path) -> None:
    folder = small_dataset(tmp_path)
    figures = {"mean": [100.0, 110.0, 120.0], "std": [50.0, 60.0, 70.0]}
    plain = next(loader.load(folder, "eval", 2, normalize="none").as_numpy_iterator())[0]
    expected = tf_ops.normalize(plain.astype(np.uint8), "dataset", **figures)
    given = loader.load(folder, "eval", 2, normalize="dataset", statistics=figures)
    np.testing.assert_array_equal(next(given.as_numpy_iterator())[0], expected)
    with pytest.raises(DatasetError, match=r"statistics\.json: no readable statistics"):
        loader.load(folder, "eval", 2, normalize="dataset")
    (folder / "statistics.json").write_text('{"mean": [100, 110, 120], "std": [50, 60, 70]}')
    stored = loader.load(folder, "eval", 2, normalize="dataset")
    np.testing.assert_array_equal(next(stored.as_numpy_iterator())[0], expected)
    (folder / "statistics.json").write_text('{"mean": [100], "std": [50]}')
    with pytest.raises(DatasetError, match="is not a list of 3"):
        loader.dataset_statistics(folder)


def test_images_of_several_sizes_are_an_error(small_dataset: MakeDataset, tmp_path: Path) -> None:
    folder = small_dataset(tmp_path, counts={"train": [3]}, size=lambda number: (24, 36 + number // 2))
    message = r"00001\.tfrecord, record 2 at byte \d+, key train/0002: image is 24 x 37, not 24 x 36"
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        list(loader.load(folder, "train", 2))


def test_an_image_without_a_label_is_an_error(small_dataset: MakeDataset, tmp_path: Path) -> None:
    def change(number: int, example: dict[str, object]) -> dict[str, object]:
        return {k: v for k, v in example.items() if number != 1 or not k.startswith("image/class")}

    folder = small_dataset(tmp_path, task="classification", counts={"train": [3]}, change=change)
    with pytest.raises(
        tf.errors.InvalidArgumentError, match=r"00001\.tfrecord, record 1 at byte \d+, key train/0001: has no label"
    ):
        list(loader.load(folder, "train", 2))


def test_damaged_shards_are_named(clouds: Path, tmp_path: Path) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(clouds, folder)
    shard = folder / "Split-train/data-00001-of-00003.tfrecord"
    data = bytearray(shard.read_bytes())
    shard.write_bytes(data[:-1])
    with pytest.raises(DatasetError, match=r"data-00001-of-00003\.tfrecord: .* bytes instead of the manifest's"):
        loader.load(folder, "train", 2)
    data[len(data) // 2] ^= 1
    shard.write_bytes(data)
    with pytest.raises(
        tf.errors.InvalidArgumentError,
        match=r"00001-of-00003\.tfrecord, record 1 at byte \d+, key train/0009: the record is",
    ):
        list(loader.load(folder, "train", 2))
    # Also with a damaged or missing index.
    for index in ("no row\n" * 4, None):
        file = folder / "index/Split-train/data-00001-of-00003.jsonl"
        file.unlink() if index is None else file.write_text(index)
        message = r"00001-of-00003\.tfrecord, record 1 at byte \?, key \?: the record is"
        with pytest.raises(tf.errors.InvalidArgumentError, match=message):
            list(loader.load(folder, "train", 2))


@pytest.mark.parametrize("order", ["fast", "exact"])
def test_pixels_that_cannot_be_decoded_are_named(small_dataset: MakeDataset, tmp_path: Path, order: str) -> None:
    def change(number: int, example: dict[str, object]) -> dict[str, object]:
        encoded = example["image/encoded"]
        assert isinstance(encoded, bytes)
        # Its header is sound.
        return {**example, "image/encoded": encoded[: len(encoded) // 2] if number == 3 else encoded}

    folder = small_dataset(tmp_path, counts={"train": [2, 2], "eval": [1]}, change=change)
    # In its place, and not some batches later.
    batches = iter(loader.load(folder, "train", 1, order=order, repeat=True, shuffle=True, seed=1))
    message = r"data-0000\d-of-00002\.tfrecord, record \d at byte \d+, key train/0003: cannot be decoded \(.+\)\. Write"
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        list(islice(batches, 4))


def test_wrong_options_are_refused(clouds: Path, tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"no manifest\.json"):
        loader.load(tmp_path, "train", 2)
    with pytest.raises(DatasetError, match=r"no split 'test'\. It has: eval, train"):
        loader.load(clouds, "test", 2)
    with pytest.raises(UsageError, match="batch_size: 0 is too small"):
        loader.load(clouds, "train", 0)
    with pytest.raises(UsageError, match="'rotate90' needs square images, these are 24 x 36"):
        loader.load(clouds, "train", 2, augment=["rotate90"])
    with pytest.raises(UsageError, match="augment: 'zoom' is not known"):
        loader.load(clouds, "train", 2, augment=["zoom"])
    with pytest.raises(UsageError, match="normalize: 'zscore' is not known"):
        loader.load(clouds, "train", 2, normalize="zscore")


def test_a_split_without_records_gives_no_batch(small_dataset: MakeDataset, tmp_path: Path) -> None:
    folder = small_dataset(tmp_path, counts={"train": [2], "eval": [0]})
    assert list(loader.load(folder, "eval", 2)) == []
    assert loader.steps_per_epoch(folder, "eval", 2) == 0
    for order in ("fast", "exact"):
        with pytest.raises(DatasetError, match="split 'eval' contains no record"):
            loader.load(folder, "eval", 2, repeat=True, order=order)
    with pytest.raises(UsageError, match="host: 0 of 3 has no record, since split 'train' of .* contains 2"):
        loader.load(folder, "train", 2, repeat=True, hosts=3)
