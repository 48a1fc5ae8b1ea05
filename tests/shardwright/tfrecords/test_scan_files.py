"""Walking TFRecord files: plain, compressed, damaged; what becomes of every record."""

import gzip
import io
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardwright.tfrecords.records import frame
from shardwright.tfrecords.scan import begins_as_records, is_compressed, scan_records

PAYLOADS = [b"one", b"", b"three" * 50]
PLAIN = b"".join(map(frame, PAYLOADS))
PACKED = {"plain": bytes, "gzip": gzip.compress, "zlib": zlib.compress}


def walk(data):
    return list(scan_records(io.BytesIO(data)))


@given(st.lists(st.binary(max_size=300)), st.sampled_from(sorted(PACKED)))
def test_every_record_is_found_at_its_offset(payloads, packing):
    plain = b"".join(map(frame, payloads))
    packed = PACKED[packing](plain)
    copy = io.BytesIO()
    found = list(scan_records(io.BytesIO(packed), copy))
    assert copy.getvalue() == plain
    assert [record.payload for record in found] == payloads
    assert [record.number for record in found] == list(range(len(payloads)))
    assert all(plain[record.offset :].startswith(frame(record.payload)) for record in found)
    assert is_compressed(packed) == (packing != "plain")
    assert begins_as_records(packed[:64]) == bool(payloads)


def test_gzip_files_may_be_several_one_after_the_other():
    assert [record.payload for record in walk(gzip.compress(frame(b"a")) + gzip.compress(frame(b"b")))] == [b"a", b"b"]


def test_records_are_walked_in_pieces_of_any_size():
    big = bytes(range(256)) * 10_000
    assert [record.payload for record in walk(gzip.compress(frame(big) + frame(b"x")))] == [big, b"x"]


@given(st.integers(0, len(PLAIN) - 1), st.integers(0, 7))
def test_a_flipped_bit_costs_a_record_or_the_rest_and_is_reported(place, bit):
    damaged = bytearray(PLAIN)
    damaged[place] ^= 1 << bit
    found = walk(bytes(damaged))
    bad = [record for record in found if record.payload is None]
    assert len(bad) == 1
    assert bad[0].code == "damaged"
    assert bad[0].where == f"record {bad[0].number} at offset {bad[0].offset}"
    sound = [record.payload for record in found if record.payload is not None]
    number = bad[0].number
    # Payload and footer are passed over; a header ends it.
    assert sound in (PAYLOADS[:number], PAYLOADS[:number] + PAYLOADS[number + 1 :])


@given(st.integers(1, len(PLAIN) - 1))
def test_a_cut_file_gives_what_is_whole_and_one_record_that_is_not(size):
    found = walk(PLAIN[:size])
    ends = [len(b"".join(map(frame, PAYLOADS[:count]))) for count in range(len(PAYLOADS) + 1)]
    whole = max(count for count, end in enumerate(ends) if end <= size)
    assert [record.payload for record in found[:whole]] == PAYLOADS[:whole]
    rest = [record.code for record in found[whole:]]
    assert rest == ([] if size in ends else ["truncated"])


@given(st.integers(0, 60), st.sampled_from(["gzip", "zlib"]))
def test_a_cut_or_damaged_compressed_file_is_reported(size, packing):
    packed = PACKED[packing](PLAIN)
    size = min(size + 2, len(packed) - 1)
    found = walk(packed[:size])
    assert found[-1].payload is None
    assert (found[-1].code, "compression" in found[-1].reason) == ("damaged", True)


@given(st.binary(max_size=200))
def test_any_bytes_are_walked_without_an_error(data):
    for record in walk(data):
        assert (record.payload is None) == bool(record.code)


def test_a_huge_claimed_length_asks_for_no_memory(monkeypatch):
    from shardwright.tfrecords import scan
    from shardwright.tfrecords.records import masked_crc

    length = (2**40).to_bytes(8, "little")
    header = length + masked_crc(length).to_bytes(4, "little")
    for data in (header, header + b"abc", gzip.compress(header + b"abc")):
        (record,) = walk(data)
        assert (record.code, record.number) == ("truncated", 0)
    monkeypatch.setattr(scan, "_LARGEST", 100)
    found = walk(PLAIN)
    assert [record.code for record in found] == ["", "", "too_large"]
    assert [record.code for record in walk(PLAIN[len(frame(b"one")) :] + frame(b"last"))] == ["", "too_large", ""]


@pytest.mark.parametrize("start", [b"", b"\x1f\x8b", b"\x78\x9c", b"hello, world, and more", b"\xff\xd8\xff\xe0" * 4])
def test_other_files_do_not_begin_as_records(start):
    assert not begins_as_records(start)


def test_a_record_of_120_bytes_is_not_taken_for_zlib():
    length = frame(b"x" * 0x9C78)
    assert length[:2] == b"\x78\x9c"
    assert not is_compressed(length)
