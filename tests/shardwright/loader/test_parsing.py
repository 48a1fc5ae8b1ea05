"""Records are parsed as `tf.io.parse_single_example` does it, what is missing included."""

from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from shardwright.dataset.reader import ImageDataset
from shardwright.loader import load
from shardwright.loader.parse_example import parsed_densely
from shardwright.tfrecords.encode import encode_example
from shardwright.tfrecords.records import frame, read_records

SPEC = {
    "picture": tf.io.FixedLenFeature([], tf.string, default_value=""),
    "side": tf.io.FixedLenFeature([], tf.int64, default_value=7),
    "labels": tf.io.FixedLenSequenceFeature([], tf.int64, allow_missing=True),
}
WHOLE = st.integers(-(2**63), 2**63 - 1)


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "picture": st.binary(max_size=9),
            "side": WHOLE,
            "labels": st.lists(WHOLE, min_size=1, max_size=9),
            "other": WHOLE,
        },
    )
)
def test_it_is_parsed_as_by_the_newer_op(example):
    record = tf.constant(encode_example(example))
    found, expected = parsed_densely(record, SPEC), tf.io.parse_single_example(record, SPEC)
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert found[name].dtype == value.dtype
        assert np.array_equal(found[name].numpy(), value.numpy())


@pytest.mark.parametrize("record", [b"abc", encode_example({"side": b"text"}), encode_example({"picture": 3})])
def test_what_is_no_such_record_is_refused(record):
    with pytest.raises(tf.errors.InvalidArgumentError):
        parsed_densely(tf.constant(record), SPEC)


@pytest.mark.parametrize("order", ["fast", "exact"])
@pytest.mark.parametrize("damage", ["bytes", "kind"])
def test_a_record_that_is_no_such_example_is_named(small_dataset, tmp_path, order, damage):
    def change(number, example):
        return {**example, "image/encoded": 3} if damage == "kind" and number == 1 else example

    folder = small_dataset(tmp_path, task="classification", counts={"train": [3]}, change=change)
    file = Path(ImageDataset.open(folder).shards("train")[0].file)
    if damage == "bytes":
        records = [record for _, record in read_records(file)]
        # Its checksum is right, and TensorFlow's message about it is not text.
        records[1] = b"\xff" + records[1][1:]
        file.write_bytes(b"".join(frame(record) for record in records))
    message = r"record 1 at byte \d+, key train/0001: is not an example as the manifest describes it"
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        list(load(folder, "train", 1, order=order))
