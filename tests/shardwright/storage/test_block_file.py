"""Files written in blocks: the bytes and checksum of any pieces."""

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


def written(path, parts):
    file = BlockFile(path)
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


@pytest.mark.parametrize("count", [0, 1, 3, 26])
def test_the_file_has_the_bytes_that_were_written(tmp_path, count):
    parts = pieces()[:count]
    assert written(tmp_path / "f", parts) == checksum_of(b"".join(parts))
    assert (tmp_path / "f").read_bytes() == b"".join(parts)


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
        written(tmp_path / "f", pieces())
