"""Exif blocks for the ingest: the orientation, whether there is a location, and a copy without private values.

An Exif block is a small TIFF file: a directory of tagged values. One value points to a second directory with the
settings of the camera, and another to a third with the location. Its content is untrusted: offsets and counts are
checked against the block's length, no directory is read twice, and unreadable values are ignored.

After Exif 2.32 (CIPA DC-008) and TIFF 6.0.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

_ORIENTATION, _EXIF_POINTER, _GPS_POINTER = 0x0112, 0x8769, 0x8825
_GPS_LATITUDE, _GPS_LONGITUDE = 2, 4
_SHORT, _LONG = 3, 4
# Bytes of one value, by TIFF type.
_SIZES = {1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 1, 7: 1, 8: 2, 9: 4, 10: 8, 11: 4, 12: 8}

# Values about how a picture was taken, but not by whom, of whom, where, or with which individual camera. A list of the
# values to keep, because the values of all makers cannot be listed.
_PUBLIC_MAIN = (
    *(0x010F, 0x0110),  # make and model
    *(0x011A, 0x011B, 0x0128, 0x0213),  # resolution, place of the chroma samples
    0x0132,  # time
)
_PUBLIC_CAMERA = (
    *(0x829A, 0x829D, 0x8822, 0x8827, 0x8830),  # exposure time and program, aperture, ISO
    *(0x9000, 0x9003, 0x9004, 0x9010, 0x9011, 0x9012, 0x9290, 0x9291, 0x9292),  # version, times
    *(0x9101, 0x9102, 0x9201, 0x9202, 0x9203, 0x9204, 0x9205, 0x9206, 0x9207, 0x9208, 0x9209, 0x920A),  # exposure, lens
    *(0xA000, 0xA001, 0xA002, 0xA003, 0xA20E, 0xA20F, 0xA210, 0xA215, 0xA217),  # color space, size, sensor
    *(0xA401, 0xA402, 0xA403, 0xA404, 0xA405, 0xA406, 0xA407, 0xA408, 0xA409, 0xA40A, 0xA40C),  # settings
    *(0xA432, 0xA433, 0xA434),  # make and model of the lens
)
_LONGEST_VALUE = 256


class _Value(NamedTuple):
    """A value of a directory: its tag, type, how many of that type, and their bytes in the block's byte order."""

    tag: int
    kind: int
    number: int
    data: bytes


def read_orientation(tiff: bytes) -> int:
    """Finds the orientation.

    Args:
        tiff: the block, from its byte order mark on.

    Returns:
        1-8; 1 (upright) when it is not there or not readable.
    """
    order = _byte_order(tiff)
    for value in _values(tiff, order, _first_directory(tiff, order)):
        if value.tag == _ORIENTATION:
            number = _number(value, order)
            return number if 1 <= number <= 8 else 1
    return 1


def has_position(tiff: bytes) -> bool:
    """Returns whether there is a latitude or a longitude; a location directory without either does not count.

    Args:
        tiff: the block, or a whole TIFF file.
    """
    order = _byte_order(tiff)
    for value in _values(tiff, order, _first_directory(tiff, order)):
        if value.tag == _GPS_POINTER:
            tags = {inner.tag for inner in _values(tiff, order, _number(value, order))}
            return bool(tags & {_GPS_LATITUDE, _GPS_LONGITUDE})
    return False


def only_orientation(orientation: int) -> bytes:
    """Returns a block with only the orientation; empty for 1."""
    return _block(">", [_orientation_value(">", orientation)], []) if orientation != 1 else b""


def without_private(tiff: bytes) -> bytes:
    """Copies public values: orientation, times, make, model and settings of camera and lens.

    Left out are location, serial numbers, names of people, comments, maker notes, thumbnails (they may show parts that
    were cropped later) and unknown values.

    Args:
        tiff: the block.

    Returns:
        A block in the same byte order with the same orientation; empty where nothing is left.
    """
    order = _byte_order(tiff)
    orientation = read_orientation(tiff)
    main: dict[int, _Value] = {}
    camera: dict[int, _Value] = {}
    for value in _values(tiff, order, _first_directory(tiff, order)):
        if value.tag in _PUBLIC_MAIN:
            main.setdefault(value.tag, value)
        elif value.tag == _EXIF_POINTER and not camera:
            for inner in _values(tiff, order, _number(value, order)):
                if inner.tag in _PUBLIC_CAMERA:
                    camera.setdefault(inner.tag, inner)
    if orientation != 1:
        main[_ORIENTATION] = _orientation_value(order, orientation)
    if not main and not camera:
        return b""
    return _block(order, list(main.values()), list(camera.values()))


def _byte_order(tiff: bytes) -> str:
    """Returns `<`, `>`, or nothing if it is not a TIFF."""
    return {b"II*\0": "<", b"MM\0*": ">"}.get(tiff[:4], "")


def _first_directory(tiff: bytes, order: str) -> int:
    return int(struct.unpack_from(f"{order}I", tiff, 4)[0]) if order and len(tiff) >= 8 else len(tiff)


def _values(tiff: bytes, order: str, directory: int) -> Iterator[_Value]:
    """Yields the readable values of a directory, in its order, without those that are too long."""
    if not order or directory < 8 or directory + 2 > len(tiff):
        return
    (entries,) = struct.unpack_from(f"{order}H", tiff, directory)
    for entry in range(directory + 2, min(directory + 2 + 12 * entries, len(tiff) - 11), 12):
        tag, kind, count = struct.unpack_from(f"{order}HHI", tiff, entry)
        size = _SIZES.get(kind, 0) * count
        begin = entry + 8 if size <= 4 else struct.unpack_from(f"{order}I", tiff, entry + 8)[0]
        if tag in (_ORIENTATION, _EXIF_POINTER, _GPS_POINTER) or tag < 32:
            # These tags are found even where their value is wrong.
            yield _Value(tag, kind, count, tiff[begin : begin + min(size, 4)])
        elif 0 < size <= _LONGEST_VALUE and begin + size <= len(tiff):
            yield _Value(tag, kind, count, tiff[begin : begin + size])


def _number(value: _Value, order: str) -> int:
    """Returns a single whole number; 0 for another value."""
    layout = {_SHORT: "H", _LONG: "I"}.get(value.kind)
    if layout is None or value.number != 1 or len(value.data) < struct.calcsize(layout):
        return 0
    return int(struct.unpack_from(order + layout, value.data)[0])


def _orientation_value(order: str, orientation: int) -> _Value:
    return _Value(_ORIENTATION, _SHORT, 1, struct.pack(f"{order}H", orientation))


def _block(order: str, main: list[_Value], camera: list[_Value]) -> bytes:
    """Writes one or two directories, each with its values behind it."""
    first = 8
    if camera:
        pointer = _Value(_EXIF_POINTER, _LONG, 1, bytes(4))
        second = first + len(_directory(order, [*main, pointer], first))
        main = [*main, pointer._replace(data=struct.pack(f"{order}I", second))]
    head = (b"II*\0" if order == "<" else b"MM\0*") + struct.pack(f"{order}I", first)
    written = head + _directory(order, main, first)
    return written + (_directory(order, camera, len(written)) if camera else b"")


def _directory(order: str, values: list[_Value], place: int) -> bytes:
    values = sorted(values)
    entries, behind = [], b""
    after = place + 2 + 12 * len(values) + 4
    for tag, kind, count, data in values:
        if len(data) <= 4:
            field = data.ljust(4, b"\0")
        else:
            field = struct.pack(f"{order}I", after + len(behind))
            behind += data + bytes(len(data) % 2)
        entries.append(struct.pack(f"{order}HHI", tag, kind, count) + field)
    return struct.pack(f"{order}H", len(values)) + b"".join(entries) + bytes(4) + behind
