"""Single features of many serialized examples: offsets are found once, and only requested features are parsed.

A pass over a whole dataset that reads a dozen numbers of every record would spend most of its time on the others. The
parser is that of `records`.
"""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import lru_cache

import numpy as np

from shardwright.tfrecords.encode import (
    EncodedFeature,
    FeatureValue,
    PackedInts,
    RecordError,
    TypedList,
    encode_entry,
    encode_pieces,
    joined,
    stored_values,
)
from shardwright.tfrecords.records import (
    DecodedFeature,
    check_feature,
    feature_places,
    feature_values,
    first_string,
    packed_numbers,
    usual_places,
)
from shardwright.tfrecords.wire import WireError, delimited_start, pack_int64, read_length, unpack_int64_lists

# Tags: values of a list, and the lists of a feature.
_MESSAGE, _BYTES_LIST, _FLOAT_LIST, _INT64_LIST = 0x0A, 0x0A, 0x12, 0x1A
# Bytes of a feature whose lengths are one byte each, and of one with a number of ten bytes.
_SHORT, _LONGEST_NUMBER = 0x7F + 2, 14
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
        RecordError: they are not an Example, or not all parsers read the same of it.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        usual = usual_places(data)
        self._places, self._is_usual = feature_places(data) if usual is None else usual, usual is not None

    def get(self, name: str) -> DecodedFeature | None:
        place = self._places.get(name)
        return None if place is None else feature_values(self._data, place)

    def encoded(self, kept: Callable[[str], bool]) -> dict[str, EncodedFeature]:
        """Returns some features as they are, unchecked, to be written again.

        Args:
            kept: returns for a name whether the feature is one of them.
        """
        places = self._places.items()
        return {name: EncodedFeature(self._data[begin:end]) for name, (begin, end) in places if kept(name)}

    def replaced(self, without: Callable[[str], bool], new: Mapping[str, FeatureValue]) -> list[bytes]:
        """Serializes the Example with other features, in pieces; those that stay are copied as they are, unchecked.

        Args:
            without: returns for a name whether the feature is left out; it is for all names of `new`. One function for
                many Examples, which it is called for once.
            new: features to add.
        """
        data, places = self._data, self._places
        steps = _steps(tuple(places), tuple(new), without) if self._is_usual else None
        if steps is None:  # Another writer's order or layout.
            return encode_pieces({**self.encoded(lambda name: not without(name)), **new})
        ends = [read_length(data, 1)[1], *(end for _, end in places.values())]
        pieces = [
            encode_entry(step, new[step]) if isinstance(step, str) else data[ends[step[0]] : ends[step[1]]]
            for step in steps
        ]
        return joined([delimited_start(1, sum(map(len, pieces))), *pieces])

    def carry(self, parsed: Callable[[str], bool]) -> dict[str, DecodedFeature | EncodedFeature]:
        """Returns all features: some parsed as by `get`, the others checked and encoded, to be written again.

        Args:
            parsed: returns for a name whether the feature is parsed.

        Raises:
            RecordError: the bytes are not an Example.
        """
        found: dict[str, DecodedFeature | EncodedFeature] = {}
        numbers: dict[str, memoryview | bytes] = {}
        for name, place in self._places.items():
            if not parsed(name):
                check_feature(self._data, place)
                found[name] = EncodedFeature(self._data[place[0] : place[1]])
                continue
            packed = packed_numbers(self._data, place)
            if packed is None:
                found[name] = feature_values(self._data, place)
            else:
                numbers[name] = packed
        try:
            found |= zip(numbers, unpack_int64_lists([*numbers.values()]), strict=True)
        except WireError as error:
            raise RecordError(f"{len(self._data)} bytes are not a tf.train.Example: {error}") from None
        return found

    def packed(self, name: str) -> bytes | None:
        place = self._places.get(name)
        return None if place is None else bytes(packed_numbers(self._data, place) or b"") or None

    def first(self, name: str) -> bytes | int | float | None:
        place = self._places.get(name)
        value = None if place is None else _single(self._data, *place)
        return _first(self.get(name)) if value is None else value

    def length(self, name: str) -> int:
        place = self._places.get(name)
        string = None if place is None else first_string(self._data, place)
        return 0 if string is None else string[1] - string[0]


@lru_cache(maxsize=64)
def _steps(
    names: tuple[str, ...], new: tuple[str, ...], without: Callable[[str], bool]
) -> tuple[str | tuple[int, int], ...] | None:
    """Returns how to make an Example of another one: the same for all images of a dataset.

    Args:
        names: of its features.
        new: of those that it gets.
        without: see `LazyExample.replaced`.

    Returns:
        In their order, names of new features, and positions of features to copy: the first, and that after the last.
        `None` where features are in no order.
    """
    if list(names) != sorted(names):
        return None
    kept = [(name, number) for number, name in enumerate(names) if not without(name)]
    steps: list[str | tuple[int, int]] = []
    for name, number in sorted([*kept, *((name, -1) for name in new)]):
        last = steps[-1] if steps else ""
        if number < 0:
            steps.append(name)
        elif isinstance(last, tuple) and last[1] == number:
            steps[-1] = last[0], number + 1
        else:
            steps.append((number, number + 1))
    return tuple(steps)


class ReplacedFeatures(ExampleFeatures):
    """The features of an Example that `LazyExample.replaced` makes.

    Args:
        example: the Example before.
        new: the features that it gets; those that it loses are not asked for.
    """

    def __init__(self, example: LazyExample, new: Mapping[str, FeatureValue]) -> None:
        self._example, self._names, self._new = example, new, FeatureValues(new)

    def _of(self, name: str) -> ExampleFeatures:
        return self._new if name in self._names else self._example

    def get(self, name: str) -> DecodedFeature | None:
        return self._of(name).get(name)

    def packed(self, name: str) -> bytes | None:
        return self._of(name).packed(name)

    def first(self, name: str) -> bytes | int | float | None:
        return (self._new if name in self._names else self._example).first(name)

    def length(self, name: str) -> int:
        return self._of(name).length(name)

    def integers(self, name: str) -> list[int]:
        return self._of(name).integers(name)


class FeatureValues(ExampleFeatures):
    """The features of an Example that is about to be serialized, as a `LazyExample` has them after.

    Args:
        features: as for `encode_example`; those that are encoded already are parsed.
    """

    def __init__(self, features: Mapping[str, FeatureValue]) -> None:
        self._features = features

    def get(self, name: str) -> DecodedFeature | None:
        value = self._features.get(name)
        if type(value) is EncodedFeature:
            return feature_values(value.feature, (0, len(value.feature)))
        return None if value is None else stored_values(name, value)

    def packed(self, name: str) -> bytes | None:
        value = self._features.get(name)
        if isinstance(value, PackedInts):
            return value.packed or None
        values = self.get(name)
        if not isinstance(values, np.ndarray) or values.dtype.kind != "i":
            return None
        return pack_int64(values.astype(np.int64, copy=False)) or None

    def first(self, name: str) -> bytes | int | float | None:
        value = self._features.get(name)
        if value is None or type(value) is bytes or type(value) is int:
            return value
        if type(value) is EncodedFeature:
            single = _single(value.feature, 0, len(value.feature))
            return _first(self.get(name)) if single is None else single
        if isinstance(value, TypedList) and len(value.values) and type(value.values[0]) is float:
            # As it is stored, and a tenth of the time that an array takes.
            with suppress(OverflowError):
                return float(_FLOAT.unpack(_FLOAT.pack(value.values[0]))[0])
        return _first(stored_values(name, value))

    def integers(self, name: str) -> list[int]:
        value = self._features.get(name)
        if type(value) is TypedList and value.kind == "int64" and type(value.values) is list:
            return [int(number) for number in value.values]
        return super().integers(name)

    def length(self, name: str) -> int:
        value = self._features.get(name)
        if type(value) is EncodedFeature:
            string = first_string(value.feature, (0, len(value.feature)))
            return 0 if string is None else string[1] - string[0]
        value = self.first(name)
        return len(value) if isinstance(value, bytes) else 0


def _first(values: DecodedFeature | None) -> bytes | int | float | None:
    """Returns the first of some values as a Python value."""
    if values is None or not len(values):
        return None
    value = values[0]
    return value if isinstance(value, bytes) else value.item()


def _single(data: bytes, at: int, end: int) -> bytes | int | float | None:
    """Returns the value of a feature of one short value; `None` for all others, and for unusual layouts."""
    # A tag and a length below 128 for the list, likewise for its values.
    size = end - at
    if size < 5 or data[at + 1] != size - 2 or data[at + 2] != _MESSAGE or data[at + 3] != size - 4 or size > _SHORT:
        return None
    if data[at] == _BYTES_LIST:
        return data[at + 4 : end]
    if size > _LONGEST_NUMBER:
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
    if value > _ALL_BITS:
        return None  # The general parser refuses it.
    return value - (1 << 64) if value >> 63 else value
