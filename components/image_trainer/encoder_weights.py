"""Weights of an encoder out of a file: a `.keras` model, Keras 3's `.weights.h5`, or the older `.h5` of layers."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import keras
import numpy as np

from shardwright.components.image_trainer.warm_start import difference
from shardwright.errors import UsageError
from shardwright.storage import read_bytes

Named = list[tuple[str, Any]]


def load_encoder_weights(
    encoder: keras.Model, path: str, name: str, others: Mapping[str, Callable[[], keras.Model]] | None = None
) -> None:
    """Sets an encoder's weights.

    Args:
        encoder: of `encoders.build_encoder`.
        path: file or URL, `.keras`, `.weights.h5` or `.h5`; what it holds beyond the encoder, a classifier's top, is
            left alone.
        name: the encoder's name, for messages.
        others: other encoders by their names; the one that the weights are of is named where they do not fit.

    Raises:
        UsageError: the file cannot be read, or holds weights of another architecture; names the first differing ones.
    """
    suffix = next(s for s in (".weights.h5", ".h5", ".keras") if path.endswith(s))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, f"file{suffix}")
        try:
            file.write_bytes(read_bytes(path))
            wanted, stored = _pairs(encoder, file)
        except Exception as error:
            # h5py and Keras tell a broken file by errors of any kind.
            raise UsageError(
                f"trainer.weights: {path} cannot be read as weights ({error}). Give another file."
            ) from None
        found = difference(_shapes(wanted), _shapes(stored))
        if found:
            theirs = next((other for other, build in (others or {}).items() if _fits(build(), file)), "")
            held = f"weights of {theirs}, not of {name}" if theirs else f"weights of another architecture than {name}"
            change = f"set trainer.encoder: {theirs}" if theirs else "set trainer.encoder to theirs"
            raise UsageError(
                f"trainer.weights: {os.path.basename(path)} holds {held}: {found}. "
                f"Give weights of this encoder, or {change}."
            )
    for (_, variable), (_, value) in zip(wanted, stored, strict=True):
        variable.assign(value)


def _pairs(encoder: keras.Model, file: Path) -> tuple[Named, Named]:
    """An encoder's weights, and what a file has in their places."""
    if file.name.endswith(".weights.h5"):
        return _matched(encoder, file)
    wanted, stored = _in_order(encoder), _of_model(file) if file.suffix == ".keras" else _of_layers(file)
    return wanted, stored[: len(wanted)]


def _fits(encoder: keras.Model, file: Path) -> bool:
    return not difference(*(_shapes(named) for named in _pairs(encoder, file)))


def _in_order(model: keras.Model) -> Named:
    return [(f"{layer.name}/{weight.name}", weight) for layer in model.layers for weight in layer.weights]


def _of_model(file: Path) -> Named:
    model = keras.saving.load_model(file, compile=False)
    return [(name, np.asarray(weight)) for name, weight in _in_order(model)]


def _of_layers(file: Path) -> Named:
    """The layout of Keras 1 and 2: groups of layers, in the order of an attribute, with the names of their weights."""
    import h5py

    found: Named = []
    with h5py.File(file, "r") as content:
        root = content["model_weights"] if "layer_names" not in content.attrs else content
        for layer in (_text(name) for name in root.attrs["layer_names"]):
            for weight in (_text(name) for name in root[layer].attrs["weight_names"]):
                found.append((f"{layer}/{weight.rpartition('/')[2].partition(':')[0]}", root[layer][weight][()]))
    return found


def _matched(encoder: keras.Model, file: Path) -> tuple[Named, Named]:
    """By the paths in the file, which has no order: those that the encoder's own weights get when they are written."""
    import h5py

    own = file.with_name("own.weights.h5")
    # Every weight is written as its own number, which tells where it went.
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
