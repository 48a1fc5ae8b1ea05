"""Single features of many serialized examples: offsets are found once, and only requested features are parsed.

A pass over a whole dataset that reads a dozen numbers of every record spends most of its time in a general parser. This
one reads the layout that writers make (a tag, a length, the values in one piece) and leaves everything else to
`records.find_feature`, so that both always agree.
"""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress

import numpy as np

from shardwright.tfrecords.encode import EncodedFeature, FeatureValue, PackedInts, RecordError, TypedList, stored_values
from shardwright.tfrecords.records import DecodedFeature, decode_example, find_feature
from shardwright.tfrecords.wire import WireError, check_fields, pack_int64, unpack_int64, unpack_int64_lists

_MESSAGE = 0x0A  # Field 1, a length follows: Example.features, the map's entries, their keys, the lists' values.
_VALUE = 0x12  # Field 2, likewise: the value of the map's entry.
_BYTES_LIST, _FLOAT_LIST, _INT64_LIST = 0x0A, 0x12, 0x1A
_FLOAT = struct.Struct("<f")
_ALL_BITS = (1 << 64) - 1


class ExampleFeatures(ABC):
    """The features of one Example, of which only those that are asked for are parsed."""

    @abstractmethod
    def get(self, name: str) -> DecodedFeature | None:
        """Returns a feature's values like `records.find_feature`; `None` where there is no such feature.

        Raises:
            RecordError: the bytes are not an Example.
        """

    @abstractmethod
    def packed(self, name: str) -> bytes | None:
        """Returns the packed numbers of an int64 feature as they are stored; `None` where there are none."""

    @abstractmethod
    def first(self, name: str) -> bytes | int | float | None:
        """Returns the first of a feature's values as a Python value; `None` where there is none."""

    @abstractmethod
    def length(self, name: str) -> int:
        """Returns the length of the first value of a bytes feature, without copying it; 0 where there is none."""

    def number(self, name: str) -> float | None:
        """Returns the first of a numeric feature's values; `None` where there is none, or it is not numeric."""
        value = self.first(name)
        return None if isinstance(value, bytes) else value

    def texts(self, name: str) -> list[str]:
        """Returns a bytes feature as texts; bytes that are not UTF-8 are replaced. Empty where there is none."""
        values = self.get(name)
        return [value.decode("utf-8", "replace") for value in values or ()] if isinstance(values, list) else []

    def integers(self, name: str) -> list[int]:
        """Returns an int64 feature as a list; empty where there is none."""
        values = self.get(name)
        if values is None or isinstance(values, list):
            return []
        return [int(value) for value in values.tolist()]


class LazyExample(ExampleFeatures):
    """A serialized `tf.train.Example`.

    Args:
        data: the bytes.

    Raises:
        RecordError: they are not an Example.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        try:
            check_fields(data)
            self._places = _places(data)
        except IndexError:
            raise RecordError(f"{len(data)} bytes are not a tf.train.Example: they end within a field") from None
        except WireError as error:
            raise RecordError(f"{len(data)} bytes are not a tf.train.Example: {error}") from None

    def get(self, name: str) -> DecodedFeature | None:
        """See `ExampleFeatures.get`."""
        if self._places is None:
            return find_feature(self._data, name)
        place = self._places.get(name.encode("utf-8"))
        if place is None:
            return None
        try:
            found = _values(self._data, *place)
        except (IndexError, WireError):
            found = None
        return find_feature(self._data, name) if found is None else found

    def carry(self, parsed: Callable[[str], bool]) -> dict[str, DecodedFeature | EncodedFeature]:
        """Returns all features: some parsed as by `get`, the others encoded, to be written again.

        Args:
            parsed: returns for a name whether the feature is parsed.

        Raises:
            RecordError: the bytes are not an Example.
        """
        if self._places is None:
            return {**decode_example(self._data)}
        found: dict[str, DecodedFeature | EncodedFeature] = {}
        numbers: dict[str, memoryview] = {}
        for raw, (begin, end) in self._places.items():
            try:
                name = raw.decode("utf-8")
            except UnicodeDecodeError:
                raise RecordError(f"{len(self._data)} bytes are not a tf.train.Example: a name is not UTF-8") from None
            if not parsed(name):
                found[name] = EncodedFeature(self._data[begin:end])
                continue
            packed = _packed_int64(self._data, begin, end)
            if packed is not None:
                numbers[name] = packed
                continue
            values = self.get(name)
            found[name] = EncodedFeature(self._data[begin:end]) if values is None else values
        try:
            found |= zip(numbers, unpack_int64_lists([*numbers.values()]), strict=True)
        except WireError:
            # The error of the general parser names what is wrong.
            return {**decode_example(self._data)}
        return found

    def packed(self, name: str) -> bytes | None:
        """See `ExampleFeatures.packed`; `None` for unusual layouts, too."""
        place = (self._places or {}).get(name.encode("utf-8"))
        numbers = None if place is None else _packed_int64(self._data, *place)
        return None if numbers is None else bytes(numbers)

    def first(self, name: str) -> bytes | int | float | None:
        """See `ExampleFeatures.first`."""
        place = (self._places or {}).get(name.encode("utf-8"))
        number = None if place is None else _single(self._data, *place)
        if number is not None:
            return number
        values = self.get(name)
        if values is None or not len(values):
            return None
        value = values[0]
        return value if isinstance(value, bytes) else value.item()

    def length(self, name: str) -> int:
        """See `ExampleFeatures.length`."""
        place = (self._places or {}).get(name.encode("utf-8"))
        if place is not None and place[0] < place[1] and self._data[place[0]] == _BYTES_LIST:
            _, at = _length(self._data, place[0] + 1)
            if at < place[1] and self._data[at] == _MESSAGE:
                return _length(self._data, at + 1)[0]
        value = self.first(name)
        return len(value) if isinstance(value, bytes) else 0


class FeatureValues(ExampleFeatures):
    """The features of an Example that is about to be serialized, as a `LazyExample` has them after.

    Args:
        features: as for `encode_example`.
    """

    def __init__(self, features: Mapping[str, FeatureValue]) -> None:
        self._features = features

    def get(self, name: str) -> DecodedFeature | None:
        """See `ExampleFeatures.get`."""
        value = self._features.get(name)
        return None if value is None else stored_values(name, value)

    def packed(self, name: str) -> bytes | None:
        """See `ExampleFeatures.packed`."""
        value = self._features.get(name)
        if isinstance(value, PackedInts):
            return value.packed or None
        values = self.get(name)
        if not isinstance(values, np.ndarray) or values.dtype.kind != "i":
            return None
        return pack_int64(values.astype(np.int64, copy=False)) or None

    def first(self, name: str) -> bytes | int | float | None:
        """See `ExampleFeatures.first`."""
        value = self._features.get(name)
        if value is None or type(value) is bytes or type(value) is int:
            return value
        if isinstance(value, TypedList) and len(value.values) and type(value.values[0]) is float:
            # As it is stored, and a tenth of the time that an array takes.
            with suppress(OverflowError):
                return float(_FLOAT.unpack(_FLOAT.pack(value.values[0]))[0])
        values = stored_values(name, value)
        if not len(values):
            return None
        first = values[0]
        return first if isinstance(first, bytes) else first.item()

    def length(self, name: str) -> int:
        """See `ExampleFeatures.length`."""
        value = self.first(name)
        return len(value) if isinstance(value, bytes) else 0


def _places(data: bytes) -> dict[bytes, tuple[int, int]] | None:
    """Returns name -> begin and end of the value of every entry; `None` for an unusual layout."""
    if not data:
        return {}
    if data[0] != _MESSAGE:
        return None
    length, at = _length(data, 1)
    if at + length != len(data):
        return None
    found: dict[bytes, tuple[int, int]] = {}
    while at < len(data):
        if data[at] != _MESSAGE:
            return None
        length, at = _length(data, at + 1)
        end = at + length
        if end > len(data) or data[at] != _MESSAGE:
            return None
        length, at = _length(data, at + 1)
        name = data[at : at + length]
        at += length
        if at >= end or data[at] != _VALUE:
            return None
        length, at = _length(data, at + 1)
        if at + length != end or name in found:
            return None
        found[name] = at, end
        at = end
    return found


def _values(data: bytes, at: int, end: int) -> DecodedFeature | None:
    """Returns the values of a feature between two offsets; `None` for an unusual layout."""
    if at == end:
        return []
    kind = data[at]
    length, at = _length(data, at + 1)
    if at + length != end or kind not in (_BYTES_LIST, _FLOAT_LIST, _INT64_LIST):
        return None
    if kind == _BYTES_LIST:
        return list(_strings(data, at, end))
    if at == end:
        return np.empty(0, np.float32) if kind == _FLOAT_LIST else np.empty(0, np.int64)
    if data[at] != _MESSAGE:
        return None
    length, at = _length(data, at + 1)
    if at + length != end:
        return None
    if kind == _FLOAT_LIST:
        return None if length % 4 else np.frombuffer(data, "<f4", length // 4, at).astype(np.float32)
    return unpack_int64(memoryview(data)[at:end])


def _packed_int64(data: bytes, at: int, end: int) -> memoryview | None:
    """Returns the packed numbers of an int64 feature; `None` for others, and for unusual layouts."""
    if end - at < 4 or data[at] != _INT64_LIST:
        return None
    try:
        length, at = _length(data, at + 1)
        if at + length != end or data[at] != _MESSAGE:
            return None
        length, at = _length(data, at + 1)
    except IndexError:
        return None
    return memoryview(data)[at:end] if at + length == end else None


def _single(data: bytes, at: int, end: int) -> int | float | None:
    """Returns the value of a feature of one number; `None` for all others, and for unusual layouts."""
    # A tag and a length below 128 for the list, likewise for its values, then at most ten bytes.
    size = end - at
    if not 5 <= size <= 14 or data[at + 1] != size - 2 or data[at + 2] != _MESSAGE or data[at + 3] != size - 4:
        return None
    if data[at] == _FLOAT_LIST:
        return float(_FLOAT.unpack_from(data, at + 4)[0]) if size == 8 else None
    if data[at] != _INT64_LIST or data[end - 1] >= 0x80:
        return None
    value = 0
    for place in range(end - 1, at + 3, -1):
        byte = data[place]
        if byte < 0x80 and place != end - 1:
            return None  # Several small numbers.
        value = value << 7 | byte & 0x7F
    value &= _ALL_BITS
    return value - (1 << 64) if value >> 63 else value


def _strings(data: bytes, at: int, end: int) -> Iterator[bytes]:
    while at < end:
        if data[at] != _MESSAGE:
            raise WireError(f"an unexpected field at byte {at}")
        length, at = _length(data, at + 1)
        if at + length > end:
            raise WireError(f"a string that ends after its list, at byte {at}")
        yield data[at : at + length]
        at += length


def _length(data: bytes, at: int) -> tuple[int, int]:
    """Returns a length and its end."""
    value = data[at]
    if value < 0x80:
        return value, at + 1
    value &= 0x7F
    shift = 7
    while True:
        at += 1
        byte = data[at]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at + 1
        shift += 7
        if shift > 63:
            raise RecordError(f"a length of more than 64 bits at byte {at}: not a tf.train.Example")
