"""Examples with mistakes at the level of protobuf's fields, and TensorFlow's readings of them.

A message is a list of `Field`s whose bodies are numbers, bytes or messages, so that a mutation repeats, moves, splits
or pads a field where it likes; a mutation of bytes hardly ever leaves a message that can be read.
"""

import dataclasses
import struct
from dataclasses import dataclass

import numpy as np

from shardwright.tfrecords.encode import RecordError
from shardwright.tfrecords.lazy_example import LazyExample
from shardwright.tfrecords.records import check_example, decode_example, find_feature
from shardwright.tfrecords.scan import read_example

VARINT, FIXED64, DELIMITED, GROUP, END, FIXED32 = 0, 1, 2, 3, 4, 5
NAMES = ("a", "b", "image/key", "")
NUMBERS = (0, 1, 7, 127, 128, 300, -1, -(2**63), 2**63 - 1, 2**32)


@dataclass
class Field:
    """A field; `pad_tag`, `pad_length` and `pad_value` add so many bytes that a number does not need."""

    number: int
    wire: int
    body: object
    pad_tag: int = 0
    pad_length: int = 0


def varint(value, pad=0):
    value &= 2**64 - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    for _ in range(pad):
        out[-1] |= 0x80
        out.append(0)
    return bytes(out)


def encoded(message):
    """The bytes of a message."""
    if isinstance(message, bytes):
        return message
    parts = []
    for field in message:
        parts.append(varint(field.number << 3 | field.wire, field.pad_tag))
        if field.wire == VARINT:
            parts.append(field.body if isinstance(field.body, bytes) else varint(field.body))
        elif field.wire == DELIMITED:
            body = encoded(field.body)
            parts += [varint(len(body), field.pad_length), body]
        else:
            parts.append(encoded(field.body))
    return b"".join(parts)


def numbers_of(random, kind, packed):
    count = random.randrange(4)
    if kind == 1:
        return [Field(1, DELIMITED, random.randbytes(random.choice((0, 1, 3, 200)))) for _ in range(count)]
    values = [
        varint(random.choice(NUMBERS), random.choice((0, 0, 0, 1, 12)))
        if kind == 3
        else struct.pack("<f", random.random())
        for _ in range(count)
    ]
    if packed:
        return [Field(1, DELIMITED, b"".join(values))] if values else []
    return [Field(1, VARINT if kind == 3 else FIXED32, value) for value in values]


def entry_of(random, name):
    kind = random.choice((1, 2, 3))
    feature = (
        [Field(kind, DELIMITED, numbers_of(random, kind, random.random() < 0.7))] if random.random() < 0.95 else []
    )
    return Field(1, DELIMITED, [Field(1, DELIMITED, name.encode()), Field(2, DELIMITED, feature)])


def example_of(random):
    """An Example as a writer makes it."""
    names = random.sample(NAMES, random.randrange(len(NAMES)))
    return [Field(1, DELIMITED, [entry_of(random, name) for name in names])] if random.random() < 0.97 else []


def messages_in(message):
    yield message
    for field in message:
        if isinstance(field.body, list):
            yield from messages_in(field.body)


def foreign(random):
    number = random.choice((1, 2, 3, 4, 15, 16, 2000, 2**29 - 1, 0))
    wire = random.randrange(8)
    bodies = {VARINT: random.choice(NUMBERS), FIXED64: bytes(8), FIXED32: bytes(4), DELIMITED: random.randbytes(3)}
    return Field(number, wire, bodies.get(wire, b""))


def mutate(random, message):
    """Changes one message within an Example."""
    inner = random.choice(list(messages_in(message)))
    change = random.randrange(10)
    place = random.randrange(len(inner) + 1)
    if change == 0:
        inner.insert(place, foreign(random))
        return
    if not inner:
        inner.append(foreign(random))
        return
    at = random.randrange(len(inner))
    field = inner[at]
    if change == 1:
        inner.insert(place, dataclasses.replace(field))
    elif change == 2:
        random.shuffle(inner)
    elif change == 3:
        del inner[at]
    elif change == 4:
        field.pad_tag = random.choice((1, 4, 9))
    elif change == 5:
        field.pad_length = random.choice((1, 4, 9))
    elif change == 6:
        field.number = random.choice((1, 2, 3, 4))
    elif change == 7 and isinstance(field.body, list) and field.body:
        # In two fields, as protobuf merges them.
        cut = random.randrange(len(field.body) + 1)
        inner[at : at + 1] = [
            dataclasses.replace(field, body=field.body[:cut]),
            dataclasses.replace(field, body=field.body[cut:]),
        ]
    elif change == 7 and isinstance(field.body, bytes) and field.wire == DELIMITED:
        cut = random.randrange(len(field.body) + 1)
        inner[at : at + 1] = [
            dataclasses.replace(field, body=field.body[:cut]),
            dataclasses.replace(field, body=field.body[cut:]),
        ]
    elif change == 8 and isinstance(field.body, bytes):
        field.body = random.choice(
            (b"", field.body[:-1], field.body + b"\x80", b"\xff" * 9 + random.choice((b"\x01", b"\x7f")))
        )
    else:
        inner.insert(place, dataclasses.replace(random.choice(list(messages_in(message))[-1] or [field])))


def mutated(random):
    """The bytes of an Example with up to three mistakes, and their number."""
    message = example_of(random)
    count = random.choice((0, 1, 1, 1, 2, 3))
    for _ in range(count):
        mutate(random, message)
    data = encoded(message)
    if random.random() < 0.02:
        data = data[: random.randrange(len(data) + 1)]
    return data, count


def plain(values):
    """Values as TensorFlow has them and as bytes, so that NaN equals itself; nothing has no kind."""
    if not len(values):
        return ()
    if isinstance(values, list):
        return "bytes", tuple(values)
    return values.dtype.name, values.tobytes()


def ours(data):
    """Our reading, which must be that of all our readers; `None` where they refuse."""
    readers = {"decode": decode_example, "check": check_example, "ingest": read_example}
    results = {}
    for name, read in readers.items():
        try:
            results[name] = read(data)
        except (RecordError, ValueError):
            results[name] = None
    refused = {name for name, result in results.items() if result is None}
    # The ingest also refuses what is more likely something else, such as text.
    assert refused in (set(), set(readers)) or (refused == {"ingest"} and not results["decode"]), (data.hex(), refused)
    if refused:
        return None
    found = results["decode"]
    assert results["check"].keys() == found.keys() == results["ingest"].keys()
    lazy = LazyExample(data)
    for carried in (lazy.carry(lambda name: True), {name: find_feature(data, name) for name in found}):
        assert {name: plain(values) for name, values in carried.items()} == {n: plain(v) for n, v in found.items()}
    assert lazy.carry(lambda name: False).keys() == found.keys()
    for name, values in found.items():
        assert plain(lazy.get(name)) == plain(values)
        first = values[0] if len(values) else None
        assert plain([lazy.first(name)]) == plain([first if isinstance(first, (bytes, type(None))) else first.item()])
        assert lazy.length(name) == (len(first) if isinstance(first, bytes) else 0)
    return {name: plain(values) for name, values in found.items()}


def protobufs(tf, data):
    """The reading of tf.train.Example, and the kinds of its features; `None` where it refuses."""
    try:
        example = tf.train.Example.FromString(data)
    except Exception:
        return None
    found, kinds = {}, {}
    for name, feature in example.features.feature.items():
        kinds[name] = kind = feature.WhichOneof("kind")
        values = [] if kind is None else getattr(feature, kind).value
        dtype = {"int64_list": np.int64, "float_list": np.float32}.get(kind)
        found[name] = plain(list(values) if dtype is None else np.array(values, dtype))
    return found, kinds


def tensorflows(tf, data, kinds):
    """The readings of both ops of tf.io of the features of these kinds, and of others; `None` where one refuses."""
    types = {"bytes_list": tf.string, "float_list": tf.float32, "int64_list": tf.int64}
    spec = {name: tf.io.VarLenFeature(types.get(kinds.get(name), tf.int64)) for name in {*NAMES, *kinds}}
    spec.pop("", None)  # No spec can name it.
    try:
        readings = tf.io.parse_single_example(data, spec), tf.io.parse_example([data], spec)
    except (tf.errors.InvalidArgumentError, UnicodeDecodeError):  # The latter where the message has the bytes.
        return None
    return [{name: plain(as_values(values.values.numpy())) for name, values in one.items()} for one in readings]


def as_values(array):
    return array.tolist() if array.dtype == object else array


def difference(tf, data):
    """What differs between our reading and TensorFlow's; empty where they agree or we refuse."""
    found = ours(data)
    if found is None:
        return ""
    whole = protobufs(tf, data)
    if whole is None or whole[0] != found:
        return f"{data.hex()}: ours {found}, tf.train.Example {whole}"
    ops = tensorflows(tf, data, whole[1])
    expected = {name: found.get(name, ()) for name in {*NAMES, *found} - {""}}
    if ops is None or any(reading != expected for reading in ops):
        return f"{data.hex()}: ours {expected}, tf.io {ops}"
    return ""
