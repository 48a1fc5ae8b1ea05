"""Scans a TFRecord file that may be damaged or compressed: readable records are yielded, the others named.

A wrong checksum of a payload costs that record. A wrong length costs the rest of the file, since the offset of the next
record is unknown then. Files compressed as a whole with gzip or zlib (`TFRecordOptions`) are unpacked while they are
read.

`read_example` also detects other payloads than a tf.train.Example from their bytes, for its messages.

After tensorflow/core/example/example.proto (Example: 1 features; SequenceExample: 1 context, 2 feature_lists) and
tensorflow/core/framework/tensor.proto (TensorProto: 1 dtype, 2 tensor_shape, 4 tensor_content).
"""

from __future__ import annotations

import io
import os
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import IO, Any, NamedTuple

from shardwright.errors import UsageError
from shardwright.images.header import EMPTY_FILE, NOT_AN_IMAGE, ImageError
from shardwright.images.read_header import read_header
from shardwright.storage import open_file
from shardwright.tfrecords.encode import RecordError
from shardwright.tfrecords.records import (
    FOOTER_BYTES,
    HEADER_BYTES,
    AmbiguousExample,
    DecodedFeature,
    checksum_difference,
    decode_example,
    frame_length,
    header_is_valid,
)
from shardwright.tfrecords.wire import (
    DELIMITED,
    VARINT,
    WireError,
    check_fields,
    count_fields,
    read_fields,
    read_messages,
)
from shardwright.untrusted.budget import Budget, OverBudget

DAMAGED, TRUNCATED, TOO_LARGE = "damaged", "truncated", "too_large"

# Of a whole file that is compressed. Blank images shrink to a 900th, sparse masks to a 200th.
UNPACKING = Budget(unpacked=2 << 30, ratio=256)
# Records and their fields: an Example has about a hundred fields, and compressed at least as many bytes.
BUDGET = Budget("records and fields", objects=1_000_000, bytes_each=8)
_PACKED = Budget("records and fields", objects=1_000_000, bytes_each=1)
# One record of a compressed file. It is in memory as a whole, and so are its values.
_PACKED_RECORD = Budget(unpacked=32 << 20, ratio=64)
# Protocol buffers are limited to 2 GiB; an image of 1 GiB cannot be processed.
_LARGEST = 1 << 30
_CHUNK = 1 << 20
# Bytes of a file that show whether it is one of TFRecords: a packed header has more than its own bytes.
_FIRST = 1 << 16
# zlib's number for: gzip or zlib, detected from the header, with the largest window.
_GZIP_OR_ZLIB = 32 + zlib.MAX_WBITS
# The numbers of types.proto.
_TYPES = dict(
    enumerate(["float32", "float64", "int32", "uint8", "int16", "int8", "string", "complex64", "int64", "bool"], 1)
) | {14: "bfloat16", 17: "uint16", 18: "complex128", 19: "float16", 22: "uint32", 23: "uint64"}
_SHOWN = 40


class ScannedRecord(NamedTuple):
    """A record, or the reason why it, and perhaps all after it, cannot be read.

    Attributes:
        number: its number in the file, from 0.
        offset: where it begins, in bytes of the unpacked file; its payload begins `records.HEADER_BYTES` later.
        payload: the payload, or `None`.
        code: why there is no payload, as a word.
        reason: the same as a sentence.
    """

    number: int
    offset: int
    payload: bytes | None
    code: str = ""
    reason: str = ""

    @property
    def where(self) -> str:
        """Number and offset, for messages."""
        return f"record {self.number} at offset {self.offset}"


def scan_records(
    file: IO[bytes], copy: IO[bytes] | None = None, wanted: Sequence[bool] | None = None
) -> Iterator[ScannedRecord]:
    """Scans the records of an open file, plain or compressed, from its beginning.

    Memory is bounded by the largest record and by the bytes of the file, even if a damaged length claims more.

    Args:
        file: open for reading.
        copy: receives the unpacked bytes up to the end of the scan.
        wanted: for each record of a file that was scanned before, whether it is read; the others are not in memory.

    Yields:
        Every record. After one with `DAMAGED` or `TOO_LARGE` there may be more; a part that cannot be divided into
        records is one last record.

    Raises:
        UsageError: the file is made to use up memory or time.
    """
    try:
        yield from _scan(_Stream(file, copy), wanted)
    except OverBudget as error:
        name = getattr(file, "name", "the file")
        raise UsageError(f"{name}: {error}. Leave the file out, or write it in several smaller ones.") from None


def scan_file(path: str) -> Iterator[ScannedRecord]:
    """Scans the records of a file, or of a URL; see `scan_records`.

    Raises:
        UsageError: it cannot be read, or is not a TFRecord file.
    """
    try:
        with open_file(path) as file:
            start = file.read(_FIRST)
            if not begins_as_records(start):
                what = "it is empty" if not start else "it does not begin with a record"
                raise UsageError(f"{path}: not a TFRecord file: {what}. Give a shard, or a dataset's folder.")
            file.seek(0)
            yield from scan_records(file)
    except OSError as error:
        raise UsageError(f"{path}: cannot be read ({error.strerror or error}). Check the path.") from None


def _scan(stream: _Stream, wanted: Sequence[bool] | None) -> Iterator[ScannedRecord]:
    number = 0
    while True:
        offset = stream.position
        try:
            header = stream.take(HEADER_BYTES)
            if not header:
                return
            if len(header) < HEADER_BYTES:
                reason = f"the file is cut off: {len(header)} bytes are left where a header needs {HEADER_BYTES}"
                yield ScannedRecord(number, offset, None, TRUNCATED, reason)
                return
            if not header_is_valid(header):
                reason = "the checksum of its length is wrong, so where the next one begins is unknown"
                rest = len(header) + stream.skip()
                yield ScannedRecord(
                    number, offset, None, DAMAGED, f"{reason}; the rest of the file, {rest} bytes, is not read"
                )
                return
            length = frame_length(header) - HEADER_BYTES - FOOTER_BYTES
            kept = length <= stream.largest and (wanted is None or wanted[number])
            payload = stream.take(length) if kept else b""
            found = len(payload) if kept else stream.skip(length)
            footer = stream.take(FOOTER_BYTES)
        except (zlib.error, EOFError) as error:
            reason = f"the file's compression is damaged there ({error}), so the rest of it is not read"
            yield ScannedRecord(number, offset, None, DAMAGED, reason)
            return
        if found < length or len(footer) < FOOTER_BYTES:
            reason = f"the file is cut off: {length} bytes are promised, {found} are there"
            yield ScannedRecord(number, offset, None, TRUNCATED, reason)
            return
        if not kept:
            yield ScannedRecord(
                number, offset, None, TOO_LARGE, f"it has {length} bytes; at most {stream.largest} are read"
            )
        elif checksum_difference(payload, footer):
            yield ScannedRecord(number, offset, None, DAMAGED, f"the checksum of its {length} bytes is wrong")
        else:
            stream.add(count_fields(memoryview(payload), stream.objects_left))
            yield ScannedRecord(number, offset, payload)
        stream.add(1)
        number += 1


def is_compressed(start: bytes) -> bool:
    """Returns whether a file with this beginning is compressed as a whole; a valid record header takes precedence."""
    if len(start) >= HEADER_BYTES and header_is_valid(start[:HEADER_BYTES]):
        return False
    return start[:2] == b"\x1f\x8b" or (start[:1] == b"\x78" and int.from_bytes(start[:2], "big") % 31 == 0)


def begins_as_records(start: bytes) -> bool:
    """Returns whether a file with this beginning is a TFRecord file, compressed or not."""
    if is_compressed(start):
        start = unpacked_start(start, HEADER_BYTES)
    return len(start) >= HEADER_BYTES and header_is_valid(start[:HEADER_BYTES])


def unpacked_start(start: bytes, size: int) -> bytes:
    """Returns the first `size` unpacked bytes, or fewer, of a compressed file with this beginning; none if damaged."""
    try:
        return zlib.decompressobj(_GZIP_OR_ZLIB).decompress(start, size)
    except zlib.error:
        return b""


class _Stream:
    """The bytes of a file in order, unpacked where it is compressed."""

    def __init__(self, file: IO[bytes], copy: IO[bytes] | None) -> None:
        self._copy = copy
        start = file.read(HEADER_BYTES)
        self._size = file.seek(0, os.SEEK_END)
        file.seek(0)
        packed = is_compressed(start)
        self._file = io.BufferedReader(Unpacked(file, UNPACKING), _CHUNK) if packed else file
        self._budget, self._objects = (_PACKED if packed else BUDGET), 0
        self.position = 0
        self.largest = min(_LARGEST, _PACKED_RECORD.most_unpacked(self._size)) if packed else _LARGEST

    @property
    def objects_left(self) -> int:
        """How many more objects the file may have."""
        return self._budget.most_objects(self._size) - self._objects

    def add(self, objects: int) -> None:
        """Counts objects; `OverBudget` where they are too many."""
        self._objects += objects
        self._budget.check_objects(self._objects, self._size)

    def take(self, size: int) -> bytes:
        """Returns the next bytes, fewer at the end of the file. Never asks for more memory than there are bytes."""
        parts = []
        while size > 0 and (part := self._file.read(min(size, _CHUNK))):
            parts.append(part)
            if self._copy is not None:
                self._copy.write(part)
            size -= len(part)
            self.position += len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def skip(self, size: int | None = None) -> int:
        """Passes over the next bytes, or all; returns how many there were."""
        begin = self.position
        while part := self.take(_CHUNK if size is None else min(_CHUNK, size - (self.position - begin))):
            del part
        return self.position - begin


class Unpacked(io.RawIOBase):
    """The content of a compressed file. A gzip file may consist of several, one after the other.

    Args:
        file: open for reading.
        budget: how much it may unpack to.

    Raises:
        zlib.error: the data are damaged.
        EOFError: they end too early.
        OverBudget: there are more than it may unpack to.
    """

    def __init__(self, file: IO[bytes], budget: Budget) -> None:
        self._file = file
        self._budget, self._count = budget, 0
        self._size = file.seek(0, os.SEEK_END)
        file.seek(0)
        self._engine = zlib.decompressobj(_GZIP_OR_ZLIB)
        self._waiting = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        while True:
            if self._engine.eof:
                self._waiting = self._engine.unused_data or self._file.read(_CHUNK)
                if not self._waiting:
                    return 0
                self._engine = zlib.decompressobj(_GZIP_OR_ZLIB)
            data = self._waiting or self._file.read(_CHUNK)
            if not data:
                raise EOFError("it ends too early")
            unpacked = self._engine.decompress(data, len(buffer))
            self._waiting = self._engine.unconsumed_tail
            if unpacked:
                self._count += len(unpacked)
                self._budget.check_unpacked(self._count, self._size)
                buffer[: len(unpacked)] = unpacked
                return len(unpacked)


class OtherRecordError(RecordError):
    """A record is not a tf.train.Example with features; the message names its kind and the fix."""


def read_example(payload: bytes) -> dict[str, DecodedFeature]:
    """Parses a payload as a tf.train.Example, which may be empty.

    Raises:
        OtherRecordError: it is something else, or not all parsers read the same of it.
    """
    try:
        check_fields(payload)
    except WireError as error:
        raise OtherRecordError(f"{len(payload)} bytes are not a tf.train.Example: {error}") from None
    other = _other_message(payload)
    if not other:
        try:
            features = decode_example(payload)
            # Bytes of anything else may be a message of unknown fields.
            if features or not payload or read_messages(memoryview(payload), 1):
                return features
        except AmbiguousExample as error:
            other = f"a tf.train.Example that parsers read differently: {error}"
        except RecordError:
            other = _no_message(payload)
    raise OtherRecordError(other or _no_message(payload))


def text_of(data: bytes) -> str:
    """Returns the beginning of bytes that are text, or nothing."""
    start = data[:_SHOWN]
    # The cut may split a character of up to four bytes.
    for cut in range(4 if len(data) > _SHOWN else 1):
        with suppress(UnicodeDecodeError):
            text = start[: len(start) - cut].decode("utf-8")
            return text if all(c.isprintable() or c in "\t\r\n" for c in text) else ""
    return ""


def is_image(data: bytes) -> bool:
    """Returns whether bytes begin like an image of any known format, and not like text."""
    if text_of(data):
        return False
    try:
        read_header(data[:_SHOWN], max_pixels=1)
    except ImageError as error:
        return error.code not in (NOT_AN_IMAGE, EMPTY_FILE)
    return True


def _other_message(payload: bytes) -> str:
    """Returns which message other than an Example a payload is, or nothing."""
    try:
        fields = list(read_fields(memoryview(payload)))
        kinds = {(field, wire) for field, wire, *_ in fields}
        if fields and kinds <= {(1, DELIMITED), (2, DELIMITED)} and (2, DELIMITED) in kinds:
            names = [
                bytes(name).decode("utf-8")
                for lists in read_messages(memoryview(payload), 2)
                for entry in read_messages(lists, 1)
                for name in read_messages(entry, 1)
            ]
            shown = ", ".join(names[:3]) or "none"
            return f"a SequenceExample (feature lists: {shown}); write one tf.train.Example an image"
        if (1, VARINT) in kinds and (2, DELIMITED) in kinds and fields[0][-1] in _TYPES:
            shapes = read_messages(memoryview(payload), 2)
            shape = [_size(dim) for value in shapes for dim in read_messages(value, 2)]
            return f"a serialized tensor ({_TYPES[fields[0][-1]]}, shape {shape}); write a tf.train.Example around it"
    except (WireError, UnicodeDecodeError, TypeError):
        return ""
    return ""


def _size(dim: memoryview) -> int:
    return next((value for field, wire, *_, value in read_fields(dim) if (field, wire) == (1, VARINT)), 0)


def _no_message(payload: bytes) -> str:
    if is_image(payload):
        return "the bytes of an image without anything around; write a tf.train.Example with a class or a key"
    if text := text_of(payload):
        return f"text ({text!r}); write a tf.train.Example"
    return f"neither a tf.train.Example nor anything known; it begins with {payload[:8].hex(' ')}"
