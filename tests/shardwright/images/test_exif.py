"""Exif blocks: what is read, what is copied; nothing in them is believed."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from picturing import CAMERA, GPS, MAIN, pillow_exif
from PIL import Image

from shardwright.images.exif import has_position, only_orientation, read_orientation, without_private


def read_by_pillow(tiff):
    exif = Image.Exif()
    exif.load(b"Exif\0\0" + tiff)
    return dict(exif), dict(exif.get_ifd(0x8769)), dict(exif.get_ifd(0x8825))


@pytest.mark.parametrize("order", ["<", ">"])
def test_a_copy_holds_what_is_public_and_another_reader_reads_it(order):
    tiff = pillow_exif(MAIN, CAMERA, GPS, order)
    assert has_position(tiff)
    copy = without_private(tiff)
    assert copy[:2] == tiff[:2]
    main, camera, gps = read_by_pillow(copy)
    main.pop(0x8769)
    assert main == {0x010F: "Maker", 0x0110: "Model 3", 0x0112: 6, 0x0132: "2020:01:02 03:04:05"}
    assert {tag: float(value) if tag == 0x829A else value for tag, value in camera.items()} == {
        0x829A: 0.004,
        0x8827: 200,
        0xA434: "50mm",
    }
    assert not gps
    assert not has_position(copy)
    for secret in (b"my son", b"Ann Author", b"secret", b"SERIAL", b"note"):
        assert secret in tiff
        assert secret not in copy
    assert without_private(copy) == copy


def test_a_place_needs_a_latitude_or_a_longitude():
    assert not has_position(pillow_exif(MAIN, CAMERA))
    assert not has_position(pillow_exif(MAIN, gps={1: "N", 0: b"\2\3\0\0"}))
    assert has_position(pillow_exif(gps={4: (1.0, 2.0, 3.0)}))


@pytest.mark.parametrize("orientation", range(2, 9))
def test_a_block_of_the_orientation_alone(orientation):
    block = only_orientation(orientation)
    assert read_orientation(block) == orientation
    assert read_by_pillow(block)[0] == {0x0112: orientation}
    assert without_private(block) == block


def test_nothing_public_leaves_nothing():
    assert only_orientation(1) == b""
    assert without_private(pillow_exif({0x010E: "text"}, gps=GPS)) == b""
    assert without_private(b"no TIFF at all") == b""


@given(st.binary(max_size=80), st.sampled_from([b"II*\0", b"MM\0*", b""]), st.integers(0, 60))
def test_any_bytes_are_read_and_copied_without_an_error(rest, mark, first):
    tiff = mark + struct.pack("<I" if mark[:1] == b"I" else ">I", first) + rest
    has_position(tiff)
    copy = without_private(tiff)
    assert read_orientation(copy) == read_orientation(tiff)
    assert without_private(copy) == copy


@given(st.data())
def test_a_damaged_block_keeps_its_orientation_and_stays_small(data):
    tiff = bytearray(pillow_exif(MAIN, CAMERA, GPS))
    for _ in range(data.draw(st.integers(1, 6))):
        tiff[data.draw(st.integers(0, len(tiff) - 1))] = data.draw(st.integers(0, 255))
    copy = without_private(bytes(tiff))
    assert read_orientation(copy) == read_orientation(bytes(tiff))
    assert len(copy) <= 8 + 60 * (12 + 256)
