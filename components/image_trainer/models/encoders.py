"""Pretrained encoders: EfficientNetV2 (Tan and Le, 2021) with a U-Net's decoder, or as a classifier.

The architecture is that of Keras, built without weights. The weights come from a file, local or on a bucket: a `.keras`
model, Keras 3's `.weights.h5`, or the older `.h5` of layers. Nothing is ever downloaded. The weights that Keras
publishes for B0 to B3 expect the pixels of `loader.normalize: imagenet_torch`.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import keras
import numpy as np
from keras import layers

from shardwright.components.image_trainer.models.compact import ModelShape, deeplab_on, image_model, padded, unet_on
from shardwright.components.image_trainer.models.text_inputs import added_to_map, model_inputs
from shardwright.components.image_trainer.training.warm_start import difference
from shardwright.components.model_files.keras_file import check_hdf5, check_keras_file, load_keras_model
from shardwright.config.trainer import COMPACT, ENCODERS
from shardwright.errors import DatasetError, UsageError
from shardwright.storage import read_bytes

_STRIDES = (2, 4, 8, 16, 32)
_SMALLEST = _STRIDES[-1]
# Names and numbers, or variables, in the order of a model.
Named = list[tuple[str, Any]]


def build_encoder(name: str, height: int, width: int) -> keras.Model:
    """Returns an encoder with random weights.

    Args:
        name: one of `config.trainer.ENCODERS` but `compact`.
        height: rows of its images, a multiple of 32.
        width: columns of its images, a multiple of 32.

    Returns:
        A model of float32 [B, height, width, 3] to the last feature map, [B, height / 32, width / 32, C].
    """
    architecture = getattr(keras.applications, f"EfficientNetV2{name.rpartition('-')[2].upper()}")
    # `weights=None`: Keras would download its own otherwise.
    return architecture(include_top=False, weights=None, input_shape=(height, width, 3), include_preprocessing=False)


def other_encoders(name: str) -> dict[str, Callable[[], keras.Model]]:
    """Returns functions that build the other members of an encoder's family."""
    return {
        other: partial(build_encoder, other, _SMALLEST, _SMALLEST) for other in ENCODERS if other not in (name, COMPACT)
    }


def padded_side(side: int) -> int:
    """Returns the side of an image, padded for an encoder."""
    return side + -side % _STRIDES[-1]


def segmenter(encoder: keras.Model, shape: ModelShape, *, deeplab: bool = False) -> keras.Model:
    """Builds a decoder on an encoder's feature maps: float32 [B, height, width, 3] to probabilities of the classes.

    Args:
        encoder: of `build_encoder`, for the padded size.
        shape: the sizes; `filters` are those of the decoder's last level, at half the resolution.
        deeplab: DeepLabV3+'s decoder instead of a U-Net's.
    """
    padding = _padding(encoder, shape)
    features = keras.Model(encoder.input, _feature_maps(encoder), name="encoder")
    image, text, inputs = model_inputs(shape.height, shape.width, shape.words)
    *skips, x = features(padded(image, padding))
    x = added_to_map(x, text, shape.words, shape.filters)
    if deeplab:
        return deeplab_on(skips[1], x, inputs, padding, shape)
    return unet_on([*skips, x], inputs, padding, shape)


def classifier(encoder: keras.Model, shape: ModelShape) -> keras.Model:
    """Builds a classifier: float32 [B, height, width, 3] to [B, classes]."""
    image, text, inputs = model_inputs(shape.height, shape.width, shape.words)
    x = keras.Model(encoder.input, encoder.output, name="encoder")(padded(image, _padding(encoder, shape)))
    return image_model(inputs, layers.GlobalAveragePooling2D()(x), text, shape)


def _padding(encoder: keras.Model, shape: ModelShape) -> tuple[int, int]:
    return encoder.input_shape[1] - shape.height, encoder.input_shape[2] - shape.width


def _feature_maps(encoder: keras.Model) -> list[Any]:
    """Returns the last feature map of every resolution; for the lowest one the encoder's output."""
    _, height, width, _ = encoder.input_shape
    wanted = {(height // stride, width // stride): stride for stride in _STRIDES[:-1]}
    found = {}
    for layer in encoder.layers:
        shape: tuple[Any, ...] = tuple(getattr(layer.output, "shape", ()))
        if len(shape) == 4 and shape[1:3] in wanted:
            found[wanted[shape[1], shape[2]]] = layer.output
    return [*(found[stride] for stride in _STRIDES[:-1]), encoder.output]


def load_encoder_weights(
    encoder: keras.Model, path: str, name: str, others: Mapping[str, Callable[[], keras.Model]] | None = None
) -> None:
    """Sets an encoder's weights.

    Args:
        encoder: of `encoders.build_encoder`.
        path: file or URL, `.keras`, `.weights.h5` or `.h5`; further weights in it, such as a classifier's top, are
            ignored.
        name: the encoder's name, for messages.
        others: other encoders by their names, to name the one that weights of another architecture belong to.

    Raises:
        DatasetError: the file contains more than layers and weights.
        UsageError: the file cannot be read, or has weights of another architecture; names the first differing ones.
    """
    suffix = next(s for s in (".weights.h5", ".h5", ".keras") if path.endswith(s))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, f"file{suffix}")
        try:
            file.write_bytes(read_bytes(path))
            if suffix == ".keras":
                check_keras_file(file, path)
            else:
                check_hdf5(file, path)
            wanted, stored = _pairs(encoder, file)
        except DatasetError:
            raise
        except Exception as error:
            # h5py and Keras raise errors of any kind for a broken file.
            raise UsageError(
                f"trainer.weights: {path} cannot be read as weights ({error}). Give another file."
            ) from None
        found = difference(_shapes(wanted), _shapes(stored))
        if found:
            pairs = ((other, _pairs(build(), file)) for other, build in (others or {}).items())
            theirs = next((other for other, pair in pairs if not difference(*map(_shapes, pair))), "")
            kind = f"weights of {theirs}, not of {name}" if theirs else f"weights of another architecture than {name}"
            change = f"set trainer.encoder: {theirs}" if theirs else "set trainer.encoder to theirs"
            raise UsageError(
                f"trainer.weights: {os.path.basename(path)} has {kind}: {found}. "
                f"Give weights of this encoder, or {change}."
            )
    for (_, variable), (_, value) in zip(wanted, stored, strict=True):
        variable.assign(value)


def _pairs(encoder: keras.Model, file: Path) -> tuple[Named, Named]:
    """Returns an encoder's weights, and those of a file in the same order."""
    if file.name.endswith(".weights.h5"):
        return _matched(encoder, file)
    wanted = _in_order(encoder)
    if file.suffix == ".keras":
        stored = [(name, np.asarray(weight)) for name, weight in _in_order(load_keras_model(file))]
    else:
        stored = _of_layers(file)
    return wanted, stored[: len(wanted)]


def _in_order(model: keras.Model) -> Named:
    return [(f"{layer.name}/{weight.name}", weight) for layer in model.layers for weight in layer.weights]


def _of_layers(file: Path) -> Named:
    """Reads the layout of Keras 1 and 2: groups of layers, in the order of an attribute, and the names of weights."""
    import h5py

    found: Named = []
    with h5py.File(file, "r") as content:
        root = content["model_weights"] if "layer_names" not in content.attrs else content
        for layer in (_text(name) for name in root.attrs["layer_names"]):
            for weight in (_text(name) for name in root[layer].attrs["weight_names"]):
                found.append((f"{layer}/{weight.rpartition('/')[2].partition(':')[0]}", root[layer][weight][()]))
    return found


def _matched(encoder: keras.Model, file: Path) -> tuple[Named, Named]:
    """Matches weights by their paths, since the file has no order; writing the encoder's weights shows its paths."""
    import h5py

    own = file.with_name("own.weights.h5")
    # Every weight is replaced by its number, which is then found at its path.
    before = encoder.get_weights()
    encoder.set_weights([np.full(value.shape, number, value.dtype) for number, value in enumerate(before)])
    encoder.save_weights(own)
    encoder.set_weights(before)
    stored, places = _datasets(h5py, file), _datasets(h5py, own)
    paths = {int(value.flat[0]): path for path, value in places.items() if value.size}
    wanted = [(paths[number], weight) for number, weight in enumerate(encoder.weights)]
    missing = [path for path in sorted(stored) if path not in places]
    found: Named = [
        (path, stored[path]) if path in stored else (missing.pop(0) if missing else "", np.zeros(0))
        for path, _ in wanted
    ]
    return wanted, found


def _datasets(h5py: Any, file: Path) -> dict[str, Any]:
    found: dict[str, Any] = {}
    with h5py.File(file, "r") as content:
        content.visititems(
            lambda path, item: found.update({path: item[()]}) if isinstance(item, h5py.Dataset) else None
        )
    return {path: value for path, value in found.items() if "optimizer" not in path}


def _shapes(named: Named) -> list[tuple[str, tuple[int, ...]]]:
    return [(name, tuple(value.shape)) for name, value in named]


def _text(name: Any) -> str:
    return name.decode() if isinstance(name, bytes) else str(name)
