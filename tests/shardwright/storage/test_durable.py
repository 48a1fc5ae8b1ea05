"""Every file and folder that is to be flushed is flushed, however many there are."""

import errno
import fcntl
import os
from pathlib import Path

import pytest

from shardwright.storage import durable


@pytest.fixture
def flushed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths that the system was asked to flush."""
    paths: list[str] = []
    monkeypatch.setattr(durable, "_FULL_FLUSH", None)
    monkeypatch.setattr(os, "fsync", lambda descriptor: paths.append(os.readlink(f"/proc/self/fd/{descriptor}")))
    return paths


def written(folder: Path, count: int) -> list[Path]:
    files = [folder / f"{number:03}" for number in range(count)]
    for file in files:
        file.write_bytes(b"data")
    return files


# Sixteen are flushed by one thread.
@pytest.mark.parametrize("count", [0, 1, 15, 16, 17, 33, 300])
def test_each_file_once(tmp_path: Path, flushed: list[str], count: int) -> None:
    files = written(tmp_path, count)
    durable.flush([*files, *files[:3]])
    assert sorted(flushed) == [str(file) for file in files]


def test_a_tree_with_its_folders_after_their_files(tmp_path: Path, flushed: list[str]) -> None:
    folders = [tmp_path / "a", tmp_path / "a" / "b"]
    for folder in folders:
        folder.mkdir()
    files = [file for folder in folders for file in written(folder, 20)]
    durable.flush_tree(tmp_path / "a")
    assert sorted(flushed[: len(files)]) == sorted(map(str, files))
    assert sorted(flushed[len(files) :]) == sorted(map(str, folders))


@pytest.mark.parametrize("count", [1, 40])
def test_a_missing_file_is_an_error(tmp_path: Path, flushed: list[str], count: int) -> None:
    files = written(tmp_path, count)
    files[-1].unlink()
    with pytest.raises(FileNotFoundError):
        durable.flush(files)
    assert str(files[-1]) not in flushed


@pytest.mark.parametrize("count", [2, 40])
def test_a_disk_that_fails_is_an_error_and_leaves_no_file_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    files = written(tmp_path, count)

    def failing(descriptor: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(durable, "_FULL_FLUSH", None)
    monkeypatch.setattr(os, "fsync", failing)
    with pytest.raises(OSError, match="Input/output"):
        durable.flush(files)
    opened = {os.path.realpath(f"/proc/self/fd/{number}") for number in os.listdir("/proc/self/fd")}
    assert not opened & set(map(str, files))


@pytest.mark.parametrize(
    ("answer", "asked", "fails"),
    [(0, ["drive"], False), (errno.ENOTSUP, ["drive", "system"], False), (errno.EIO, ["drive"], True)],
)
def test_on_macos_the_drive_is_flushed_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: int, asked: list[str], fails: bool
) -> None:
    """An error of the disk was dropped, and `fsync` does not report it again."""
    calls: list[str] = []

    def full(descriptor: int, command: int) -> int:
        assert command == 51
        calls.append("drive")
        if answer:
            raise OSError(answer, os.strerror(answer))
        return 0

    monkeypatch.setattr(durable, "_FULL_FLUSH", 51)
    monkeypatch.setattr(fcntl, "fcntl", full)
    monkeypatch.setattr(os, "fsync", lambda descriptor: calls.append("system"))
    with (tmp_path / "file").open("wb") as file:
        if fails:
            with pytest.raises(OSError, match="Input/output"):
                durable.flush_file(file)
        else:
            durable.flush_file(file)
    assert calls == asked
