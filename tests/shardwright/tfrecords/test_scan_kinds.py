"""Messages about records that are not examples."""

import io
from contextlib import suppress

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from PIL import Image

from shardwright.tfrecords.encode import encode_example
from shardwright.tfrecords.scan import OtherRecordError, is_image, read_example
from shardwright.tfrecords.wire import delimited, varint


def _image(kind):
    file = io.BytesIO()
    Image.new("RGB", (9, 9)).save(file, kind)
    return file.getvalue()


def _feature_list(name):
    return delimited(1, delimited(1, name) + delimited(2, b""))


def _tensor(dtype, *shape):
    dims = b"".join(delimited(2, b"\x08" + varint(size)) for size in shape)
    return b"\x08" + varint(dtype) + delimited(2, dims) + delimited(4, b"\0" * 12)


@pytest.mark.parametrize(
    ("payload", "message"),
    [
        (
            encode_example({"id": 3}) + delimited(2, _feature_list(b"frames")),
            r"SequenceExample \(feature lists: frames\)",
        ),
        (delimited(2, _feature_list(b"a") + _feature_list(b"b")), r"SequenceExample \(feature lists: a, b\)"),
        (_tensor(4, 224, 224, 3), r"serialized tensor \(uint8, shape \[224, 224, 3\]\)"),
        (_tensor(1), r"serialized tensor \(float32, shape \[\]\)"),
        (_image("jpeg"), "bytes of an image"),
        (_image("png"), "bytes of an image"),
        (_image("gif"), "bytes of an image"),
        (encode_example({"a": 1}) * 2, "a tf.train.Example that parsers read differently: feature 'a' is there twice"),
        (b"cat,dog\n", "text"),
        (b'{"image": "a.jpg", "caption": "a cat that sits on a mat"}', "text"),
        (("ä" * 30).encode(), "text"),
        (b"\x93NUMPY\x01\0", "nor anything known; it begins with 93 4e"),
        (b"\x28\x01", "nor anything known"),
    ],
)
def test_other_records_are_named(payload, message):
    with pytest.raises(OtherRecordError, match=message):
        read_example(payload)


def test_an_example_is_read():
    assert read_example(encode_example({"a": b"x"})) == {"a": [b"x"]}


@pytest.mark.parametrize("payload", [b"", encode_example({}), b"\x0a\x00\x0a\x00", b"\x0a\x00\x28\x01"])
def test_an_empty_example_is_one(payload):
    assert read_example(payload) == {}


@given(st.binary(max_size=100))
@example(encode_example({"a": b"x"}))
def test_any_bytes_are_read_or_named(payload):
    with suppress(OtherRecordError):
        assert isinstance(read_example(payload), dict)


@given(st.sampled_from([b"BMW", b"BM is a text that is longer than forty bytes, surely it is"]))
def test_text_is_no_image(text):
    assert not is_image(text)
