"""Records by location, in any order, each with its item; unreadable ones are `None`."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardwright.dataset import random_access
from shardwright.dataset.random_access import records_at
from shardwright.tfrecords.records import RecordWriter

PAYLOADS = [[bytes([file, number]) * (1 + 37 * number) for number in range(12)] for file in range(2)]


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Two files, and file, offset, length of all their records."""
    files, places = [], []
    for number, payloads in enumerate(PAYLOADS):
        files.append(str(tmp_path_factory.mktemp("records") / f"{number}"))
        with open(files[-1], "wb") as out:
            writer = RecordWriter(out)
            places += [(number, *writer.write(payload)) for payload in payloads]
    return files, places


@given(
    st.lists(st.integers(0, 23), max_size=40), st.sampled_from([1, 300, 1 << 20]), st.sampled_from([0, 100, 1 << 17])
)
def test_any_order_and_any_size_of_pieces(written, chosen, piece, gap):
    files, places = written
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(random_access, "_PIECE", piece)
        patch.setattr(random_access, "_GAP", gap)
        found = list(records_at(files, ((places[i], i) for i in chosen)))
    assert found == [(i, PAYLOADS[i // 12][i % 12]) for i in chosen]


def test_neighbors_come_in_one_request(written, monkeypatch):
    files, places = written
    asked = []
    monkeypatch.setattr(random_access, "read_bytes", lambda path: asked.append(path) or b"")
    list(records_at(files, ((place, None) for place in places)))
    assert len(asked) == 2


def test_what_is_damaged_or_gone_is_nothing(written, tmp_path):
    files, places = written
    data = bytearray(Path(files[0]).read_bytes())
    data[places[3][1] + 12] ^= 1
    (tmp_path / "damaged").write_bytes(data[: places[9][1] + 5])
    found = [
        payload for _, payload in records_at([str(tmp_path / "damaged")], ((place, None) for place in places[:12]))
    ]
    assert [payload is None for payload in found] == [number in (3, 9, 10, 11) for number in range(12)]
    assert [payload for _, payload in records_at([str(tmp_path / "gone")], [(places[0], None)])] == [None]
