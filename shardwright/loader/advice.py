"""Settings of the loader that fit a dataset and a machine, with their reasons, computed from measurements."""

from __future__ import annotations

from dataclasses import dataclass

from shardwright.loader.memory import SHARDS_AT_ONCE, loader_memory

# The shuffle buffer spans several shards and this many batches, up to this many bytes.
_BATCHES_MIXED = 64
_MOST_SHUFFLED = 256 << 20


@dataclass(frozen=True)
class Advice:
    """One setting.

    Attributes:
        setting: YAML path, or a name.
        value: the recommended value.
        reason: why.
    """

    setting: str
    value: str
    reason: str


@dataclass(frozen=True)
class Loaded:
    """The measurements that the advice depends on.

    Attributes:
        records: records of the split.
        shards: its shards.
        record_bytes: bytes of a record, on average.
        size: height and width of its images.
        channels: channels of the target, a byte each; 0 where it is a number.
        batch: images in a batch.
        processors: processors of this machine.
        exact_share: images/s of `order: exact` as a share of `order: fast`.
    """

    records: int
    shards: int
    record_bytes: float
    size: tuple[int, int]
    channels: int
    batch: int
    processors: int
    exact_share: float


def advise(loaded: Loaded) -> list[Advice]:
    """Returns settings with reasons, and the memory they take."""
    buffer = shuffle_buffer(loaded)
    cycle = min(loaded.shards, SHARDS_AT_ONCE)
    memory = loader_memory(
        record=loaded.record_bytes,
        shuffle_buffer=min(buffer, loaded.records),
        batch=loaded.batch,
        size=loaded.size,
        channels=loaded.channels,
        shards=loaded.shards,
        processors=loaded.processors,
    )
    why = f"no more than {_MOST_SHUFFLED >> 20} MB, or two batches"
    if buffer == loaded.records:
        why = "all there are"
    elif buffer == _BATCHES_MIXED * loaded.batch:
        why = "enough, since shards are mixed too"
    return [
        Advice(
            "cycle length",
            str(cycle),
            f"the loader reads {cycle} of {loaded.shards} shards concurrently"
            + ("; more shards would mix better" if loaded.shards < SHARDS_AT_ONCE else "")
            + "; it is fixed, since the order of records depends on it",
        ),
        Advice(
            "loader.shuffle_buffer",
            str(buffer),
            f"{buffer / loaded.batch:.0f} batches of {loaded.batch}, {buffer * loaded.record_bytes / 1e6:.0f} MB of "
            f"encoded records: {why}",
        ),
        Advice(
            "loader.order",
            "exact" if loaded.exact_share >= 0.9 else "fast",
            f"exact reaches {loaded.exact_share:.0%} of the images/s of fast here, and a stopped training resumes "
            "at the same step",
        ),
        Advice(
            "memory",
            f"{memory.total / 1e9:.2f} GB",
            f"libraries {memory.libraries / 1e6:.0f} MB, reading {memory.readers / 1e6:.0f} MB, shuffling "
            f"{memory.shuffle / 1e6:.0f} MB, batches {memory.batches / 1e6:.0f} MB",
        ),
    ]


def shuffle_buffer(loaded: Loaded) -> int:
    """Returns records for the shuffle buffer: many batches in bounded memory, at most all, at least two batches."""
    fitting = int(_MOST_SHUFFLED // max(1.0, loaded.record_bytes))
    return max(2 * loaded.batch, min(_BATCHES_MIXED * loaded.batch, fitting, loaded.records))
