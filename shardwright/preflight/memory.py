"""What the loader needs of a host's memory, by arithmetic; `shardwright bench loader` prints it beside what it took."""

from __future__ import annotations

from dataclasses import dataclass

# Python, NumPy and TensorFlow, imported and run once, before the first image: measured, rounded up.
_LIBRARIES = 600 << 20
# What `shardwright.loader` keeps in flight: shards read at a time, a read buffer each; encoded records that are under
# way to a decoder; batches of them that `order: exact` reads ahead; batches that are filled, are finished or wait;
# decoded images of each thread that wait for their batch.
_SHARDS_AT_ONCE = 16
_READ_BUFFER = 256 << 10
_UNDER_WAY, _UNDER_WAY_A_PROCESSOR = 64, 2
_READ_AHEAD = 4
_BATCHES = 5
_IMAGES_A_THREAD = 4


@dataclass(frozen=True)
class LoaderMemory:
    """Bytes by what they are for.

    Attributes:
        libraries: Python and what is imported.
        readers: read buffers of the shards that are open.
        shuffle: records that are mixed or wait for a decoder, still encoded.
        batches: those in flight, and the decoded images that wait for them.
        kept: decoded images that stay from the first epoch on (`shardwright.epochs.kept_images`).
    """

    libraries: int
    readers: int
    shuffle: int
    batches: int
    kept: int = 0

    @property
    def total(self) -> int:
        """All of it."""
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
    value_bytes: int = 4,
    kept: int = 0,
) -> LoaderMemory:
    """Estimates the memory of one host's loader.

    Args:
        record: bytes of a stored record.
        shuffle_buffer: records that are mixed at a time.
        batch: images of this host's batch.
        size: height and width of an image.
        channels: channels of the target, a byte each; 0 where a label is a number.
        shards: shards that this host reads.
        processors: threads that decode.
        value_bytes: bytes of a value of the image, 4 for float32.
        kept: bytes of decoded images that stay.
    """
    height, width = size
    # While a batch is normalized its uint8 form is there, too.
    one = batch * height * width * (3 * value_bytes + 3 + channels)
    waiting = max(_UNDER_WAY, _UNDER_WAY_A_PROCESSOR * processors) + _READ_AHEAD * batch
    return LoaderMemory(
        libraries=_LIBRARIES,
        readers=min(shards, _SHARDS_AT_ONCE) * _READ_BUFFER,
        shuffle=int((shuffle_buffer + waiting) * record),
        batches=_BATCHES * one + _IMAGES_A_THREAD * max(1, processors) * height * width * (3 + channels),
        kept=kept,
    )
