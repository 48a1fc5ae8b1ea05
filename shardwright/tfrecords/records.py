"""TFRecord framing and the tf.train.Example wire format, without TensorFlow.

A TFRecord file is a sequence of frames: payload length (uint64, little endian), masked CRC-32C of these eight bytes,
payload, masked CRC-32C of the payload (tensorflow/core/lib/io/record_writer.h). An Example is protocol buffers'
wire format of tensorflow/core/example/example.proto and feature.proto. It is written with names sorted and numbers
packed, byte for byte what protobuf's C++ writes when asked to be deterministic. (Its newer Python runtime, upb, does
too, except that of two names of which one begins with the other it puts the longer first.)
"""

import os
import struct
from collections.abc import Iterator
from typing import Any, Protocol

import google_crc32c
import numpy as np
import numpy.typing as npt

from shardwright.checksum import new_checksum
from shardwright.storage import open_file
from shardwright.tfrecords.encode import (
    BYTES_LIST,
    FLOAT_LIST,
    INT64_LIST,
    RecordError,
)
from shardwright.tfrecords.wire import (
    DELIMITED,
    FIXED32,
    VARINT,
    WireError,
    check_fields,
    delimited,
    read_fields,
    read_messages,
    unpack_int64,
)

HEADER_BYTES = 12
FOOTER_BYTES = 4
_LENGTH = struct.Struct("<Q")
_CRC = struct.Struct("<I")

DecodedFeature = list[bytes] | npt.NDArray[np.int64] | npt.NDArray[np.float32]


class _Writable(Protocol):
    def write(self, data: bytes, /) -> Any: ...


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


def decode_example(data: bytes) -> dict[str, DecodedFeature]:
    """Parses a tf.train.Example of any writer: unknown fields are skipped, packed and single numbers are read.

    Args:
        data: the serialized Example.

    Returns:
        Name to values, sorted by name: a list of bytes, an int64 array or a float32 array. A feature without a kind,
        which TensorFlow allows, is an empty list.

    Raises:
        RecordError: the bytes are not an Example.
    """
    try:
        check_fields(data)
        return _decode_example(memoryview(data))
    except WireError as error:
        raise RecordError(f"{len(data)} bytes are not a tf.train.Example: {error}") from error


def find_feature(data: bytes, name: str) -> DecodedFeature | None:
    """Reads one feature of a tf.train.Example and passes over the others.

    Args:
        data: the serialized Example.
        name: the feature.

    Returns:
        Its values as `decode_example` gives them, `None` when there is no such feature.

    Raises:
        RecordError: the bytes are not an Example.
    """
    # Every writer begins an entry of the map with field 1, the name.
    start = delimited(1, name.encode("utf-8"))
    try:
        check_fields(data)
        for features in read_messages(memoryview(data), 1):
            for entry in read_messages(features, 1):
                if entry[: len(start)] == start:
                    return _decode_feature(memoryview(b"".join(read_messages(entry, 2))))
    except WireError as error:
        raise RecordError(f"{len(data)} bytes are not a tf.train.Example: {error}") from error
    return None


def _decode_example(data: memoryview) -> dict[str, DecodedFeature]:
    found: dict[str, DecodedFeature] = {}
    for features in read_messages(data, 1):
        for entry in read_messages(features, 1):
            raw_name, bodies = b"", []
            for field, wire, part in read_fields(entry):
                if wire == DELIMITED and field == 1:
                    raw_name = bytes(part)
                elif wire == DELIMITED and field == 2:
                    bodies.append(part)
            try:
                name = raw_name.decode("utf-8")
            except UnicodeDecodeError as error:
                raise WireError(f"a feature's name is not UTF-8: {raw_name[:40]!r}") from error
            found[name] = _decode_feature(bodies[0] if len(bodies) == 1 else memoryview(b"".join(bodies)))
    return dict(sorted(found.items()))


def _decode_feature(body: memoryview) -> DecodedFeature:
    """Returns the values of a Feature: of several kinds the last one counts, of several lists of it all values."""
    kind = 0
    values: list[tuple[int, Any]] = []
    for field, wire, part in read_fields(body):
        if wire == DELIMITED and field in (BYTES_LIST, FLOAT_LIST, INT64_LIST):
            if field != kind:
                kind, values = field, []
            values += [(wire, value) for field, wire, value in read_fields(part) if field == 1]
    if kind == INT64_LIST:
        numbers = [np.empty(0, np.int64)]
        for wire, value in values:
            if wire == DELIMITED:
                numbers.append(unpack_int64(value))
            elif wire == VARINT:
                numbers.append(np.array([value], np.uint64).view(np.int64))
        return numbers[1] if len(numbers) == 2 else np.concatenate(numbers)
    if kind == FLOAT_LIST:
        raw = b"".join(value for wire, value in values if wire in (DELIMITED, FIXED32))
        if len(raw) % 4:
            raise WireError(f"a list of float32 numbers has {len(raw)} bytes")
        return np.frombuffer(raw, "<f4").astype(np.float32)
    return [bytes(value) for wire, value in values if wire == DELIMITED]
