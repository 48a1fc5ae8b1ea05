"""The folder next to an output: only one run uses it, and the run after a killed one empties it."""

import errno
import os

import pytest

from shardwright.errors import StorageError, UsageError
from shardwright.staging.output import assembling, discard

CONTENT = "ab" * 32


def partial(target):
    return target.parent / f".partial-{CONTENT[:16]}"


def test_it_is_renamed_or_goes(tmp_path):
    target = tmp_path / "deep/out"
    with assembling(target, CONTENT) as folder:
        (folder / "a").write_text("a")
        os.rename(folder, target)
    assert (target / "a").read_text() == "a"
    with pytest.raises(FileExistsError), assembling(target, CONTENT) as folder:
        (folder / "b").mkdir(parents=not (folder / "b").mkdir())
    with assembling(target, CONTENT):
        pass
    assert os.listdir(target.parent) == ["out"]


def test_what_a_killed_run_has_left_is_cleared(tmp_path):
    left = partial(tmp_path / "out")
    (left / "Split-train").mkdir(parents=True)
    (left / "Split-train/data").write_text("half")
    (left / "manifest.json").write_text("half")
    with assembling(tmp_path / "out", CONTENT) as folder:
        assert list(folder.iterdir()) == []
    left.mkdir()
    discard(tmp_path / "out", CONTENT)
    assert not left.exists()
    discard(tmp_path / "out", CONTENT)


def test_a_living_run_is_let_alone_and_the_other_refused(tmp_path):
    target = tmp_path / "out"
    with assembling(target, CONTENT) as folder:
        (folder / "a").write_text("a")
        with (
            pytest.raises(UsageError, match="another run is publishing the same dataset"),
            assembling(target, CONTENT),
        ):
            raise AssertionError("entered")
        discard(target, CONTENT)
        assert os.listdir(folder) == ["a"]
        with assembling(target, "cd" * 32):
            pass


def test_a_folder_that_was_renamed_before_it_was_locked_is_not_taken(tmp_path, monkeypatch):
    from shardwright.staging import output

    target = tmp_path / "out"
    lock, seen = output._lock, []

    def late(descriptor):
        if not seen:
            os.rename(partial(target), tmp_path / "published")
        seen.append(descriptor)
        return lock(descriptor)

    monkeypatch.setattr(output, "_lock", late)
    with assembling(target, CONTENT) as folder:
        (folder / "a").write_text("a")
        assert os.listdir(tmp_path / "published") == []
    assert len(seen) == 2


def test_a_full_disk_is_named_by_the_output_and_leaves_nothing(tmp_path):
    target = tmp_path / "out"
    with pytest.raises(StorageError, match=r"out: cannot be written \(.*\)\. Make room"), assembling(target, "f" * 64):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert list(tmp_path.iterdir()) == []
