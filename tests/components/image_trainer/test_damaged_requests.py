"""A request with damaged images: the refusal names their positions, and the signature `partial` answers the others.

By a SavedModel that is checked and opened as `predict` does.
"""

import io
import struct
import time
import zlib

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image
from recipes import train_recipe

from shardwright.components.image_trainer.export.signatures import FlippedMean, ServedModel, decode_each
from shardwright.components.image_trainer.spec import TrainSpec
from shardwright.components.model_files.saved_model import load_saved_model
from shardwright.images import tf_ops

HEIGHT, WIDTH = 24, 40
TASKS = {
    "segmentation": ({"task": "segmentation"}, ("probabilities", "masks")),
    "classification": ({"task": "classification"}, ("probabilities", "labels")),
    "classes": ({"task": "classification", "multi": True}, ("probabilities", "classes")),
}
PIXELS = np.asarray(Image.fromarray(np.random.default_rng(0).integers(0, 256, (6, 6, 3), np.uint8)).resize((96, 64)))


def encoded(form, pixels=PIXELS, mode=None, **options):
    file = io.BytesIO()
    image = Image.fromarray(pixels)
    (image.convert(mode) if mode else image).save(file, form, **options)
    return file.getvalue()


def flipped(data):
    """Bytes in the middle are others."""
    middle = len(data) // 2
    return data[:middle] + bytes(byte ^ 0x5A for byte in data[middle : middle + 8]) + data[middle + 8 :]


def idat(data):
    """Begin and end of the pixels of a PNG."""
    begin = data.index(b"IDAT") + 4
    return begin, begin + struct.unpack(">I", data[begin - 8 : begin - 4])[0]


def wrong_checksum(data):
    _, end = idat(data)
    return data[:end] + bytes([data[end] ^ 1]) + data[end + 1 :]


def fewer_pixels(data):
    """Half of the pixels are missing, and all else is sound, with its checksum."""
    begin, end = idat(data)
    chunks = [(b"IDAT", data[begin : (begin + end) // 2]), (b"IEND", b"")]
    return data[: begin - 8] + b"".join(
        struct.pack(">I", len(rest)) + name + rest + struct.pack(">I", zlib.crc32(name + rest)) for name, rest in chunks
    )


JPEG, PROGRESSIVE, CMYK = encoded("JPEG"), encoded("JPEG", progressive=True), encoded("JPEG", mode="CMYK")
PNG, GIF = encoded("PNG"), encoded("GIF")
DEEP = encoded("PNG", PIXELS[..., 0].astype(np.uint16) * 257)
ANIMATED = encoded("PNG", save_all=True, append_images=[Image.fromarray(255 - PIXELS)])
# The end of its thumbnail is an end of a JPEG.
PREVIEWED = encoded("JPEG", exif=b"Exif\0\0" + JPEG)
GOOD = [JPEG, PROGRESSIVE, CMYK, PNG, DEEP, ANIMATED, GIF, PREVIEWED, JPEG + b"more"]
BAD = {
    "empty": b"",
    "html": b"<html>",
    "webp": encoded("WEBP"),
    "bmp": encoded("BMP"),
    "a mark only": JPEG[:3],
    "no end": JPEG[:-2],
    "cut": JPEG[: len(JPEG) // 2],
    "cut, with a whole thumbnail": PREVIEWED[: -len(JPEG) // 2],
    "tables of a JPEG": JPEG.replace(b"\xff\xc4\x00\x1f\x00", b"\xff\xc4\x00\x1f\x77", 1),
    "no pixels": JPEG[: JPEG.index(b"\xff\xda")] + b"\xff\xd9",
    "progressive, cut": PROGRESSIVE[: len(PROGRESSIVE) // 2],
    "progressive, cut, with an end": PROGRESSIVE[: len(PROGRESSIVE) // 2] + b"\xff\xd9",
    "CMYK, cut": CMYK[: len(CMYK) // 2],
    "PNG, cut": PNG[:100],
    "PNG, flipped": flipped(PNG),
    "PNG, wrong checksum": wrong_checksum(PNG),
    "PNG, half of the pixels": fewer_pixels(PNG),
    "16 bits, wrong checksum": wrong_checksum(DEEP),
    "16 bits, half of the pixels": fewer_pixels(DEEP),
    "animated, wrong checksum": wrong_checksum(ANIMATED),
    "GIF, cut": GIF[: len(GIF) // 2],
}


def mean_color(images, training):
    del training
    return tf.reduce_mean(images, [1, 2])


@pytest.fixture(scope="module", params=TASKS)
def served(request, tmp_path_factory):
    """The signatures of a model that was saved and loaded, and the names of what they return."""
    options, outputs = TASKS[request.param]
    spec = TrainSpec(
        *(train_recipe("unet", 8, 2, 4, 1e-3, 1, "eval"), "data", "d", options["task"], ("a", "b", "c"), HEIGHT, WIDTH),
        *("letterbox", None, None, "run", "export"),
        multi=options.get("multi", False),
    )
    model = (lambda images, training: images) if options["task"] == "segmentation" else mean_color
    module = ServedModel(FlippedMean(model, spec), spec)
    folder = str(tmp_path_factory.mktemp("model") / "saved")
    tf.saved_model.save(module, folder, signatures=module.signatures())
    loaded = load_saved_model(folder)
    # The signatures do not keep the model.
    yield loaded.signatures, outputs
    del loaded


def test_sound_images_are_answered_one_by_one_as_together(served):
    signatures, names = served
    together = signatures["serving_default"](image_bytes=tf.constant(GOOD))
    partial = signatures["partial"](image_bytes=tf.constant(GOOD))
    assert partial.pop("readable").numpy().tolist() == [1] * len(GOOD)
    assert sorted(together) == sorted(partial) == sorted(names)
    for name, values in together.items():
        alone = [signatures["serving_default"](image_bytes=tf.constant([image]))[name].numpy()[0] for image in GOOD]
        np.testing.assert_array_equal(values.numpy(), np.stack(alone))
        np.testing.assert_array_equal(values.numpy(), partial[name].numpy())


@pytest.mark.parametrize("damage", BAD)
def test_a_damaged_image_is_named_by_its_position_and_the_others_are_answered(served, damage):
    signatures, _ = served
    for place in (0, 4, len(GOOD)):
        images = tf.constant([*GOOD[:place], BAD[damage], *GOOD[place:]])
        with pytest.raises(tf.errors.InvalidArgumentError, match=rf"counted from 0, are not JPEG or PNG.*\[{place}\]"):
            signatures["serving_default"](image_bytes=images)
        found = {name: value.numpy() for name, value in signatures["partial"](image_bytes=images).items()}
        assert np.flatnonzero(found["readable"] == 0).tolist() == [place]
        whole = signatures["serving_default"](image_bytes=tf.constant(GOOD))
        for name, values in whole.items():
            np.testing.assert_array_equal(np.delete(found[name], place, 0), values.numpy())
            empty = {"probabilities": np.nan, "labels": b""}.get(name, 0)
            np.testing.assert_array_equal(found[name][place], np.full_like(found[name][place], empty))


def test_all_positions_are_named_and_a_request_of_damaged_images_only_is_answered(served):
    signatures, _ = served
    bad = list(BAD.values())
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"\[1 3\]"):
        signatures["serving_default"](image_bytes=tf.constant([JPEG, bad[0], PNG, bad[5]]))
    assert not signatures["partial"](image_bytes=tf.constant(bad))["readable"].numpy().any()


@pytest.mark.parametrize("signature", ["serving_default", "partial"])
def test_a_request_without_images_is_refused(served, signature):
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"the request has no image\. Send one or more"):
        served[0][signature](image_bytes=tf.constant([], tf.string))


def test_to_pass_over_damaged_images_costs_sound_ones_nothing():
    """Beside a loop that decodes without any check; in processor time, of several tries the shortest."""
    photo = encoded("JPEG", np.asarray(Image.fromarray(PIXELS).resize((1024, 768))))
    shape = (224, 224, 3)

    def resized(data):
        return tf_ops.decode_resized(data, *shape[:2], "stretch")

    ways = [
        lambda batch: tf.map_fn(resized, batch, fn_output_signature=tf.uint8),
        lambda batch: decode_each(batch, resized, shape)[0],
    ]
    signature = [tf.TensorSpec([None], tf.string)]
    functions = [tf.function(way, input_signature=signature, autograph=False) for way in ways]
    batch, taken = tf.constant([photo] * 16), ([], [])
    np.testing.assert_array_equal(*(function(batch).numpy() for function in functions))
    for _ in range(8):
        for function, times in zip(functions, taken, strict=True):
            start = time.process_time()
            function(batch)
            times.append(time.process_time() - start)
    assert min(taken[1]) < 1.25 * min(taken[0])
