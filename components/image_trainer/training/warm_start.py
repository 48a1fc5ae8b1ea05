"""Initial weights from an earlier training instead of random ones."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

from shardwright.errors import UsageError
from shardwright.storage import hash_file, is_remote, read_bytes

# An exported model keeps its Keras model here: TensorFlow reserves `assets.extra` of a SavedModel for users.
KEPT_MODEL = "assets.extra/model.keras"
# Environment variable with the path of `trainer.warm_start`; the recipe has only the digest.
WARM_START_VARIABLE = "SHARDWRIGHT_WARM_START"
# The same for the weights of an encoder, `trainer.weights`.
WEIGHTS_VARIABLE = "SHARDWRIGHT_ENCODER_WEIGHTS"
_PLACES = ("", KEPT_MODEL, "model.keras")
_SHOWN = 4
_OF_WORDS = "words_"


def weights_file(path: str) -> tuple[str, str]:
    """Finds the file of weights: the path itself, or the file of an exported model or in a training's folder.

    Args:
        path: a file or a folder on this machine, or a file on an object store.

    Returns:
        The file, and its BLAKE3.

    Raises:
        UsageError: there is no such file.
    """
    files = [path] if is_remote(path) else [os.path.join(path, place) if place else path for place in _PLACES]
    for file in files:
        found = hash_file(file)
        if found is not None:
            return file, found.content_id.hex()
    raise UsageError(
        f"trainer.warm_start: {path} is not a file and does not contain a model of shardwright. Give model.keras of a "
        "training, or the folder of a pushed model."
    )


def begin_with(model: Any, file: str) -> bool:
    """Sets a model's weights to those of a file.

    Args:
        model: a built Keras model.
        file: a `.keras` file.

    Returns:
        True if all weights were set; a layer that reads words keeps its own if the vocabulary differs.

    Raises:
        UsageError: the file cannot be read, or its model is of another architecture; the message shows the difference.
    """
    import keras

    try:
        with tempfile.TemporaryDirectory() as folder:
            local = Path(folder, "model.keras")
            local.write_bytes(read_bytes(file))
            other = keras.saving.load_model(local, compile=False)
    except Exception as error:
        raise UsageError(f"trainer.warm_start: {file} cannot be read ({error}). Give model.keras.") from None
    found = difference([_shape(w) for w in model.weights], [_shape(w) for w in other.weights])
    if found:
        raise UsageError(
            f"trainer.warm_start: {file} has weights of another architecture, {_architecture(other)}, and the "
            f"configuration asks for {_architecture(model)}: {found}. Use the same model, width, encoder and classes, "
            "or trainer.warm_start: none."
        )
    # The name of such a layer contains the digest of its vocabulary, see `text_inputs.Words`.
    unmatched = {layer.name for layer in model.layers if layer.name.startswith(_OF_WORDS)}
    unmatched -= {layer.name for layer in other.layers}
    kept = {id(weight) for layer in model.layers if layer.name in unmatched for weight in layer.weights}
    for mine, theirs in zip(model.weights, other.weights, strict=True):
        if id(mine) not in kept:
            mine.assign(theirs)
    return not kept


def difference(wanted: Sequence[tuple[str, tuple[int, ...]]], given: Sequence[tuple[str, tuple[int, ...]]]) -> str:
    """Describes the weights in which two models differ; empty for the same shapes in the same order.

    Args:
        wanted: name and shape of every weight of the model.
        given: name and shape of every weight of the other model.
    """
    different = [
        f"{_shown(mine)} here, {_shown(theirs)} there"
        for mine, theirs in zip_longest(wanted, given)
        if mine is None or theirs is None or mine[1] != theirs[1]
    ]
    more = f"; and {len(different) - _SHOWN} more" if len(different) > _SHOWN else ""
    return "; ".join(different[:_SHOWN]) + more


def _architecture(model: Any) -> str:
    """Describes a model; it has an output for each class."""
    channels = model.output_shape[-1]
    return f"{model.name} of {model.count_params():,} weights and {channels} outputs"


def _shape(weight: Any) -> tuple[str, tuple[int, ...]]:
    return str(weight.path), tuple(weight.shape)


def _shown(weight: tuple[str, tuple[int, ...]] | None) -> str:
    return f"{weight[0]} {list(weight[1])}" if weight else "nothing"
