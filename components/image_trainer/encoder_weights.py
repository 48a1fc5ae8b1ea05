"""Weights of an encoder out of a file: a `.keras` model, Keras 3's `.weights.h5`, or the older `.h5` of layers."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import keras
import numpy as np

from shardwright.errors import UsageError
from shardwright.storage import read_bytes
from shardwright_components.image_trainer.warm_start import difference

Named = list[tuple[str, Any]]


def load_encoder_weights(encoder: keras.Model, path: str, name: str) -> None:
    """Sets an encoder's weights.

    Args:
        encoder: of `encoders.build_encoder`.
        path: file or URL, `.keras`, `.weights.h5` or `.h5`; what it holds beyond the encoder, a classifier's top, is
            left alone.
        name: the encoder's name, for messages.

    Raises:
        UsageError: the file cannot be read, or holds weights of another architecture; names the first differing ones.
    """
    suffix = next(s for s in (".weights.h5", ".h5", ".keras") if path.endswith(s))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, f"file{suffix}")
        try:
            file.write_bytes(read_bytes(path))
            if suffix == ".weights.h5":
                pairs = _matched(encoder, file, Path(folder))
            else:
                stored = _of_model(file) if suffix == ".keras" else _of_layers(file)
                pairs = _in_order(encoder), stored
        except Exception as error:
            # h5py and Keras tell a broken file by errors of any kind.
            raise UsageError(
                f"trainer.weights: {path} cannot be read as weights ({error}). Give another file."
            ) from None
    wanted, stored = pairs
    stored = stored[: len(wanted)]
    found = difference(_shapes(wanted), _shapes(stored))
    if found:
        raise UsageError(
            f"trainer.weights: {os.path.basename(path)} holds weights of another architecture than {name}: {found}. "
            "Give weights of this encoder, or set trainer.encoder to theirs."
        )
    for (_, variable), (_, value) in zip(wanted, stored, strict=True):
        variable.assign(value)


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


def _matched(encoder: keras.Model, file: Path, folder: Path) -> tuple[Named, Named]:
    """By the paths in the file, which has no order: those that the encoder's own weights get when they are written."""
    import h5py

    own = folder / "own.weights.h5"
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
