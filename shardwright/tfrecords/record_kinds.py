"""What the payload of a record is, when it is no tf.train.Example that can be used; told from its bytes.

After tensorflow/core/example/example.proto (Example: 1 features; SequenceExample: 1 context, 2 feature_lists) and
tensorflow/core/framework/tensor.proto (TensorProto: 1 dtype, 2 tensor_shape, 4 tensor_content).
"""

from __future__ import annotations

from contextlib import suppress

from shardwright.image_files.image_header import EMPTY_FILE, NOT_AN_IMAGE, ImageError
from shardwright.image_files.images import read_header
from shardwright.tfrecords.protowire import DELIMITED, VARINT, WireError, read_fields, read_messages
from shardwright.tfrecords.records import DecodedFeature, RecordError, decode_example

# The numbers of types.proto.
_TYPES = dict(
    enumerate(["float32", "float64", "int32", "uint8", "int16", "int8", "string", "complex64", "int64", "bool"], 1)
) | {14: "bfloat16", 17: "uint16", 18: "complex128", 19: "float16", 22: "uint32", 23: "uint64"}
_SHOWN = 40


class OtherRecordError(RecordError):
    """A record is no tf.train.Example with features; the message says what it is and what to do."""


def read_example(payload: bytes) -> dict[str, DecodedFeature]:
    """Parses a payload as a tf.train.Example with at least one feature.

    Raises:
        OtherRecordError: it is something else.
    """
    other = _other_message(payload)
    if not other:
        try:
            if features := decode_example(payload):
                return features
        except RecordError:
            other = _no_message(payload)
    raise OtherRecordError(other or _no_message(payload))


def text_of(data: bytes) -> str:
    """How bytes begin, where they are text, or nothing."""
    start = data[:_SHOWN]
    # The cut may go through a character of up to four bytes.
    for cut in range(4 if len(data) > _SHOWN else 1):
        with suppress(UnicodeDecodeError):
            text = start[: len(start) - cut].decode("utf-8")
            return text if all(c.isprintable() or c in "\t\r\n" for c in text) else ""
    return ""


def is_image(data: bytes) -> bool:
    """Whether bytes begin as an image of any known format, and not as text does."""
    if text_of(data):
        return False
    try:
        read_header(data[:_SHOWN], max_pixels=1)
    except ImageError as error:
        return error.code not in (NOT_AN_IMAGE, EMPTY_FILE)
    return True


def _other_message(payload: bytes) -> str:
    """Which message other than an Example a payload is, or nothing."""
    try:
        fields = [(field, wire, value) for field, wire, value in read_fields(memoryview(payload))]
        kinds = {(field, wire) for field, wire, _ in fields}
        if fields and kinds <= {(1, DELIMITED), (2, DELIMITED)} and (2, DELIMITED) in kinds:
            names = [
                bytes(name).decode("utf-8")
                for lists in (value for field, _, value in fields if field == 2)
                for entry in read_messages(lists, 1)
                for name in read_messages(entry, 1)
            ]
            shown = ", ".join(names[:3]) or "none"
            return f"a SequenceExample (feature lists: {shown}); write one tf.train.Example an image"
        if (1, VARINT) in kinds and (2, DELIMITED) in kinds and fields[0][2] in _TYPES:
            shape = [_size(dim) for value in (v for f, _, v in fields if f == 2) for dim in read_messages(value, 2)]
            return f"a serialized tensor ({_TYPES[fields[0][2]]}, shape {shape}); write a tf.train.Example around it"
    except (WireError, UnicodeDecodeError, TypeError):
        return ""
    return ""


def _size(dim: memoryview) -> int:
    return next((int(value) for field, wire, value in read_fields(dim) if (field, wire) == (1, VARINT)), 0)


def _no_message(payload: bytes) -> str:
    if not payload:
        return "empty"
    if is_image(payload):
        return "the bytes of an image without anything around; write a tf.train.Example with a class or a key"
    if text := text_of(payload):
        return f"text ({text!r}); write a tf.train.Example"
    return f"neither a tf.train.Example nor anything known; it begins with {payload[:8].hex(' ')}"
