"""Initial weights from an earlier training instead of random ones."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from shardwright.components.model_files.keras_file import load_keras_model
from shardwright.errors import DatasetError, UsageError
from shardwright.storage import hash_file, is_remote, read_bytes
from shardwright.untrusted.json_text import parse_untrusted_json

# An exported model keeps its Keras model here: TensorFlow reserves `assets.extra` of a SavedModel for users.
KEPT_MODEL = "assets.extra/model.keras"
# Environment variable with the path of `trainer.warm_start`; the recipe has only the digest.
WARM_START_VARIABLE = "SHARDWRIGHT_WARM_START"
# The same for the weights of an encoder, `trainer.weights`.
WEIGHTS_VARIABLE = "SHARDWRIGHT_ENCODER_WEIGHTS"
_PLACES = ("", KEPT_MODEL, "model.keras")
# Files with the names of the classes: in an exported model, and in a training's folder.
_CLASSES = "assets/classes.json"
_SPEC = "spec.json"
_SHOWN = 4
_SHOWN_CLASSES = 20
# The layer with an output for each class, of all models but custom ones.
_SCORES = "scores"
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


def begin_with(model: Any, file: str, classes: Sequence[str] = (), *, own: bool = False) -> tuple[str, ...]:
    """Sets a model's weights to those of a file; the outputs are matched by the names of their classes.

    Args:
        model: a built Keras model.
        file: a `.keras` file.
        classes: names of the classes, in the order of the outputs.
        own: whether the model is of the user: then it is not known which layer has an output for each class.

    Returns:
        Notes about classes that differ or are not known, and about words if the vocabulary differs.

    Raises:
        DatasetError: the file contains more than layers and weights.
        UsageError: the file cannot be read, its model is of another architecture, or its classes differ and it is own.
    """
    try:
        with tempfile.TemporaryDirectory() as folder:
            local = Path(folder, "model.keras")
            local.write_bytes(read_bytes(file))
            other = load_keras_model(local, file)
    except DatasetError:
        raise
    except Exception as error:
        raise UsageError(f"trainer.warm_start: {file} cannot be read ({error}). Give model.keras.") from None
    named = earlier_classes(file)
    before = named or tuple(classes)
    changed = before != tuple(classes)
    if own and changed:
        raise UsageError(
            f"trainer.warm_start: {file} has the classes {', '.join(before)}, and the data has {', '.join(classes)}. "
            "Which weights of a custom model belong to a class is not known. Use the same classes, or "
            "trainer.warm_start: none."
        )
    # Only these weights have another shape for other classes.
    outputs = {id(w) for layer in model.layers if changed and layer.name == _SCORES for w in layer.weights}
    found = difference(
        [_shape(w, len(before) if id(w) in outputs else None) for w in model.weights],
        [_shape(w) for w in other.weights],
    )
    if found:
        raise UsageError(
            f"trainer.warm_start: {file} has weights of another architecture, {_architecture(other)}, and the "
            f"configuration asks for {_architecture(model)}: {found}. Use the same model, width, encoder and classes, "
            "or trainer.warm_start: none."
        )
    # The name of such a layer contains the digest of its vocabulary, see `text_inputs.Words`.
    unmatched = {x.name for x in model.layers if x.name.startswith(_OF_WORDS)} - {x.name for x in other.layers}
    kept = {id(weight) for layer in model.layers if layer.name in unmatched for weight in layer.weights}
    for mine, theirs in zip(model.weights, other.weights, strict=True):
        if id(mine) in outputs:
            mine.assign(_by_name(mine, theirs, classes, before))
        elif id(mine) not in kept:
            mine.assign(theirs)
    notes = [_class_note(classes, before)] if outputs else []
    if classes and named is None:
        notes.append(f"trainer.warm_start: {file} does not name its classes, so their order is taken to be today's")
    if kept:
        notes.append("the vocabulary has changed: the weights of words are learned again")
    return tuple(notes)


def earlier_classes(file: str) -> tuple[str, ...] | None:
    """Returns the names of the classes of a model, in the order of its outputs.

    Args:
        file: its `.keras` file, in an exported model or in the folder of a training.

    Returns:
        The names; `None` for a file without the others of its folder.

    Raises:
        UsageError: an exported model has a damaged list.
    """
    exported = file.endswith(f"/{KEPT_MODEL}")
    place = file.removesuffix(KEPT_MODEL) + _CLASSES if exported else os.path.join(os.path.dirname(file), _SPEC)
    try:
        value = parse_untrusted_json(read_bytes(place))
    except (OSError, ValueError) as error:
        # A file without its folder may be on a bucket where nothing else may be read.
        if exported and not isinstance(error, FileNotFoundError):
            raise UsageError(f"trainer.warm_start: {place} cannot be read ({error}). Restore the model.") from None
        return None
    names = value if exported else value.get("classes") if isinstance(value, dict) else None
    if isinstance(names, list) and names and all(isinstance(name, str) for name in names):
        return tuple(names)
    if exported:
        raise UsageError(f"trainer.warm_start: {place} is not a list of classes. Restore the model.")
    return None


def _by_name(mine: Any, theirs: Any, classes: Sequence[str], before: Sequence[str]) -> npt.NDArray[Any]:
    """Returns weights of the outputs: of the earlier model where it has the class, else the initial ones."""
    # NumPy 2 warns of a Keras variable that it is to copy itself.
    values, earlier = np.asarray(mine).copy(), np.asarray(theirs)
    for at, name in enumerate(classes):
        if name in before:
            values[..., at] = earlier[..., before.index(name)]
    return values


def _class_note(classes: Sequence[str], before: Sequence[str]) -> str:
    """Describes which outputs are those of the earlier model."""
    parts = {
        "kept": [name for name in classes if name in before],
        "new, with initial weights": [name for name in classes if name not in before],
        "gone": [name for name in before if name not in classes],
    }
    more = {what: len(names) - _SHOWN_CLASSES for what, names in parts.items()}
    shown = "; ".join(
        f"{what}: {', '.join(names[:_SHOWN_CLASSES])}{f' and {more[what]} more' if more[what] > 0 else ''}"
        for what, names in parts.items()
        if names
    )
    return f"trainer.warm_start: the classes differ from the earlier model's, so their outputs go by name; {shown}"


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


def _shape(weight: Any, outputs: int | None = None) -> tuple[str, tuple[int, ...]]:
    """Returns the name and shape of a weight; with `outputs`, for that many classes."""
    shape = tuple(weight.shape)
    return str(weight.path), shape if outputs is None else (*shape[:-1], outputs)


def _shown(weight: tuple[str, tuple[int, ...]] | None) -> str:
    return f"{weight[0]} {list(weight[1])}" if weight else "nothing"
