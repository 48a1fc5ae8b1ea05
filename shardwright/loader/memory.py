"""The loader's memory on a host, by arithmetic, and its cache of decoded examples.

`loader_memory` estimates the memory; `shardwright bench loader` prints it next to the measured one. `cache_budget`
decides which decoded images the Trainer keeps in memory between epochs; `preflight` counts them, too. `cache_examples`
keeps decoded images and masks from the first epoch on, in memory or in a folder, up to a limit.
"""

from __future__ import annotations

import math
import os
import shutil
import stat
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tensorflow as tf

from shardwright.errors import UsageError
from shardwright.loader.error_context import no_autograph, require
from shardwright.storage.fingerprint import fingerprint
from shardwright.storage.locks import lock_file
from shardwright.storage.own_names import is_own, open_own_file

# Shards that are read concurrently, with a read buffer each. Fixed, not tuned: the order of the records depends on it,
# and it must be the same on every machine.
SHARDS_AT_ONCE = 16
READ_BUFFER = 256 << 10
# Python, NumPy and TensorFlow, imported and run once, before the first image: measured, rounded up.
_LIBRARIES = 600 << 20
# The loader's other work in progress: encoded records on their way to a decoder; batches of them that `order: exact`
# reads ahead; a batch that is filled, besides those that are finished or wait; decoded images of each thread that wait
# for their batch.
_UNDER_WAY, _UNDER_WAY_A_PROCESSOR = 64, 2
_READ_AHEAD = 4
_FILLED = 1
_IMAGES_A_THREAD = 4
# Batches that are finished concurrently; as many may wait afterwards. One thread converts a batch to float32.
_FEW, _MORE, _MANY_PROCESSORS = 2, 4, 8
# The most bytes of kept images, on machines of any size.
MOST = 1 << 30
# The part of the room for a cache that kept images may take, so that the cache is not refused a moment later.
_OF_ROOM = 0.5
_CLASSES_A_BYTE = 8
_FLOAT = 4
MEMORY = "memory"

# The part of the free memory and of the free disk that a cache may take.
_OF_MEMORY, _OF_DISK = 0.5, 0.9

# The locks of the folders that this process fills: held until it ends.
_held: dict[str, int] = {}


def finished_at_once(processors: int) -> int:
    """Returns how many batches are normalized and unpacked at the same time: two, or four on eight processors."""
    return _MORE if processors >= _MANY_PROCESSORS else _FEW


@dataclass(frozen=True)
class LoaderMemory:
    """Bytes by purpose.

    Attributes:
        libraries: Python and the imported packages.
        readers: read buffers of the shards that are open.
        shuffle: records that are mixed or wait for a decoder, still encoded.
        batches: those in flight, and the decoded images that wait for them.
        kept: decoded images that stay from the first epoch on (`shardwright.loader.memory`).
    """

    libraries: int
    readers: int
    shuffle: int
    batches: int
    kept: int = 0

    @property
    def total(self) -> int:
        """The sum of all parts."""
        return self.libraries + self.readers + self.shuffle + self.batches + self.kept


def loader_memory(
    *,
    record: float,
    shuffle_buffer: int,
    batch: int,
    size: tuple[int, int],
    channels: int,
    shards: int,
    processors: int,
    kept: int = 0,
) -> LoaderMemory:
    """Estimates the memory of one host's loader.

    Args:
        record: bytes of a stored record.
        shuffle_buffer: records in the shuffle buffer.
        batch: images of this host's batch.
        size: height and width of an image.
        channels: channels of the target, a byte each; 0 where a label is a number.
        shards: shards that this host reads.
        processors: threads that decode.
        kept: bytes of decoded images that stay.
    """
    height, width = size
    # While a batch is normalized to float32, its uint8 form is still in memory.
    a_batch = batch * height * width * (3 * _FLOAT + 3 + channels)
    batches = 2 * finished_at_once(processors) + _FILLED
    waiting = max(_UNDER_WAY, _UNDER_WAY_A_PROCESSOR * processors) + _READ_AHEAD * batch
    return LoaderMemory(
        libraries=_LIBRARIES,
        readers=min(shards, SHARDS_AT_ONCE) * READ_BUFFER,
        shuffle=int((shuffle_buffer + waiting) * record),
        batches=batches * a_batch + _IMAGES_A_THREAD * max(1, processors) * height * width * (3 + channels),
        kept=kept,
    )


def decoded_bytes(size: tuple[int, int], classes: int, words: int = 0) -> int:
    """Returns the bytes of a decoded example: pixels, masks as bits (one more for ignored pixels), words.

    Args:
        size: height and width.
        classes: how many there are.
        words: words of all vocabularies that are read.
    """
    return size[0] * size[1] * (3 - (-(classes + 1) // _CLASSES_A_BYTE)) + _FLOAT * words


def cache_budget(
    shards: Sequence[int], each: int, *, order: str, hosts: int, remote: bool, room: float = math.inf
) -> int:
    """Returns the bytes of the train split that stay in memory from the first epoch on; 0 where none do.

    Images are kept only if the trained model is the same without a cache, on machines of any size. A cache keeps the
    stored order. That makes a difference for several shards, or several pieces of one (which hosts share, or which are
    read from a bucket), but not for a single shard.

    Args:
        shards: records of every shard of the split.
        each: see `decoded_bytes`.
        order: `loader.order`.
        hosts: machines that train together.
        remote: whether the dataset is on an object store.
        room: bytes that a cache may take on such a machine.
    """
    filled = [records for records in shards if records]
    if order == "exact" or hosts > 1 or remote or len(filled) > 1:
        return 0
    needed = sum(filled) * each
    return needed if needed <= min(MOST, _OF_ROOM * room) else 0


def cache_examples(examples: Any, cache: str, bytes_: int, identity: Any) -> Any:
    """Caches examples.

    Args:
        examples: a `tf.data.Dataset`.
        cache: `memory`, or a folder on this machine; made where missing.
        bytes_: bytes of all of them.
        identity: plain values by which these examples differ from all others.

    Raises:
        UsageError: they do not fit, or another process is filling this cache.
        tf.errors.InvalidArgumentError: while iterating: another iterator of this process is filling this cache.
    """
    if cache == MEMORY:
        _check_room(bytes_, room_in_memory(), "half of the memory that is free", "a folder")
        return examples.cache()
    folder = Path(cache)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(
            f"cache: {folder} cannot be made ({error.strerror}). Give another folder, or 'memory'."
        ) from None
    file = folder / f"decoded-{fingerprint(identity)[:24]}"
    for part in folder.glob(f"{file.name}*"):
        is_own(part, stat.S_IFREG)
    # TensorFlow writes the index last.
    if not Path(f"{file}.index").is_file():
        _begin(file)
        free = int(shutil.disk_usage(folder).free * _OF_DISK)
        _check_room(bytes_, free, f"nine tenths of what is free at {folder}", "a folder on a larger disk")
    return _filled_once(examples.cache(os.fsencode(file)), file)


def _filled_once(cached: Any, file: Path) -> Any:
    """Refuses a second iterator while one fills the cache, before TensorFlow proposes to delete the lock."""
    problem = (
        f"cache: another iterator is filling {file}. Iterate that one to its end or delete it, or give another folder."
    )

    def free() -> bool:
        return Path(f"{file}.index").is_file() or not any(file.parent.glob(f"{file.name}_*.lockfile"))

    def check(value: Any) -> Any:
        return require(tf.ensure_shape(tf.numpy_function(free, [], tf.bool), []), problem, value)

    first = tf.data.Dataset.from_tensors(0).map(no_autograph(check))
    return first.flat_map(no_autograph(lambda _: cached))


def room_in_memory() -> int:
    """Returns the bytes that a cache in memory may take: a part of what is free here, and in the container."""
    available = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")  # Of macOS, no more is known.
    with suppress(OSError):
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                available = int(line.split()[1]) * 1024
    with suppress(OSError, ValueError):  # Without a limit there is a word.
        limit, used = (int(Path(f"/sys/fs/cgroup/memory.{name}").read_text("ascii")) for name in ("max", "current"))
        available = min(available, limit - used)
    return int(available * _OF_MEMORY)


def _begin(file: Path) -> None:
    """Locks a cache for filling, and deletes the files of a process that was killed while it filled the cache."""
    if str(file) in _held:
        return
    lock = open_own_file(f"{file}.lock", os.O_RDWR | os.O_CREAT, 0o600)
    if not lock_file(lock):
        os.close(lock)
        raise UsageError(f"cache: another process is filling {file}. Wait for it, or give another folder.")
    _held[str(file)] = lock
    for left in file.parent.glob(f"{file.name}*"):
        if not left.name.endswith(".lock"):
            left.unlink()


def _check_room(needed: int, room: int, what: str, instead: str) -> None:
    if needed > room:
        raise UsageError(
            f"cache: the decoded examples take {needed / 1e9:.2f} GB, and {what} is {room / 1e9:.2f} GB. Leave `cache` "
            f"out, or give {instead}."
        )
