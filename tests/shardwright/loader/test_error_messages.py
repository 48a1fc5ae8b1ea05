"""Batches end in one line where a record is damaged; other errors stay what they are."""

import numpy as np
import pytest
import tensorflow as tf

from shardwright import loader
from shardwright.errors import DatasetError
from shardwright.loader.error_context import error_message, with_plain_errors


@pytest.mark.parametrize("order", ["fast", "exact"])
def test_a_damaged_record_is_named_in_a_line(tmp_path, small_dataset, order):
    dataset = small_dataset(tmp_path, task="classification")
    shard = dataset / "Split-train" / "data-00001-of-00002.tfrecord"
    data = bytearray(shard.read_bytes())
    data[-30] ^= 1
    shard.write_bytes(data)
    batches = with_plain_errors(iter(loader.load(dataset, "train", 2, order=order)))
    with pytest.raises(
        DatasetError, match=r"^Split-train/data-00001-of-00002\.tfrecord, record 1.*train/0006.*\.$"
    ) as caught:
        list(batches)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "before",
    [
        "",
        "{{function_node __wrapped__IteratorGetNext_device_/job:localhost/device:CPU:0}} ",
        # TensorFlow 2.21.
        "{{function_node __wrapped__IteratorGetNext_device_/job:localhost/device:CPU:0}} Error in user-defined "
        "function passed to ParallelMapDatasetV2:24494 transformation with iterator: Iterator::Root::FlatMap[0]::Map: ",
    ],
)
@pytest.mark.parametrize(
    "ours", ["assertion failed: [a.tfrecord, record 1: damaged]", "DatasetError: a.tfrecord, record 1: damaged"]
)
def test_the_loaders_message_is_found_in_the_errors_of_both_stacks(before, ours):
    error = tf.errors.InvalidArgumentError(
        None, None, f"{before}{ours}\n\t [[{{{{node Assert}}}}]] [Op:IteratorGetNext]"
    )
    assert error_message(error) == "a.tfrecord, record 1: damaged"


def test_names_are_unchanged_but_for_characters_that_would_break_the_line():
    key = "träin/a 'b' \"c\" \\ \n\t\x1b[31m 猫"

    def fail(number):
        with tf.control_dependencies([tf.raw_ops.Assert(condition=False, data=[tf.constant(f"record 1: {key}")])]):
            return tf.identity(number)

    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        next(iter(tf.data.Dataset.range(1).map(fail)))
    assert error_message(caught.value) == "record 1: träin/a 'b' \"c\" \\ \\n\\t\\033[31m 猫"


@pytest.mark.parametrize("error", [KeyError("odd"), MemoryError("DatasetError: no")])
def test_any_other_error_stays_as_it_is(error):
    def fail(number):
        raise error

    numbers = tf.data.Dataset.range(2).map(lambda number: tf.numpy_function(fail, [number], tf.int64))
    with pytest.raises(tf.errors.OpError, match="odd|no"):
        next(with_plain_errors(iter(numbers)))


def test_batches_pass_as_they_are_and_one_by_one():
    batches = with_plain_errors(iter(tf.data.Dataset.range(4).batch(2).repeat()))
    assert [np.asarray(next(batches)).tolist() for _ in range(3)] == [[0, 1], [2, 3], [0, 1]]
