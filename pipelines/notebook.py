"""What most notebooks do to make TFRecords of images: the method that `shardwright bench` compares with."""

from __future__ import annotations

import os
from collections.abc import Sequence

import tensorflow as tf


def write_records(paths: Sequence[str], texts: dict[str, list[str]], target: str) -> None:
    """One thread: read, decode the JPEG to learn its shape, build the example, write it.

    Args:
        paths: images.
        texts: file name -> what the table says of it, stored as it is: its class.
        target: file to write.
    """
    with tf.io.TFRecordWriter(target) as writer:
        for path in paths:
            data = tf.io.read_file(path)
            height, width, channels = tf.io.decode_jpeg(data).shape
            name = os.path.basename(path)
            features = {
                "image": _bytes([data.numpy()]),
                "name": _bytes([name.encode()]),
                "height": _ints([height]),
                "width": _ints([width]),
                "channels": _ints([channels]),
                "label": _bytes([text.encode() for text in texts.get(name, ())]),
            }
            writer.write(tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString())


def _bytes(values: list[bytes]) -> tf.train.Feature:
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))


def _ints(values: list[int]) -> tf.train.Feature:
    return tf.train.Feature(int64_list=tf.train.Int64List(value=values))
