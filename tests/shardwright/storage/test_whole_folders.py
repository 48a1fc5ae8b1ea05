"""The folder next to an output: only one run uses it, and the run after a killed one empties it."""

import errno
import os

import pytest

from shardwright.errors import StorageError, UsageError
from shardwright.storage.own_names import LOCK_FILE, MARK
from shardwright.storage.whole_files import appear, assembling, discard

CONTENT = "ab" * 32


def working(target):
    return target.parent / f".partial-{CONTENT[:16]}"


def test_it_is_renamed_or_goes(tmp_path):
    target = tmp_path / "deep/out"
    with assembling(target, CONTENT) as folder:
        (folder / "a").write_text("a")
        appear(folder, target)
    assert (target / "a").read_text() == "a"
    with pytest.raises(FileExistsError), assembling(target, CONTENT) as folder:
        (folder / "b").mkdir(parents=not (folder / "b").mkdir())
    with assembling(target, CONTENT):
        pass
    assert os.listdir(target.parent) == ["out"]


def test_what_a_killed_run_has_left_is_cleared(tmp_path):
    left = working(tmp_path / "out")
    for again in (1, 2):
        (left / "whole/Split-train").mkdir(parents=True)
        (left / LOCK_FILE).write_bytes(MARK)
        (left / "whole/Split-train/data").write_text("half")
        (left / "replaced").write_text("half")
        if again == 1:
            with assembling(tmp_path / "out", CONTENT) as folder:
                assert list(folder.iterdir()) == []
        else:
            discard(tmp_path / "out", CONTENT)
        assert not left.exists()
    discard(tmp_path / "out", CONTENT)


def test_a_folder_that_no_run_has_made_stays_as_it_is(tmp_path):
    left = working(tmp_path / "out")
    left.mkdir()
    (left / "taxes").write_text("mine")
    with (
        pytest.raises(UsageError, match=r"\.partial-\w+: contains files, and no run of this version made the folder"),
        assembling(tmp_path / "out", CONTENT),
    ):
        raise AssertionError("entered")
    discard(tmp_path / "out", CONTENT)
    assert os.listdir(left) == ["taxes"]


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


@pytest.mark.parametrize("theirs", ["folder", "file"])
def test_the_loser_of_a_race_is_told_so_and_leaves_nothing(tmp_path, theirs):
    target = tmp_path / "out"
    with assembling(target, CONTENT) as folder:
        (folder / "ours").write_text("ours")
        if theirs == "file":
            target.write_text("theirs")
        else:
            target.mkdir()
            (target / "theirs").write_text("theirs")
        with pytest.raises(
            UsageError, match=r"out: something else was put there in the meantime\. Name another folder"
        ):
            appear(folder, target)
    assert os.listdir(tmp_path) == ["out"]
    assert (target if theirs == "file" else target / "theirs").read_text() == "theirs"


def test_a_file_system_without_locks_does(tmp_path, monkeypatch):
    def no_locks(file, how):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("shardwright.storage.locks.fcntl.flock", no_locks)
    with assembling(tmp_path / "out", CONTENT) as folder:
        appear(folder, tmp_path / "out")
    assert os.listdir(tmp_path) == ["out"]


def test_a_full_disk_is_named_by_the_output_and_leaves_nothing(tmp_path):
    target = tmp_path / "out"
    with pytest.raises(StorageError, match=r"out: cannot be written \(.*\)\. Make room"), assembling(target, "f" * 64):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert list(tmp_path.iterdir()) == []
