"""Parts of files: read as files are."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardwright.storage import display_path, hash_file, part_path, read_bytes, read_start
from shardwright.storage.checksum import digest_of
from shardwright.storage.paths import Part, split_part


@given(st.text(st.characters(exclude_characters="\0")), st.integers(0, 2**40), st.integers(0, 2**40))
def test_a_path_contains_its_part(path, start, stop):
    assert split_part(part_path(path, start, stop)) == (path, start, stop)
    assert split_part(path) == Part(path, 0, None)
    assert "\0" not in display_path(part_path(path, start, stop))


def test_a_part_is_read_and_hashed_as_a_file_is(tmp_path):
    file = tmp_path / "f:1"
    file.write_bytes(bytes(range(100)))
    path = part_path(str(file), 10, 20)
    assert read_bytes(path) == bytes(range(10, 20))
    assert read_start(path, 4) == bytes(range(10, 14))
    assert read_start(path, 99) == bytes(range(10, 20))
    assert hash_file(path).content_id == digest_of(bytes(range(10, 20)))
    assert read_bytes(str(file)) == bytes(range(100))
    assert read_start(str(file), 4) == bytes(range(4))


def test_a_part_of_a_missing_file_cannot_be_read(tmp_path):
    path = part_path(str(tmp_path / "none"), 0, 5)
    assert hash_file(path) is None
    with pytest.raises(OSError, match="none"):
        read_bytes(path)
