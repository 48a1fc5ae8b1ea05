"""Beginning with the weights of an earlier training instead of random ones."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

from shardwright.errors import UsageError
from shardwright.storage import hash_file, is_remote, read_bytes

# Where an exported model keeps what it was made from: TensorFlow leaves that folder of a SavedModel to its writers.
KEPT_MODEL = "assets.extra/model.keras"
# Says where the weights of `trainer.warm_start: PATH` lie; the recipe holds only what they are.
WARM_START_VARIABLE = "SHARDWRIGHT_WARM_START"
# The same of the weights of an encoder, `trainer.weights`.
WEIGHTS_VARIABLE = "SHARDWRIGHT_ENCODER_WEIGHTS"
_PLACES = ("", KEPT_MODEL, "model.keras")
_SHOWN = 4
_OF_WORDS = "words_"


def weights_file(path: str) -> tuple[str, str]:
    """The file of weights that a path means: itself, or that of an exported model or of a training's folder.

    Args:
        path: a file or a folder of this machine, or a file on an object store.

    Returns:
        The file, and its SHA-256.

    Raises:
        UsageError: there is none.
    """
    files = [path] if is_remote(path) else [os.path.join(path, place) if place else path for place in _PLACES]
    for file in files:
        found = hash_file(file)
        if found is not None:
            return file, found.sha256.hex()
    raise UsageError(
        f"trainer.warm_start: {path} is no file, and no model of shardwright's lies there. Give model.keras of a "
        "training, or the folder of a pushed model."
    )


def begin_with(model: Any, file: str) -> bool:
    """Sets a model's weights to those of a file.

    Args:
        model: a built Keras model.
        file: a `.keras` file.

    Returns:
        Whether all of them: a layer that reads words keeps its own where it was taught another vocabulary.

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
    found = difference([_told(w) for w in model.weights], [_told(w) for w in other.weights])
    if found:
        raise UsageError(
            f"trainer.warm_start: {file} holds weights of another architecture, {_architecture(other)}, and the "
            f"configuration asks for {_architecture(model)}: {found}. Use the same model, width, encoder and classes, "
            "or trainer.warm_start: none."
        )
    # By its name such a layer is that of its words, see `texts.Words`.
    strange = {layer.name for layer in model.layers if layer.name.startswith(_OF_WORDS)}
    strange -= {layer.name for layer in other.layers}
    own = {id(weight) for layer in model.layers if layer.name in strange for weight in layer.weights}
    for mine, theirs in zip(model.weights, other.weights, strict=True):
        if id(mine) not in own:
            mine.assign(theirs)
    return not own


def difference(wanted: Sequence[tuple[str, tuple[int, ...]]], given: Sequence[tuple[str, tuple[int, ...]]]) -> str:
    """In which weights two models differ, in words; empty where they have the same shapes in the same order.

    Args:
        wanted: name and shape of every weight of the model.
        given: the same of the other one.
    """
    different = [
        f"{_shown(mine)} here, {_shown(theirs)} there"
        for mine, theirs in zip_longest(wanted, given)
        if mine is None or theirs is None or mine[1] != theirs[1]
    ]
    more = f"; and {len(different) - _SHOWN} more" if len(different) > _SHOWN else ""
    return "; ".join(different[:_SHOWN]) + more


def _architecture(model: Any) -> str:
    """What a model is, in words; its outputs are as many as its classes."""
    channels = model.output_shape[-1]
    return f"{model.name} of {model.count_params():,} weights and {channels} outputs"


def _told(weight: Any) -> tuple[str, tuple[int, ...]]:
    return str(weight.path), tuple(weight.shape)


def _shown(weight: tuple[str, tuple[int, ...]] | None) -> str:
    return f"{weight[0]} {list(weight[1])}" if weight else "nothing"
