"""Files read in order, a few ahead of their use."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardwright.storage import parallel, part_path, read_each
from shardwright.storage.paths import Part


def open_files():
    return len(os.listdir("/proc/self/fd"))


@given(st.lists(st.tuples(st.binary(max_size=9), st.integers(0, 9), st.none() | st.integers(0, 9)), max_size=20))
def test_every_part_is_read_in_order(tmp_path_factory, wanted):
    root = tmp_path_factory.mktemp("parts")
    parts, expected = [], []
    for number, (data, start, length) in enumerate(wanted):
        path = root / str(number)
        path.write_bytes(data)
        stop = None if length is None else start + length
        parts.append(Part(str(path), start, stop))
        expected.append((number, data[start:stop]))
    before = open_files()
    assert list(parallel.prefetch(range(len(parts)), parts.__getitem__)) == expected
    assert open_files() == before


def test_what_cannot_be_read_is_none_and_nothing_stays_open(tmp_path):
    for number in range(12):
        (tmp_path / str(number)).write_bytes(b"%d" % number)
    (tmp_path / "folder").mkdir()
    names = ["0", "missing", "folder", *map(str, range(1, 12))]
    before = open_files()
    found = list(read_each(str(tmp_path), names, lambda name: str(tmp_path / name), len))
    assert found == [(name, name.encode() if name.isdigit() else None) for name in names]
    reading = read_each(str(tmp_path), names, lambda name: str(tmp_path / name), len)
    assert next(reading) == ("0", b"0")
    assert open_files() > before
    reading.close()
    assert open_files() == before


def test_parts_of_files_and_links_are_read_by_their_paths(tmp_path):
    (tmp_path / "a").write_bytes(bytes(range(30)))
    path = part_path(str(tmp_path / "a"), 10, 20)
    assert list(read_each(str(tmp_path), [path], str, len)) == [(path, bytes(range(10, 20)))]


def test_an_error_of_the_caller_closes_what_was_opened_ahead(tmp_path):
    (tmp_path / "a").write_bytes(b"a")
    before = open_files()
    with pytest.raises(ZeroDivisionError):
        list(read_each(str(tmp_path), [1, 1, 0], lambda number: str(tmp_path / "a") * (1 // number), len))
    assert open_files() == before
