"""TFRecord framing and the tf.train.Example wire format, without TensorFlow.

A TFRecord file is a sequence of frames: payload length (uint64, little endian), masked CRC-32C of these eight bytes,
payload, masked CRC-32C of the payload (tensorflow/core/lib/io/record_writer.h). An Example is protocol buffers'
wire format of tensorflow/core/example/example.proto and feature.proto. It is written with names sorted and numbers
packed, byte for byte what protobuf's C++ writes when asked to be deterministic. (Its newer Python runtime, upb, does
too, except that of two names of which one begins with the other it puts the longer first.)

An Example is read here alone, and in one way. TensorFlow has two parsers, protobuf's and that of `tf.io.parse_example`,
which differ where a message is legal and no writer makes it: a feature that is there twice, a list in several pieces,
two kinds of values in a feature. Such an Example is refused (`AmbiguousExample`), since what is counted and what is
trained on could be different data.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from typing import Any, Protocol

import google_crc32c
import numpy as np
import numpy.typing as npt

from shardwright.storage import open_file
from shardwright.storage.checksum import new_checksum
from shardwright.tfrecords.encode import BYTES_LIST, FLOAT_LIST, INT64_LIST, RecordError
from shardwright.tfrecords.wire import (
    DELIMITED,
    FIXED32,
    TOO_LONG,
    VARINT,
    WireError,
    check_fields,
    read_fields,
    read_length,
    unpack_int64,
)

HEADER_BYTES = 12
FOOTER_BYTES = 4
_LENGTH = struct.Struct("<Q")
_CRC = struct.Struct("<I")

DecodedFeature = list[bytes] | npt.NDArray[np.int64] | npt.NDArray[np.float32]
# Tags of numbers that are written one by one.
_ONE_BY_ONE = {FLOAT_LIST: 1 << 3 | FIXED32, INT64_LIST: 1 << 3 | VARINT}
_NO_KIND = 0
Place = tuple[int, int]


# --- frames ---------------------------------------------------------------------------------------------------------


def masked_crc(*pieces: bytes) -> int:
    """Returns CRC-32C, rotated and offset as TFRecord stores it, so that a CRC of data with CRCs stays sound."""
    crc = 0
    for piece in pieces:
        crc = google_crc32c.extend(crc, piece)
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF


def frame(data: bytes) -> bytes:
    """Wraps a payload: header, payload, footer. `HEADER_BYTES + FOOTER_BYTES` longer than the payload."""
    return b"".join((_header(len(data)), data, _CRC.pack(masked_crc(data))))


def unframe(framed: bytes, where: str = "record") -> bytes:
    """Returns the payload of exactly one frame.

    Args:
        framed: the frame, as `RecordWriter.write` placed it at (offset, length).
        where: its name in an error, e.g. file and offset.

    Returns:
        The payload.

    Raises:
        RecordError: either checksum or the length is wrong.
    """
    length = _payload_length(framed[:HEADER_BYTES], where)
    if len(framed) != HEADER_BYTES + length + FOOTER_BYTES:
        raise RecordError(
            f"{where}: the frame is {len(framed)} bytes long, its header promises "
            f"{HEADER_BYTES + length + FOOTER_BYTES}; the file is damaged or the index is not this file's"
        )
    payload = framed[HEADER_BYTES:-FOOTER_BYTES]
    _check_payload(payload, framed[-FOOTER_BYTES:], where)
    return payload


class RecordWriter:
    """Appends records to an open binary file.

    Args:
        fileobj: anything with `write(bytes)`; the caller opens, flushes and closes it.
    """

    def __init__(self, fileobj: _Writable) -> None:
        self._file = fileobj
        self._offset = 0

    def write(self, *payload: bytes) -> tuple[int, int]:
        """Appends one record.

        Args:
            payload: the payload, whole or in pieces, which are not copied.

        Returns:
            Offset and length of the whole frame in bytes, counted from where the writer began: the bytes that
            `unframe` takes.
        """
        size = sum(map(len, payload))
        offset, length = self._offset, HEADER_BYTES + size + FOOTER_BYTES
        self._file.write(_header(size))
        for piece in payload:
            self._file.write(piece)
        self._file.write(_CRC.pack(masked_crc(*payload)))
        self._offset += length
        return offset, length


class _Writable(Protocol):
    def write(self, data: bytes, /) -> Any: ...


def read_records(
    path: str | os.PathLike[str], *, verify: bool = True, checksum: str | None = None
) -> Iterator[tuple[int, bytes]]:
    """Reads a plain (not compressed) TFRecord file.

    Args:
        path: the file, on this machine or an object store.
        verify: check the payloads' checksums. Those of the headers always are: a wrong length could ask for any
            amount of memory.
        checksum: expected digest of the file, hex; it is compared after the last record.

    Yields:
        Offset of the frame and payload.

    Raises:
        RecordError: the file is damaged, and the message names file and offset; or it is another one.
    """
    path = os.fspath(path)
    with open_file(path) as file:
        size = file.seek(0, os.SEEK_END)
        offset = file.seek(0)
        digest = new_checksum()
        while header := file.read(HEADER_BYTES):
            where = f"{path} at offset {offset}"
            if offset == 0 and header[:2] == b"\x1f\x8b":
                raise RecordError(f"{where}: the file is gzip-compressed; decompress it first")
            length = _payload_length(header, where)
            if offset + HEADER_BYTES + length + FOOTER_BYTES > size:
                raise RecordError(
                    f"{where}: the record promises {length} bytes, but the file ends at {size}: it is truncated"
                )
            payload = file.read(length)
            footer = file.read(FOOTER_BYTES)
            if verify:
                _check_payload(payload, footer, where)
            if checksum is not None:
                for piece in (header, payload, footer):
                    digest.update(piece)
            yield offset, payload
            offset += HEADER_BYTES + length + FOOTER_BYTES
        if checksum not in (None, digest.hexdigest()):
            raise RecordError(f"{path}: differs from the manifest: damaged, or changed since")


def frame_length(header: bytes) -> int:
    """Returns the length of the whole frame according to a header of `HEADER_BYTES`, which may be damaged."""
    return HEADER_BYTES + int(_LENGTH.unpack_from(header)[0]) + FOOTER_BYTES


def header_is_valid(header: bytes) -> bool:
    """Returns whether the checksum in a header of `HEADER_BYTES` is that of its length."""
    return bool(_CRC.unpack_from(header, 8)[0] == masked_crc(header[:8]))


def checksum_difference(payload: bytes, footer: bytes) -> int:
    """Returns the bits in which a payload's checksum differs from the one in its footer; 0 when it is sound."""
    return int(_CRC.unpack(footer)[0]) ^ masked_crc(payload)


def _header(size: int) -> bytes:
    length = _LENGTH.pack(size)
    return length + _CRC.pack(masked_crc(length))


def _payload_length(header: bytes, where: str) -> int:
    if len(header) < HEADER_BYTES:
        raise RecordError(f"{where}: {len(header)} bytes are left where a record's header needs {HEADER_BYTES}")
    if not header_is_valid(header):
        raise RecordError(f"{where}: the checksum of the record's length is wrong: damaged, or not a TFRecord file")
    return frame_length(header) - HEADER_BYTES - FOOTER_BYTES


def _check_payload(payload: bytes, footer: bytes, where: str) -> None:
    if checksum_difference(payload, footer):
        raise RecordError(f"{where}: the checksum of the record's {len(payload)} bytes is wrong: the file is damaged")


# --- reading an Example ---------------------------------------------------------------------------------------------

_MESSAGE, _VALUE = 1 << 3 | DELIMITED, 2 << 3 | DELIMITED


class AmbiguousExample(RecordError):
    """The bytes are a tf.train.Example, and not all parsers read the same of it."""


def decode_example(data: bytes) -> dict[str, DecodedFeature]:
    """Parses a tf.train.Example of any writer: unknown fields beside the map of features are skipped.

    Args:
        data: the serialized Example.

    Returns:
        Name to values, sorted by name: a list of bytes, an int64 array or a float32 array. A feature without a kind,
        which TensorFlow allows, is an empty list. An Example may be empty.

    Raises:
        RecordError: the bytes are not an Example, or not all parsers read the same of it.
    """
    return {name: feature_values(data, place) for name, place in sorted(feature_places(data).items())}


def find_feature(data: bytes, name: str) -> DecodedFeature | None:
    """Reads one feature of a tf.train.Example; `None` when there is none. Errors as of `decode_example`."""
    place = feature_places(data).get(name)
    return None if place is None else feature_values(data, place)


def check_example(data: bytes) -> dict[str, Place]:
    """Checks a tf.train.Example to the last byte without making its values; returns the places of its features.

    Raises:
        RecordError: `decode_example` would raise it.
    """
    places = feature_places(data)
    for place in places.values():
        check_feature(data, place)
    return places


def feature_places(data: bytes) -> dict[str, Place]:
    """Returns name -> begin and end of the serialized `Feature` of every entry of an Example.

    Raises:
        RecordError: the bytes are not an Example, or not all parsers read the same of it.
    """
    return usual_places(data) or _any_places(data)


def feature_values(data: bytes, place: Place) -> DecodedFeature:
    """Returns the values of a feature by its place in an Example.

    Raises:
        RecordError: they are damaged, or not all parsers read the same of them.
    """
    try:
        kind, at, end = _list(data, *place)
        if kind == _NO_KIND:
            return []
        if kind == BYTES_LIST:
            return [data[begin:stop] for begin, stop in _strings(data, at, end)]
        packed = _packed(data, kind, at, end)
        if kind == INT64_LIST:
            return unpack_int64(packed)
        return np.frombuffer(_whole(packed), "<f4").astype(np.float32)
    except (WireError, IndexError) as error:
        raise _no_example(data, error) from None


def check_feature(data: bytes, place: Place) -> None:
    """Checks a feature like `feature_values`, without making its values."""
    try:
        kind, at, end = _list(data, *place)
        if kind == BYTES_LIST:
            for _ in _strings(data, at, end):
                continue
        elif kind == FLOAT_LIST:
            _whole(_packed(data, kind, at, end))
        elif kind == INT64_LIST:
            packed = _packed(data, kind, at, end)
            if packed and (packed[-1] >= 0x80 or TOO_LONG.search(packed)):
                raise WireError("a number is cut off or too long")
    except (WireError, IndexError) as error:
        raise _no_example(data, error) from None


def packed_numbers(data: bytes, place: Place) -> memoryview | bytes | None:
    """Returns the varints of an int64 feature as they are stored, unchecked; `None` for features of another kind."""
    try:
        kind, at, end = _list(data, *place)
        return _packed(data, kind, at, end) if kind == INT64_LIST else None
    except (WireError, IndexError) as error:
        raise _no_example(data, error) from None


def first_string(data: bytes, place: Place) -> Place | None:
    """Returns begin and end of the first value of a bytes feature; `None` where there is none."""
    try:
        kind, at, end = _list(data, *place)
        return next(_strings(data, at, end), None) if kind == BYTES_LIST else None
    except (WireError, IndexError) as error:
        raise _no_example(data, error) from None


def _no_example(data: bytes, error: WireError | IndexError) -> RecordError:
    why = "they end within a field" if isinstance(error, IndexError) else error
    return RecordError(f"{len(data)} bytes are not a tf.train.Example: {why}")


def usual_places(data: bytes) -> dict[str, Place] | None:
    """Returns the places in an Example as all known writers lay it out, in a third of the time; `None` for others.

    Names that are not text, or there twice, make it another one, too.

    Raises:
        RecordError: the bytes are not an Example.
    """
    try:
        check_fields(data)
        return _usual_places(data)
    except (WireError, IndexError) as error:
        raise _no_example(data, error) from None


def _usual_places(data: bytes) -> dict[str, Place] | None:
    if not data or data[0] != _MESSAGE:
        return None
    length, at = read_length(data, 1)
    size = len(data)
    if at + length != size:
        return None
    places: dict[str, Place] = {}
    while at < size:
        if data[at] != _MESSAGE:
            return None
        length, begin = data[at + 1], at + 2
        # Nearly every length is one byte, and an entry where all are takes a third of the time.
        if length < 0x80:
            end, stop = begin + length, begin + 2 + data[begin + 1]
            sound = end <= size and data[begin] == _MESSAGE and stop < end and data[stop] == _VALUE
            name, place = data[begin + 2 : stop], (stop + 2, end)
            sound = sound and stop + 2 + data[stop + 1] == end
        else:
            length, begin = read_length(data, at + 1)
            end = begin + length
            if end > size or data[begin] != _MESSAGE:
                return None
            length, begin = read_length(data, begin + 1)
            stop = begin + length
            if stop >= end or data[stop] != _VALUE:
                return None
            name, (length, begin) = data[begin:stop], read_length(data, stop + 1)
            place, sound = (begin, end), begin + length == end
        try:
            text = str(name, "utf-8")
        except UnicodeDecodeError:
            return None
        if not sound or text in places:
            return None
        places[text] = place
        at = end
    return places


def _any_places(data: bytes) -> dict[str, Place]:
    """Returns the places in an Example of any layout: several maps, a value before its name, unknown fields around."""
    places: dict[str, Place] = {}
    try:
        for field, wire, begin, end in _spans(data, 0, len(data)):
            if (field, wire) == (2, DELIMITED):
                raise AmbiguousExample("it has the feature lists of a tf.train.SequenceExample")
            for inner, kind, first, last in _spans(data, begin, end) if (field, wire) == (1, DELIMITED) else ():
                if (inner, kind) != (1, DELIMITED):
                    raise AmbiguousExample(f"its map of features has an unknown field {inner}")
                entry = [(part, form, at, stop) for part, form, at, stop in _spans(data, first, last)]
                if sorted(row[:2] for row in entry) != [(1, DELIMITED), (2, DELIMITED)]:
                    raise AmbiguousExample("an entry is not one name with one feature")
                (*_, begins, ends), value = sorted(entry)
                _add(places, data[begins:ends], *value[2:])
    except (WireError, IndexError) as error:
        raise _no_example(data, error) from None
    return places


def _add(places: dict[str, Place], raw: bytes, begin: int, end: int) -> None:
    try:
        name = raw.decode("utf-8")
    except UnicodeDecodeError:
        raise WireError(f"a feature's name is not UTF-8: {raw[:40]!r}") from None
    if name in places:
        raise AmbiguousExample(f"feature {name[:40]!r} is there twice, and which one counts depends on the parser")
    places[name] = begin, end


def _spans(data: bytes, begin: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """Yields field number, wire type, begin and end of the fields of a message."""
    for field, wire, start, stop, _ in read_fields(memoryview(data), begin, end):
        yield field, wire, start, stop


def _list(data: bytes, at: int, end: int) -> tuple[int, int, int]:
    """Returns the kind of a feature's values, begin and end of their list; a feature may have no kind."""
    if at == end:
        return _NO_KIND, at, end
    kind = data[at] >> 3
    if data[at] & 7 != DELIMITED or kind not in (BYTES_LIST, FLOAT_LIST, INT64_LIST):
        raise AmbiguousExample(f"a feature has an unknown field {kind}")
    length, at = read_length(data, at + 1)
    if at + length > end:
        raise WireError("a list ends after its feature")
    if at + length < end:
        raise AmbiguousExample("a feature has several lists, and which one counts depends on the parser")
    return kind, at, end


def _strings(data: bytes, at: int, end: int) -> Iterator[Place]:
    """Yields begin and end of the values of a list of bytes."""
    while at < end:
        if data[at] != _MESSAGE:
            raise AmbiguousExample("a list of bytes has an unknown field")
        length, at = read_length(data, at + 1)
        if at + length > end:
            raise WireError("a value ends after its list")
        yield at, at + length
        at += length


def _packed(data: bytes, kind: int, at: int, end: int) -> memoryview | bytes:
    """Returns the numbers of a list without their tags; packed in one piece, or all of them one by one."""
    if at == end:
        return b""
    if data[at] == _MESSAGE:
        length, at = read_length(data, at + 1)
        if at + length != end:
            raise AmbiguousExample("a list of numbers is in several pieces")
        return memoryview(data)[at:end]
    numbers = list(read_fields(memoryview(data), at, end))
    if any(field << 3 | wire != _ONE_BY_ONE[kind] for field, wire, *_ in numbers):
        raise AmbiguousExample("a list of numbers has an unknown field, or is packed in part")
    return b"".join(data[start:stop] for _, _, start, stop, _ in numbers)


def _whole(packed: memoryview | bytes) -> memoryview | bytes:
    if len(packed) % 4:
        raise WireError(f"a list of float32 numbers has {len(packed)} bytes")
    return packed
