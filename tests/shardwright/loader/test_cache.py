"""`cache`: made once, the same in every epoch, limited, and filled by one process only."""

import inspect
import multiprocessing
import shutil

import pytest
import tensorflow as tf

from shardwright.errors import UsageError
from shardwright.loader import load, memory
from shardwright.loader.error_context import error_message

pytestmark = pytest.mark.slow
PLAIN = {"normalize": "none", "dtype": "uint8", "shuffle": True, "seed": 4}


@pytest.fixture
def dataset(small_dataset, tmp_path):
    return small_dataset(tmp_path, counts={"train": [4, 3], "eval": [2]})


def epoch(found):
    return [
        image.tobytes() + target.tobytes()
        for images, targets in found.as_numpy_iterator()
        for image, target in zip(images, targets, strict=True)
    ]


@pytest.mark.parametrize("where", ["memory", "folder"])
def test_from_the_second_epoch_on_no_shard_is_read(dataset, tmp_path, where):
    plain = sorted(epoch(load(dataset, "train", 3, **PLAIN)))
    found = load(dataset, "train", 3, cache=where if where == "memory" else tmp_path / "cache", **PLAIN)
    first = epoch(found)
    shutil.rmtree(dataset / "Split-train")
    second = epoch(found)
    assert sorted(first) == sorted(second) == plain
    assert first != second


def test_a_folder_serves_the_next_process_and_augmentation_comes_after_it(dataset, tmp_path, monkeypatch):
    folder = tmp_path / "cache"
    epoch(load(dataset, "train", 3, cache=folder, **PLAIN))
    files = sorted(folder.iterdir())
    memory._held.clear()  # As if it were another process.
    found = load(dataset, "train", 3, cache=folder, augment=["brightness"], **PLAIN)
    assert sorted(epoch(found)) != sorted(epoch(load(dataset, "train", 3, cache=folder, **PLAIN)))
    assert sorted(folder.iterdir()) == files
    epoch(load(dataset, "eval", 3, cache=folder, **PLAIN))
    assert len(list(folder.glob("*.index"))) == 2
    # Another version may decode other pixels.
    monkeypatch.setitem(inspect.unwrap(load).__globals__, "__version__", "0.0.1")
    epoch(load(dataset, "eval", 3, cache=folder, **PLAIN))
    assert len(list(folder.glob("*.index"))) == 3


@pytest.mark.parametrize("first", [{}, {"seed": 5}, {"deterministic": False}])
def test_the_order_is_not_that_of_the_load_that_filled_the_folder(dataset, tmp_path, first):
    folder, options = tmp_path / "cache", {**PLAIN, "shuffle_buffer": 2}
    epoch(load(dataset, "train", 3, cache=folder, **{**options, **first}))
    stored = epoch(load(dataset, "train", 3, cache=folder, **{**options, "shuffle": False}))
    assert stored == epoch(load(dataset, "train", 3, **{**options, "shuffle": False}))
    again = epoch(load(dataset, "train", 3, cache=folder, **options))
    assert again == epoch(load(dataset, "train", 3, cache=tmp_path / "new", **options))


def test_another_iterator_that_fills_it_is_named(tmp_path):
    found = memory.cache_examples(tf.data.Dataset.range(9), str(tmp_path), 72, "nine")
    first = iter(found)
    next(first)
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        next(iter(found))
    assert error_message(caught.value).startswith(f"cache: another iterator is filling {tmp_path}/decoded-")
    del first
    assert list(found.as_numpy_iterator()) == list(found.as_numpy_iterator()) == list(range(9))


def test_what_does_not_fit_is_refused(dataset, tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "_OF_MEMORY", 0.0)
    monkeypatch.setattr(memory, "_OF_DISK", 0.0)
    with pytest.raises(UsageError, match=r"cache: the decoded examples take 0\.00 GB, and half of the memory"):
        load(dataset, "train", 3, cache="memory")
    with pytest.raises(UsageError, match=r"cache: .* nine tenths of what is free at .*a folder on a larger disk"):
        load(dataset, "train", 3, cache=tmp_path / "cache")


def _fill(folder, ready, done):
    memory._begin(folder / "decoded-1")
    (folder / "decoded-1.data").write_bytes(b"half")
    ready.set()
    done.wait()


def test_another_process_that_fills_it_is_named(tmp_path):
    context = multiprocessing.get_context("fork")
    ready, done = context.Event(), context.Event()
    other = context.Process(target=_fill, args=(tmp_path, ready, done))
    other.start()
    ready.wait()
    with pytest.raises(UsageError, match="another process is filling"):
        memory._begin(tmp_path / "decoded-1")
    done.set()
    other.join()
    # The files that it left are deleted.
    memory._begin(tmp_path / "decoded-1")
    assert [file.name for file in tmp_path.iterdir()] == ["decoded-1.lock"]


def test_a_folder_that_cannot_be_made_is_named(dataset, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cache: .*file/cache cannot be made"):
        load(dataset, "train", 3, cache=tmp_path / "file" / "cache")
