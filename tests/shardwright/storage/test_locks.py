"""Folders that only one run may use."""

import errno
import fcntl
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from shardwright.errors import StorageError, UsageError
from shardwright.storage.locks import LOCK_FILE, lock_folder, locked_folder


@pytest.mark.parametrize("target", ["victim", "no-such-folder/victim"])
def test_a_link_in_place_of_the_lock_is_not_followed(tmp_path: Path, target: str) -> None:
    folder = tmp_path / "staging"
    folder.mkdir()
    (folder / LOCK_FILE).symlink_to(tmp_path / target)
    with pytest.raises(UsageError, match=r"staging/\.lock: is a link, which no run of ours made"):
        lock_folder(folder)
    assert not (tmp_path / "victim").exists()


def test_a_folder_is_held_until_its_file_is_closed(tmp_path: Path) -> None:
    with lock_folder(tmp_path / "new"), pytest.raises(UsageError, match="another run is active there"):
        lock_folder(tmp_path / "new")
    lock_folder(tmp_path / "new").close()


def test_a_folder_that_goes_while_it_is_locked_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, open_file, removed = tmp_path / "x", os.open, []

    def gone(path: Any, *given: Any, **named: Any) -> int:
        if not removed:
            removed.append(path)
            folder.rmdir()
        return open_file(path, *given, **named)

    monkeypatch.setattr("shardwright.storage.locks.os.open", gone)
    lock_folder(folder).close()
    assert removed == [folder / LOCK_FILE]
    assert folder.is_dir()


def test_a_lock_on_a_deleted_folder_is_taken_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, lock, removed = tmp_path / "x", fcntl.flock, []

    def late(file: Any, how: int) -> None:
        if not removed:
            removed.append(folder)
            shutil.rmtree(folder)
        lock(file, how)

    monkeypatch.setattr("shardwright.storage.locks.fcntl.flock", late)
    with lock_folder(folder) as file:
        assert os.path.samestat(os.fstat(file.fileno()), (folder / LOCK_FILE).stat())


def test_a_full_disk_is_named_by_the_file_where_it_is_known(tmp_path: Path) -> None:
    folder, full = tmp_path / "staging", os.strerror(errno.ENOSPC)
    cases = {
        None: (f"{folder}: ", "Nothing was published. Try X."),
        str(folder / "shard"): (f"{folder}/shard: ", "Nothing was published. Try X."),
        str(tmp_path / "other"): (f"{tmp_path}/other: ", "Make room there, or give another path."),
    }
    for name, (place, fix) in cases.items():
        with pytest.raises(StorageError) as caught, locked_folder(folder, "Try X."):
            raise OSError(errno.ENOSPC, full) if name is None else OSError(errno.ENOSPC, full, name)
        assert str(caught.value) == f"{place}cannot be written ({full}). {fix}"
    with pytest.raises(PermissionError), locked_folder(folder):
        raise PermissionError(errno.EACCES, "no")


def test_a_lock_ends_with_the_process_that_has_it_although_a_fork_lives_on(tmp_path: Path) -> None:
    lock = lock_folder(tmp_path / "x")
    ready, end = os.pipe(), os.pipe()
    child = os.fork()
    if not child:
        os.close(end[1])
        os.write(ready[1], b".")
        os.read(end[0], 1)
        os._exit(0)
    try:
        assert os.read(ready[0], 1)
        lock.close()
        lock_folder(tmp_path / "x").close()
    finally:
        for descriptor in (*ready, *end):
            os.close(descriptor)
        os.waitpid(child, 0)
