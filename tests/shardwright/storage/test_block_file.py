"""Files written in blocks: the bytes and checksum of any pieces, past the system's cache or through it."""

import errno
import os
import random

import pytest

from shardwright.checksum import checksum_of
from shardwright.storage import block_file
from shardwright.storage.block_file import BlockFile

BLOCK = 1 << 16


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(block_file, "_BLOCK", BLOCK)


def pieces():
    drawn = random.Random(7)
    sizes = [0, 1, BLOCK, BLOCK - 1, 2, 3 * BLOCK + 5, *(drawn.randrange(BLOCK // 2) for _ in range(20))]
    return [drawn.randbytes(size) for size in sizes]


def written(path, direct, parts):
    file = BlockFile(path, direct=direct)
    try:
        for part in parts:
            file.write(part)
        assert file.size == sum(map(len, parts))
        before = file.checksum
        file.finish()
        assert (file.checksum, file.size) == (before, sum(map(len, parts)))
        return before
    finally:
        file.close()


@pytest.mark.parametrize("direct", [True, False])
@pytest.mark.parametrize("count", [0, 1, 3, 26])
def test_the_file_has_the_bytes_that_were_written(tmp_path, direct, count):
    parts = pieces()[:count]
    assert written(tmp_path / "f", direct, parts) == checksum_of(b"".join(parts))
    assert (tmp_path / "f").read_bytes() == b"".join(parts)


@pytest.mark.parametrize("refused", ["flag", "write"])
def test_a_file_system_that_refuses_direct_writes_gets_usual_ones(tmp_path, monkeypatch, refused):
    set_flags, write, failed = block_file.fcntl.fcntl, os.pwrite, []

    def no_flag(descriptor, command, *flags):
        if flags and flags[0] & os.O_DIRECT:
            failed.append(command)
            raise OSError(errno.EINVAL, "no")
        return set_flags(descriptor, command, *flags)

    def no_write(*given):
        if not failed:
            failed.append(given[2])
            raise OSError(errno.EINVAL, "no")
        return write(*given)

    if refused == "flag":
        monkeypatch.setattr(block_file.fcntl, "fcntl", no_flag)
    else:
        monkeypatch.setattr(block_file.os, "pwrite", no_write)
    assert written(tmp_path / "f", True, pieces()) == checksum_of(b"".join(pieces()))
    assert failed
    assert (tmp_path / "f").read_bytes() == b"".join(pieces())


def test_an_error_of_a_block_that_is_written_in_the_background_is_raised(tmp_path, monkeypatch):
    """Of the first block: those that follow are written."""
    write, refused = os.pwrite, []

    def full(*given):
        if not refused:
            refused.append(given[2])
            raise OSError(errno.ENOSPC, "full")
        return write(*given)

    monkeypatch.setattr(block_file.os, "pwrite", full)
    with pytest.raises(OSError, match="full"):
        written(tmp_path / "f", True, pieces())
