"""Writes a `tf.train.Example` in pieces, so that the bytes of an image are written to a file without being copied.

The wire format is protocol buffers' (tensorflow/core/example/example.proto and feature.proto), with names sorted and
numbers packed; see `shardwright.tfrecords.records`.
"""

import struct
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from shardwright.errors import DatasetError
from shardwright.tfrecords.wire import (
    DELIMITED,
    delimited,
    delimited_start,
    pack_int64,
    pack_int64_lists,
    unpack_int64,
    varint,
)

_INT64_MIN, _INT64_MAX = -(2**63), 2**63 - 1
_UINT64 = 2**64 - 1
_FLOAT = struct.Struct("<f")
# Field numbers of the three lists in feature.proto's Feature.
BYTES_LIST, FLOAT_LIST, INT64_LIST = 1, 2, 3
_KINDS = {"bytes": BYTES_LIST, "float32": FLOAT_LIST, "int64": INT64_LIST}
# Name and values of nearly all entries have so few bytes together that every length within is one byte.
_SHORT = 0x7F - 4
# Lists of so many numbers are encoded one by one.
_FEW = 7
# Shorter pieces are cheaper to copy than to pass one by one.
_WORTH_A_PIECE = 1 << 15


class RecordError(DatasetError, ValueError):
    """A TFRecord file or an Example is damaged, or a value does not fit into one. Exit code 1."""


@dataclass(frozen=True)
class TypedList:
    """A feature's values with their kind, so that an empty list has one too.

    Args:
        kind: `bytes`, `int64` or `float32`.
        values: the values, possibly none.
    """

    kind: str
    values: Sequence[Any] | npt.NDArray[Any]


def ints(values: Sequence[int] | npt.NDArray[Any]) -> TypedList:
    """Returns an int64 feature of any length, 0 included."""
    return TypedList("int64", values)


def floats(values: Sequence[float] | npt.NDArray[Any]) -> TypedList:
    """Returns a float32 feature of any length, 0 included."""
    return TypedList("float32", values)


def byte_strings(values: Sequence[bytes]) -> TypedList:
    """Returns a bytes feature of any length, 0 included."""
    return TypedList("bytes", values)


@dataclass(frozen=True)
class EncodedFeature:
    """A feature of another Example, to be copied as it is.

    Args:
        feature: the serialized `Feature`.
    """

    feature: bytes


@dataclass(frozen=True)
class PackedInts:
    """Whole numbers that are packed already.

    Args:
        packed: varints, one after the other.
    """

    packed: bytes


FeatureValue = (
    bytes
    | int
    | float
    | Sequence[bytes]
    | Sequence[int]
    | Sequence[float]
    | npt.NDArray[Any]
    | TypedList
    | EncodedFeature
    | PackedInts
)


def encode_example(features: Mapping[str, FeatureValue]) -> bytes:
    """Serializes a tf.train.Example.

    Args:
        features: name to value. `bytes`, a whole number or a float make a list of one; sequences and arrays keep their
            order; float64 becomes float32. An empty list has no kind: use `ints([])`, `floats([])` or
            `byte_strings([])`.

    Returns:
        The bytes; they do not depend on the order of the features.

    Raises:
        RecordError: the type of a value is not supported, or it does not fit into int64 or float32.
    """
    return b"".join(encode_pieces(features))


def encode_pieces(features: Mapping[str, FeatureValue]) -> list[bytes]:
    """Serializes a tf.train.Example as consecutive pieces; large values are pieces without a copy."""
    pieces: list[bytes] = [b""]
    for name in _in_order(tuple(features)):
        value = features[name]
        if type(value) is bytes:
            start = (_short_start if len(value) <= _SHORT else _bytes_start)(name, len(value))
            pieces += (start + value,) if len(value) < _WORTH_A_PIECE else (start, value)
        elif type(value) is int and _fits(value):
            pieces.append(_int_entry(name, value))
        elif type(value) is EncodedFeature:
            feature = value.feature
            start = (_short_feature if len(feature) <= _SHORT else _feature_start)(name, len(feature))
            pieces += (start + feature,) if len(feature) < _WORTH_A_PIECE else (start, feature)
        else:
            pieces += _encode_entry(name, value)
    pieces[0] = delimited_start(1, sum(map(len, pieces)))
    return joined(pieces)


@lru_cache(maxsize=64)
def _in_order(names: tuple[str, ...]) -> tuple[str, ...]:
    """Sorts the names of the features, the same few times for all images of a dataset."""
    return tuple(sorted(names))


def _bytes_start(name: str, length: int) -> bytes:
    """Encodes all of an entry of one value of bytes that stands before the value."""
    start = delimited_start(1, length)
    start = delimited_start(BYTES_LIST, len(start) + length) + start
    return _feature_start(name, len(start) + length) + start


def _feature_start(name: str, length: int) -> bytes:
    """Encodes all of an entry that stands before its Feature."""
    start = _named(name) + delimited_start(2, length)
    return delimited_start(1, len(start) + length) + start


_short_start, _short_feature = (lru_cache(maxsize=4096)(of) for of in (_bytes_start, _feature_start))


def encode_entry(name: str, value: FeatureValue) -> bytes:
    """Serializes a feature with its name, for `join_entries`. Errors as of `encode_example`."""
    return b"".join(_encode_entry(name, value))


def pack_arrays(features: Mapping[str, FeatureValue]) -> dict[str, FeatureValue]:
    """Packs the arrays of whole numbers, in one pass; all other features stay."""
    arrays: dict[str, npt.NDArray[np.int64]] = {}
    for name, value in features.items():
        values = value.values if type(value) is TypedList and value.kind == "int64" else None
        if type(values) is np.ndarray and values.dtype == np.int64 and values.ndim == 1:
            arrays[name] = values
    packed = pack_int64_lists([*arrays.values()]) if arrays else []
    return {**features, **dict(zip(arrays, map(PackedInts, packed), strict=True))}


def encode_entries(features: Mapping[str, FeatureValue]) -> dict[str, bytes]:
    """Serializes all features of an Example like `encode_entry`, arrays of whole numbers in one pass."""
    return {name: encode_entry(name, value) for name, value in pack_arrays(features).items()}


def join_entries(entries: Mapping[str, bytes]) -> bytes:
    """Joins features that `encode_entry` has serialized to an Example."""
    body = b"".join([entries[name] for name in sorted(entries)])
    return delimited_start(1, len(body)) + body


def stored_values(name: str, value: FeatureValue) -> list[bytes] | npt.NDArray[np.int64] | npt.NDArray[np.float32]:
    """Returns the values of a feature as they are read from the Example later.

    Raises:
        RecordError: as of `encode_example`, or the feature is encoded already.
    """
    if isinstance(value, EncodedFeature):
        raise RecordError(f"feature {name}: its values are encoded")
    if isinstance(value, PackedInts):
        return unpack_int64(value.packed)
    kind, values = _typed(name, value)
    if kind == BYTES_LIST:
        return list(values)
    if kind == INT64_LIST:
        return _as_int64(name, values) if len(values) else np.empty(0, np.int64)
    return _as_float32(name, values)


def _encode_entry(name: str, value: FeatureValue) -> list[bytes]:
    """Encodes an entry of the map: its name, its value (a Feature), the list in that, the values in pieces."""
    if type(value) is int and _fits(value):
        return [_int_entry(name, value)]
    if type(value) is PackedInts:
        return [_packed_entry(name, value.packed) if value.packed else _int_entry(name)]
    if isinstance(value, TypedList) and value.kind == "int64" and len(value.values) <= _FEW:
        # The classes of an image, or an empty mask.
        few = [number for number in value.values if type(number) is int and _fits(number)]
        if len(few) == len(value.values):
            return [_int_entry(name, *few)]
    if type(value) is EncodedFeature:
        return [_feature_start(name, len(value.feature)), value.feature]
    return _entry(name, *_encode_feature(name, value))


def _entry(name: str, kind: int, body: list[bytes]) -> list[bytes]:
    """Encodes an entry whose list is already encoded."""
    size = sum(map(len, body))
    named = _named(name)
    if len(named) + size <= _SHORT:
        inner = bytes((2 << 3 | DELIMITED, size + 2, kind << 3 | DELIMITED, size))
        return [b"".join((bytes((1 << 3 | DELIMITED, len(named) + size + 4)), named, inner, *body))]
    start = delimited_start(kind, size)
    start = delimited_start(2, len(start) + size) + start
    start = named + start
    return [delimited_start(1, len(start) + size) + start, *body]


@lru_cache(maxsize=4096)
def _int_entry(name: str, *values: int) -> bytes:
    """Encodes an entry of a few whole numbers: many are the same in all images of a dataset."""
    packed = b"".join([varint(value & _UINT64) for value in values])
    return _packed_entry(name, packed) if packed else b"".join(_entry(name, INT64_LIST, []))


def _packed_entry(name: str, packed: bytes) -> bytes:
    """Encodes an entry of whole numbers."""
    named, size = _named(name), len(packed)
    if len(named) + size > _SHORT - 2:
        return b"".join(_entry(name, INT64_LIST, [delimited(1, packed)]))
    start = bytes((1 << 3 | DELIMITED, len(named) + size + 6))
    inner = (2 << 3 | DELIMITED, size + 4, INT64_LIST << 3 | DELIMITED, size + 2, 1 << 3 | DELIMITED, size)
    return b"".join((start, named, bytes(inner), packed))


@lru_cache(maxsize=4096)
def _named(name: str) -> bytes:
    """Encodes the name of a feature, one of the same few for all images."""
    return delimited(1, name.encode())


def joined(pieces: Sequence[bytes]) -> list[bytes]:
    """Joins short neighbors among the pieces of an Example; the first one is short."""
    found: list[bytes] = []
    begin = 0
    for number, piece in enumerate(pieces):
        if len(piece) >= _WORTH_A_PIECE:
            found += b"".join(pieces[begin:number]), piece
            begin = number + 1
    return [*found, b"".join(pieces[begin:])] if begin < len(pieces) else found


def _encode_feature(name: str, value: FeatureValue) -> tuple[int, list[bytes]]:
    """Returns field number and body of the list with a value, the body in pieces."""
    if type(value) is bytes:
        return BYTES_LIST, [delimited_start(1, len(value)), value]
    kind, values = _typed(name, value)
    if len(values) == 1 and (single := _single(kind, values[0])):
        return kind, [delimited(1, single)]
    if kind == BYTES_LIST:
        return kind, [piece for item in values for piece in (delimited_start(1, len(item)), item)]
    if not len(values):
        return kind, []
    if kind == INT64_LIST:
        return kind, [delimited(1, pack_int64(_as_int64(name, values)))]
    return kind, [delimited(1, _as_float32(name, values).astype("<f4", copy=False).tobytes())]


def _fits(value: int) -> bool:
    """Returns whether a number fits into int64."""
    return _INT64_MIN <= value <= _INT64_MAX


def _single(kind: int, value: Any) -> bytes:
    """Returns one packed number, ten times as fast as an array does; nothing where the array has to check it."""
    if kind == INT64_LIST and type(value) is int and _fits(value):
        return varint(value & _UINT64)
    if kind == FLOAT_LIST and type(value) is float:
        with suppress(OverflowError):
            return _FLOAT.pack(value)
    return b""


def _typed(name: str, value: FeatureValue) -> tuple[int, Sequence[Any] | npt.NDArray[Any]]:
    if isinstance(value, TypedList):
        if value.kind not in _KINDS:
            raise RecordError(f"feature {name}: kind {value.kind!r} is not one of {', '.join(_KINDS)}")
        values: Any = value.values
        if _KINDS[value.kind] == BYTES_LIST and not all(isinstance(item, bytes) for item in values):
            raise RecordError(f"feature {name}: a bytes feature contains other values; encode text as UTF-8 first")
        return _KINDS[value.kind], values
    values = value if isinstance(value, (list, tuple, np.ndarray)) else [value]
    if not len(values):
        raise RecordError(f"feature {name}: an empty list has no kind; use ints([]), floats([]) or byte_strings([])")
    if all(isinstance(item, bytes) for item in values):
        return BYTES_LIST, values
    array = np.asarray(values)
    # The type of each item decides, since numpy may turn whole numbers beyond int64 into floats.
    if array.dtype.kind in "iu" or all(type(item) is int for item in values):
        return INT64_LIST, values
    if array.dtype.kind == "f":
        return FLOAT_LIST, values
    raise RecordError(
        f"feature {name}: {type(values[0]).__name__} values cannot be stored; an Example contains bytes, whole numbers "
        "or floats (encode text as UTF-8, turn truth values into 0 and 1)"
    )


def _as_int64(name: str, values: Any) -> npt.NDArray[np.int64]:
    array = np.asarray(values)
    if array.ndim != 1:
        raise RecordError(f"feature {name}: an array of shape {array.shape} must be flat to be stored")
    if array.dtype.kind not in "iu":
        whole = all(type(item) is int for item in values)
        raise RecordError(f"feature {name}: {'a number is beyond int64' if whole else 'not all are whole numbers'}")
    if array.dtype.kind == "u" and int(array.max()) > _INT64_MAX:
        raise RecordError(f"feature {name}: {int(array.max())} is beyond int64")
    return array.astype(np.int64, copy=False)


def _as_float32(name: str, values: Any) -> npt.NDArray[np.float32]:
    array = np.asarray(values)
    if array.ndim != 1 or array.dtype.kind not in "fiu":
        raise RecordError(f"feature {name}: {array.dtype} of shape {array.shape} must be flat and numbers to be stored")
    with np.errstate(over="ignore"):
        single = array.astype(np.float32)
    lost = np.isinf(single) & np.isfinite(array)
    if lost.any():
        raise RecordError(f"feature {name}: {array[lost][0]} is beyond float32")
    return single
