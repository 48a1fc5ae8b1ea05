"""The parts of protocol buffers' wire format that tf.train.Example needs: varints, lengths and fields.

After the encoding guide of protobuf.dev. Whole lists of numbers are written and read at once with numpy: a mask is a
list of hundreds of them. Groups (wire types 3 and 4) have not been written since proto2 and are refused.
"""

import itertools
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress

import numpy as np
import numpy.typing as npt

VARINT, FIXED64, DELIMITED, FIXED32 = 0, 1, 2, 5
# A field of two bytes becomes objects of 250. A mask of 512x1024 pixels as numbers that are not packed has as many.
MOST_FIELDS = 1 << 19
# Messages by depth, and their fields that are messages: Example, features, the map's entry, Feature, a list of values;
# and those of the other messages that are recognized.
_INNER = ((1, 2), (1, 2), (2,), (1, 2, 3))
# A shorter message is not looked into, and counts as so many fields: those of a feature with one value.
_SHORT, _FIELDS_OF_SHORT = 64, 4
# Bytes of packed numbers that are unpacked together: the arrays in between take forty times as much.
_AT_ONCE = 1 << 20
# Among numbers: one of more than ten bytes, or of ten with more than 64 bits, which parsers cut or refuse.
_LONGEST, _LARGEST = 10, 2**64 - 1
TOO_LONG = re.compile(rb"[\x80-\xff]{9}[\x02-\xff]")
# Fewer numbers are written one by one, and fewer bytes read so.
_WORTH_A_TABLE = 64
_WORTH_ARRAYS = 12
# Bytes of numbers that are treated as words of 32 bits.
_IN_A_WORD = 4
# By the number of bytes: the bits of such a word that are not continuation bits.
_OF_BYTES = np.array([0, 0x7F, 0x7F7F, 0x7F7F7F, 0x7F7F7F7F], np.uint32)


class WireError(ValueError):
    """The bytes are not a message."""


def delimited(field: int, body: bytes) -> bytes:
    """Writes a field of bytes, text, a message or packed numbers; field numbers up to 15."""
    return delimited_start(field, len(body)) + body


def delimited_start(field: int, length: int) -> bytes:
    """Writes the tag and the length before a body of `length` bytes; field numbers up to 15."""
    if length < 0x80:  # Nearly all.
        return bytes((field << 3 | DELIMITED, length))
    return bytes((field << 3 | DELIMITED,)) + varint(length)


def varint(value: int) -> bytes:
    """Writes a number from 0 to 2**64 - 1."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def pack_int64(values: npt.NDArray[np.int64]) -> bytes:
    """Writes numbers as varints, all at once."""
    return pack_int64_lists([values])[0]


def pack_int64_lists(lists: Sequence[npt.NDArray[np.int64]]) -> list[bytes]:
    """Writes several lists of numbers as varints, in one pass."""
    if sum(map(len, lists)) < _WORTH_A_TABLE:  # Small masks, and most other features, are a few numbers.
        return [b"".join([varint(value & 0xFFFFFFFFFFFFFFFF) for value in values.tolist()]) for values in lists]
    values = np.concatenate(lists)
    octets = _octets(values.view(np.uint64))
    parts = itertools.pairwise(itertools.accumulate(map(len, lists), initial=0))
    if values.all():
        # Only a byte that is not used is zero.
        return [octets[begin:end].tobytes().translate(None, b"\0") for begin, end in parts]
    used = octets != 0
    used[:, 0] = True
    return [octets[begin:end][used[begin:end]].tobytes() for begin, end in parts]


def _octets(numbers: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint8]:
    """Returns the varint of each number, uint8 (n, bytes of the longest); bytes that are not used are 0."""
    columns = -(-int(numbers.max()).bit_length() // 7)
    if columns > _IN_A_WORD:
        groups = numbers[:, None] >> (np.arange(columns, dtype=np.uint64) * np.uint64(7))
        octets = (groups & np.uint64(0x7F)).astype(np.uint8)
        octets[:, :-1] |= (groups[:, 1:] > 0).view(np.uint8) << np.uint8(7)
        return octets
    # Runs of masks, nearly always. Two groups of 14 bits are moved apart, and in each of them two of 7 bits.
    words = numbers.astype("<u4")
    words = words & np.uint32(0x3FFF) | (words & np.uint32(0xFFFC000)) << np.uint32(2)
    words = words & np.uint32(0x7F007F) | (words & np.uint32(0x3F803F80)) << np.uint32(1)
    # The bytes that follow each byte, joined: it goes on if any of them is not 0.
    following = words >> np.uint32(8)
    following |= following >> np.uint32(8)
    following |= following >> np.uint32(16)
    words |= following + np.uint32(0x7F7F7F7F) & np.uint32(0x80808080)
    return words.view(np.uint8).reshape(-1, _IN_A_WORD)


def unpack_int64(packed: memoryview | bytes) -> npt.NDArray[np.int64]:
    """Reads varints, all at once.

    Raises:
        WireError: the last number is cut off, or one has more than 64 bits.
    """
    if len(packed) <= _WORTH_ARRAYS and (few := _unpack_few(packed)) is not None:
        return np.array(few, np.uint64).view(np.int64)
    if len(packed) <= _AT_ONCE:
        return _unpack(packed)
    packed = memoryview(packed)
    numbers = np.empty(np.count_nonzero(np.frombuffer(packed, np.uint8) < 0x80), np.int64)
    begin = count = 0
    while begin < len(packed):
        end = begin + _AT_ONCE
        while end < len(packed) and packed[end - 1] >= 0x80 and end - begin < _AT_ONCE + 10:
            end += 1
        piece = _unpack(packed[begin:end])
        numbers[count : count + len(piece)] = piece
        begin, count = end, count + len(piece)
    return numbers


def _unpack_few(packed: memoryview | bytes) -> list[int] | None:
    """Returns a few numbers, in a tenth of the time of arrays; `None` where `_unpack` has to say what is wrong."""
    numbers, value, shift = [], 0, 0
    for octet in packed:
        value |= (octet & 0x7F) << shift
        if octet >= 0x80:
            shift += 7
        elif value > _LARGEST or shift >= 7 * _LONGEST:
            return None
        else:
            numbers.append(value)
            value = shift = 0
    return None if shift else numbers


def _unpack(packed: memoryview | bytes) -> npt.NDArray[np.int64]:
    octets = np.frombuffer(packed, np.uint8)
    ends = np.flatnonzero(octets < 0x80)
    if not len(octets):
        return np.empty(0, np.int64)
    if not len(ends) or ends[-1] != len(octets) - 1:
        raise WireError("a number is cut off")
    starts = np.concatenate([[0], ends[:-1] + 1])
    lengths = ends - starts + 1
    longest = int(lengths.max())
    if longest >= _LONGEST and TOO_LONG.search(packed):
        raise WireError("a number of more than 64 bits cannot be")
    if longest <= _IN_A_WORD:
        # Four bytes from the start of each number; bytes of the next numbers are masked, and seven bits of each are
        # joined.
        padded = b"".join((packed, bytes(_IN_A_WORD - 1)))
        words = np.ndarray(len(octets), "<u4", padded, strides=(1,))[starts] & _OF_BYTES[lengths]
        whole = words & np.uint32(0x7F)
        for group in range(1, longest):
            whole |= (words >> np.uint32(group)) & np.uint32(0x7F << 7 * group)
        return whole.astype(np.int64)
    # Every byte is shifted to its place, and the bytes of a number are added up.
    places = np.arange(len(octets)) - np.repeat(starts, lengths)
    shifted = (octets & np.uint8(0x7F)).astype(np.uint64) << (7 * places).astype(np.uint64)
    numbers: npt.NDArray[np.int64] = np.add.reduceat(shifted, starts).view(np.int64)
    return numbers


def unpack_int64_lists(lists: Sequence[memoryview | bytes]) -> list[npt.NDArray[np.int64]]:
    """Reads several lists of varints, in one pass.

    Raises:
        WireError: as `unpack_int64`.
    """
    if any(packed and packed[-1] >= 0x80 for packed in lists):
        raise WireError("a number is cut off")
    counts = [np.count_nonzero(np.frombuffer(packed, np.uint8) < 0x80) for packed in lists]
    numbers = unpack_int64(b"".join(lists))
    return [numbers[begin:end] for begin, end in itertools.pairwise(np.cumsum([0, *counts]).tolist())]


def read_fields(data: memoryview, begin: int = 0, end: int | None = None) -> Iterator[tuple[int, int, int, int, int]]:
    """Yields the fields of a message.

    Args:
        data: the bytes that contain the message.
        begin: where it begins in them.
        end: where it ends.

    Yields:
        Field number, wire type, begin and end of the value in `data`, and the unsigned number of a `VARINT`, else 0.

    Raises:
        WireError: the bytes are not a message, or one that is cut off.
    """
    position, end = begin, len(data) if end is None else end
    while position < end:
        start = position
        tag, position = _read_varint(data, position, end)
        field, wire = tag >> 3, tag & 7
        # A tag in more bytes than it needs is another field for some parsers.
        if field == 0 or tag > 0xFFFFFFFF or (position - start > 1 and not data[position - 1]):
            raise WireError(f"there is no field {field}")
        value, length, start = 0, 0, position
        if wire == VARINT:
            value, position = _read_varint(data, position, end)
        elif wire in (FIXED32, FIXED64):
            length = 4 if wire == FIXED32 else 8
        elif wire == DELIMITED:
            length, position = read_length(data, position)
            start = position
        else:
            raise WireError(f"wire type {wire} is not used")
        if position + length > end:
            raise WireError(f"cut off: a field of {length} bytes where {max(0, end - position)} are left")
        position += length
        yield field, wire, start, position, value


def check_fields(data: bytes) -> None:
    """Refuses an Example that is made of so many fields that to parse it takes gigabytes.

    Raises:
        WireError: it has more than `MOST_FIELDS`.
    """
    # Shorter ones cannot have as many.
    if len(data) > 2 * MOST_FIELDS and count_fields(memoryview(data), MOST_FIELDS) > MOST_FIELDS:
        raise WireError(f"it has more than {MOST_FIELDS:,} fields")


def count_fields(data: memoryview, most: int, depth: int = 0, begin: int = 0, end: int | None = None) -> int:
    """Returns about how many fields an Example has, those within fields included; stops where it has more than `most`.

    Bytes that are no message end the count: parsing them ends there, too.
    """
    count = 0
    with suppress(WireError):
        for field, wire, start, stop, _ in read_fields(data, begin, end):
            count += 1
            if wire == DELIMITED and depth < len(_INNER) and field in _INNER[depth]:
                short = stop - start <= _SHORT
                count += _FIELDS_OF_SHORT if short else count_fields(data, most - count, depth + 1, start, stop)
            if count > most:
                break
    return count


def read_messages(data: memoryview, wanted: int) -> list[memoryview]:
    """Returns the bodies of one field of messages, texts or bytes.

    Raises:
        WireError: the bytes are not a message.
    """
    return [data[begin:end] for field, wire, begin, end, _ in read_fields(data) if (field, wire) == (wanted, DELIMITED)]


def read_length(data: bytes | memoryview, position: int) -> tuple[int, int]:
    """Returns the length of a field and the position after it.

    Raises:
        WireError: it is not written in as few bytes as it needs, which some parsers refuse, or is cut off.
    """
    if position >= len(data):
        raise WireError("a length is cut off")
    value = data[position]
    if value < 0x80:  # Nearly all.
        return value, position + 1
    value, after = _read_varint(data, position, len(data))
    if not data[after - 1]:
        raise WireError("a length has more bytes than it needs")
    return value, after


def _read_varint(data: bytes | memoryview, position: int, end: int) -> tuple[int, int]:
    """Returns an unsigned number of up to 64 bits and the position after it."""
    value = 0
    for shift in range(0, 70, 7):
        if position >= end:
            raise WireError("a number is cut off")
        octet = data[position]
        position += 1
        value |= (octet & 0x7F) << shift
        if octet < 0x80:
            if value > _LARGEST:
                break
            return value, position
    raise WireError("a number of more than 64 bits cannot be")
