"""Hashes that were made a moment ago are used again, but never for a file that may be another by now."""

import builtins
import os
import time

import google_crc32c
import pytest

from shardwright.config import parse_config
from shardwright.ingest import input_fingerprint, locate
from shardwright.storage import cached_hashes, hash_file
from shardwright.storage.checksum import digest_of

LATER = 10_000_000_000


def settled():
    """A clock that is ahead, so that no file of this test counts as just changed."""
    return time.time_ns() + LATER


def truth(data):
    return digest_of(data), google_crc32c.value(data)


@pytest.fixture
def reads(monkeypatch):
    """Records the files that `hash_file` reads."""
    seen = []
    real = google_crc32c.extend

    def counted(checksum, chunk):
        seen.append(chunk)
        return real(checksum, chunk)

    monkeypatch.setattr("shardwright.storage.google_crc32c.extend", counted)
    return seen


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "a.jpg"
    path.write_bytes(b"first")
    return path


def test_a_file_is_read_once_within_the_block_and_again_after_it(file, reads):
    with cached_hashes(settled):
        assert hash_file(str(file)) == truth(b"first")
        del reads[:]
        assert hash_file(str(file)) == truth(b"first")
        assert not reads
        assert hash_file(str(file)) == truth(b"first")  # It was remembered for one more time.
        assert reads
    del reads[:]
    assert hash_file(str(file)) == truth(b"first")
    assert reads


def test_a_file_that_changed_is_read_again_though_its_mtime_and_size_were_kept(file):
    times = os.stat(file)
    with cached_hashes(settled):
        hash_file(str(file))
        file.write_bytes(b"other")
        os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
        assert os.stat(file).st_mtime_ns == times.st_mtime_ns
        assert hash_file(str(file)) == truth(b"other")


def test_another_file_that_took_its_name_is_read(file):
    with cached_hashes(settled):
        hash_file(str(file))
        new = file.with_name("new")
        new.write_bytes(b"third")
        os.replace(new, file)
        assert hash_file(str(file)) == truth(b"third")


def test_what_was_changed_within_a_tick_of_the_clock_is_not_trusted(file, reads):
    with cached_hashes(lambda: os.stat(file).st_ctime_ns + 1):
        hash_file(str(file))
        del reads[:]
        hash_file(str(file))
        assert reads


def test_what_changed_while_it_was_read_is_not_remembered(file, monkeypatch):
    real = google_crc32c.extend

    def meanwhile(checksum, chunk):
        with builtins.open(file, "ab") as other:
            other.write(b"!")
        monkeypatch.setattr("shardwright.storage.google_crc32c.extend", real)
        return real(checksum, chunk)

    with cached_hashes(settled):
        monkeypatch.setattr("shardwright.storage.google_crc32c.extend", meanwhile)
        hash_file(str(file))
        assert hash_file(str(file)) == truth(file.read_bytes())


def test_files_that_are_missing_are_as_ever(tmp_path):
    with cached_hashes(settled):
        assert hash_file(str(tmp_path / "missing")) is None
        assert hash_file(str(tmp_path)) is None


def test_an_input_that_is_looked_at_twice_is_read_once(tmp_path, image_input, reads):
    config = parse_config(image_input(tmp_path / "in", images=4), base=str(tmp_path))
    with cached_hashes(settled):
        first = input_fingerprint(config, locate(config))
        assert len(reads) >= 4  # The images; a small table is hashed as it is read for its rows.
        del reads[:]
        assert input_fingerprint(config, locate(config)) == first
        assert not reads
