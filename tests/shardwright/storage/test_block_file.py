"""Files written in large calls: the bytes and checksum of any pieces."""

import errno
import os
import random
from types import SimpleNamespace

import pytest

from shardwright.storage import whole_files as block_file
from shardwright.storage.checksum import checksum_of, new_checksum
from shardwright.storage.durable import begin_flush
from shardwright.storage.whole_files import BlockFile

BLOCK = 1 << 16


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(block_file, "_TOGETHER", BLOCK)


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


def test_a_call_that_writes_less_is_continued(tmp_path, monkeypatch):
    """On some file systems, and where a signal arrives, a call writes a part only."""
    write = os.writev
    monkeypatch.setattr(block_file.os, "writev", lambda file, parts: write(file, [bytes(parts[0][:9_000])]))
    parts = pieces()
    assert written(tmp_path / "f", parts) == checksum_of(b"".join(parts))
    assert (tmp_path / "f").read_bytes() == b"".join(parts)


def test_no_call_has_more_bytes_than_one_may_have(tmp_path, monkeypatch):
    write, sizes = os.writev, []
    monkeypatch.setattr(block_file, "_CALL", 50_000)
    monkeypatch.setattr(block_file.os, "writev", lambda *given: sizes.append(write(*given)) or sizes[-1])
    written(tmp_path / "f", pieces())
    assert max(sizes) == 50_000
    assert sum(sizes) == sum(map(len, pieces()))


def copies_less(*given, **places):
    return os.copy_file_range(given[0], given[1], 9_000, **places)


def copies_until_refused(*given, **places):
    if places["offset_src"]:
        raise OSError(errno.EINVAL, "no")
    return copies_less(*given, **places)


def refuses(*given, **places):
    raise OSError(errno.EXDEV, "no")


def nothing(*given, **places):
    return 0


@pytest.mark.parametrize(
    "call", [getattr(os, "copy_file_range", None), copies_less, copies_until_refused, refuses, nothing, None]
)
def test_a_file_is_appended_whatever_the_system_copies(tmp_path, monkeypatch, call):
    fake = SimpleNamespace(**{name: getattr(os, name) for name in dir(os) if name != "copy_file_range"})
    if call is not None:
        fake.copy_file_range = call
    monkeypatch.setattr(block_file, "os", fake)
    monkeypatch.setattr(block_file, "_CALL", 50_000)
    source, data = tmp_path / "source", b"".join(pieces())
    source.write_bytes(data)
    file, alone = BlockFile(tmp_path / "f"), new_checksum()
    file.write(b"before")
    assert file.append(source, alone) == len(data)
    file.write(b"after")
    assert file.checksum == checksum_of(b"before" + data + b"after")
    assert file.size == len(data) + 11
    file.close()
    assert alone.hexdigest() == checksum_of(data)
    assert (tmp_path / "f").read_bytes() == b"before" + data + b"after"


def test_an_error_of_the_disk_is_not_taken_for_a_refusal(tmp_path, monkeypatch):
    def full(*given, **places):
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(block_file.os, "copy_file_range", full)
    (tmp_path / "source").write_bytes(b"x")
    file = BlockFile(tmp_path / "f")
    with pytest.raises(OSError, match="full"):
        file.append(tmp_path / "source", new_checksum())
    file.close()


def test_an_error_of_a_call_is_raised(tmp_path, monkeypatch):
    """The first call fails: those that follow would succeed."""
    write, refused = os.writev, []

    def full(*given):
        if not refused:
            refused.append(given)
            raise OSError(errno.ENOSPC, "full")
        return write(*given)

    monkeypatch.setattr(block_file.os, "writev", full)
    with pytest.raises(OSError, match="full"):
        written(tmp_path / "f", pieces())


@pytest.mark.parametrize("durable", [True, False])
def test_the_disk_begins_with_a_file_that_is_going_to_be_flushed(tmp_path, monkeypatch, durable):
    begun = []
    monkeypatch.setattr(block_file, "_BEGIN_FLUSH", 2 * BLOCK)
    monkeypatch.setattr(block_file, "begin_flush", lambda _, start, size: begun.append((start, size)))
    file = BlockFile(tmp_path / "f", durable=durable)
    for _ in range(9):
        file.write(bytes(BLOCK))
    file.close()
    assert begun == ([(number * 2 * BLOCK, 2 * BLOCK) for number in range(4)] if durable else [])


def test_asking_the_system_to_begin_changes_no_byte_and_needs_no_file(tmp_path):
    descriptor = os.open(tmp_path / "f", os.O_RDWR | os.O_CREAT)
    os.write(descriptor, b"some")
    begin_flush(descriptor, 0, 4)
    os.close(descriptor)
    begin_flush(descriptor, 0, 4)
    assert (tmp_path / "f").read_bytes() == b"some"
