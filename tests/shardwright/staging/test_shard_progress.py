"""The watcher counts shards that somebody else finishes, and ends with the block."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from shardwright.staging import staged
from shardwright.staging.staging import PlannedShard, RecordResult, Staging


class _Counted:
    def __init__(self) -> None:
        self.done = self.size = 0

    def advance(self, amount: int = 1, size: int = 0) -> None:
        self.done += amount
        self.size += size


@pytest.mark.parametrize("finished_before", [0, 2])
def test_finished_shards_are_counted_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, finished_before: int
) -> None:
    counted = _Counted()
    totals = []

    class _Fake:
        def __init__(self, total: int, label: str, size: int) -> None:
            totals.append((total, label))
            assert size == 0

        def __enter__(self) -> _Counted:
            return counted

        def __exit__(self, *_: object) -> None:
            pass

    monkeypatch.setattr(staged, "progress", _Fake)
    staging = Staging.open(tmp_path, "f" * 64)
    shards = [PlannedShard("train", i, 4) for i in range(4)]

    def write(shard: PlannedShard) -> None:
        staging.write_shard(shard, [RecordResult(f"{shard.number}.jpg", b"x")])

    for shard in shards[:finished_before]:
        write(shard)
    with staged.shard_progress(staging, shards, "writing shards"):
        for shard in shards[finished_before:]:
            write(shard)
    assert totals == [(4 - finished_before, "writing shards")]
    assert counted.done == 4 - finished_before


def test_images_of_finished_parts_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counted, totals = _Counted(), []

    @contextmanager
    def fake(total: int, label: str, size: int) -> Iterator[_Counted]:
        totals.append((total, label, size))
        yield counted

    monkeypatch.setattr(staged, "progress", fake)
    staging = Staging.open(tmp_path, "f" * 64)
    shards, bounds = [PlannedShard("train", 0, 2), PlannedShard("train", 1, 2)], [(0, 2, 5, 6), (0, 4)]
    staging.path("parts/Split-train-data-00000-of-00002").mkdir(parents=True)
    with staged.shard_progress(staging, shards, "writing images", bounds, [60, 40]):
        staging.path("parts/Split-train-data-00000-of-00002/000000002-000000005.json").touch()
    assert totals == [(10, "writing images", 100)]
    assert (counted.done, counted.size) == (3, 30)


def test_an_error_in_the_block_comes_out(tmp_path: Path) -> None:
    staging = Staging.open(tmp_path, "f" * 64)
    with pytest.raises(RuntimeError, match="Beam"), staged.shard_progress(staging, [PlannedShard("train", 0, 1)], "w"):
        raise RuntimeError("Beam")
