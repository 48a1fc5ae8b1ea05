"""Listing records: every one is an input, keys are unique and safe, places are right, with any bytes."""

import io
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from property_tests import tries
from recording import PACKINGS, picture, record, write_records

from shardwright.errors import ShardwrightError
from shardwright.formats.record_listing import holds_records, list_records
from shardwright.storage import list_inputs, read_bytes
from shardwright.tfrecords.encode import encode_example
from shardwright.tfrecords.records import frame
from shardwright.tfrecords.scan import scan_records

_NAMES = st.one_of(st.text(max_size=12), st.sampled_from(["a.rec/1", "a.rec/0", "x.jpg", "..", "a/../b", "/x", "a\\b"]))


def listed(folder, task="classification"):
    return list_records(list_inputs(str(folder)), task=task, columns={"key": "key"})


@tries(30)
@given(names=st.lists(_NAMES, min_size=1, max_size=12), packing=st.sampled_from(sorted(PACKINGS)))
def test_keys_are_unique_safe_and_sorted_and_lead_to_their_images(tmp_path_factory, names, packing):
    folder = tmp_path_factory.mktemp("listing")
    payloads = [record(i, key=name.encode(), label=1) for i, name in enumerate(names)]
    write_records(folder / "a.rec", payloads, packing)
    found = listed(folder)
    keys = found.listing.keys
    assert keys == sorted(set(keys))
    assert len(keys) == len(names)
    for i, position in enumerate(found.positions[0]):
        assert keys[position] in (names[i], f"a.rec/{i}") or not names[i].isascii()
        assert read_bytes(found.listing.path(position)) == picture(i)
    for key in keys:
        assert not {"", ".", ".."} & set(key.split("/"))
        assert key.isprintable()


_PLAIN = b"".join(frame(record(i, key=b"%d" % i, label=i)) for i in range(3))


@tries(40)
@given(
    changes=st.lists(st.tuples(st.integers(0, len(_PLAIN) - 1), st.integers(0, 255)), max_size=6),
    size=st.integers(1, len(_PLAIN)),
    packing=st.sampled_from(sorted(PACKINGS)),
)
def test_every_record_of_a_damaged_file_is_listed_or_refused(tmp_path_factory, changes, size, packing):
    data = bytearray(_PLAIN)
    for place, value in changes:
        data[place] = value
    folder = tmp_path_factory.mktemp("damaged")
    (folder / "a.tfrecord").write_bytes(PACKINGS[packing](bytes(data[:size])))
    (folder / "b.tfrecord").write_bytes(frame(record(9, key=b"9", label=9)))
    found = listed(folder)
    walked = list(scan_records(io.BytesIO(bytes(data[:size]))))
    usable = [position for positions in found.positions for position in positions if position >= 0]
    assert sorted(usable) == list(range(len(found.listing.keys)))
    assert len(usable) + len(found.refused) == len(walked) + 1
    assert all("offset" in refusal.reason for refusal in found.refused)


@tries(40)
@given(payloads=st.lists(st.binary(max_size=80), max_size=4))
def test_any_payloads_are_listed_or_refused_with_an_error_of_ours(tmp_path_factory, payloads):
    folder = tmp_path_factory.mktemp("any")
    write_records(folder / "a.rec", payloads)
    with suppress(ShardwrightError):
        listed(folder)


def test_a_folder_of_other_files_holds_no_records(tmp_path):
    (tmp_path / "notes.txt").write_text("hello, these are notes")
    (tmp_path / "empty").write_bytes(b"")
    assert not holds_records(list_inputs(str(tmp_path)))
    write_records(tmp_path / "records", [b"x"], "gzip")
    assert "records begins as" in holds_records(list_inputs(str(tmp_path)))


def test_more_features_than_any_data_set_has_are_refused(tmp_path):
    write_records(tmp_path / "a.rec", [record(0, key=b"0", label=1, **{f"f{i}": i for i in range(1001)})])
    with pytest.raises(ShardwrightError, match="more than 1000 different features"):
        listed(tmp_path)


def test_nested_messages_do_not_exhaust_the_stack(tmp_path):
    deep = b""
    for _ in range(5000):
        deep = encode_example({"a": deep[:60_000]})
    write_records(tmp_path / "a.rec", [deep])
    with pytest.raises(ShardwrightError):
        listed(tmp_path)
