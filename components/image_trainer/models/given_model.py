"""A Keras model object as the start of a training: it goes to the workers as a file, and its digest into the recipe.

A worker is another process, perhaps with another backend of Keras, and cannot import what a notebook defines. So the
model must consist of Keras' own layers, which is what `check_keras_file` allows; what it was compiled with is left out.

The digest has two halves: of the layers with their options, without the names that Keras gave them (a second model of a
notebook has `conv2d_3` where the first has `conv2d`), and of the initial weights. A training continues, or is found,
where both are the same.
"""

from __future__ import annotations

import json
import tempfile
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from shardwright.components.image_trainer.training.history import weights_digest
from shardwright.components.model_files.keras_file import ARCHITECTURE, check_keras_file
from shardwright.config import Config, TrainerConfig
from shardwright.config.trainer import DIGEST
from shardwright.errors import DatasetError, UsageError
from shardwright.storage.fingerprint import fingerprint
from shardwright.storage.own_names import make_own_folder
from shardwright.storage.whole_files import write_bytes

FILE = "given.keras"
_HALF = 32
_FUNCTION = (
    "Write a function that builds it to a file (%%writefile my_models.py), and give "
    'trainer={"model": "my_models:build"}.'
)
_COMPILED = "compile_config"
# Where an architecture has the names of layers, and numbers that Keras gives to objects.
_NAMES = frozenset(("name", "keras_history", "input_layers", "output_layers", "shared_object_id"))
# Their names are values, such as `mixed_bfloat16`.
_POLICIES = "Policy"


@dataclass(frozen=True)
class GivenModel:
    """A model object.

    Attributes:
        name: its digest, which stands for it as `trainer.model`.
        content: its `.keras` file.
    """

    name: str
    content: bytes

    @classmethod
    def of(cls, model: Any) -> GivenModel:
        """Takes a built `keras.Model` of Keras' own layers, compiled or not.

        Raises:
            UsageError: it is not such a model.
        """
        import keras

        if not isinstance(model, keras.Model):
            kind = f"{type(model).__module__}.{type(model).__name__}".removeprefix("builtins.")
            raise UsageError(f"model: is of the type {kind}, not keras.Model of Keras {keras.__version__}. {_FUNCTION}")
        if not model.built or not getattr(model, "inputs", None):
            raise UsageError(f"model: {model.name} has no shapes yet. Begin it with keras.Input((height, width, 3)).")
        with tempfile.TemporaryDirectory() as made:
            saved, plain = Path(made, "saved.keras"), Path(made, FILE)
            try:
                model.save(saved)
                architecture = _without_compilation(saved, plain)
                check_keras_file(plain, f"model: {model.name}", registered=False)
            except DatasetError as error:
                problem = str(error).partition(", which may run code")[0]
                raise UsageError(
                    f"{problem}, and the process that trains has Keras' own layers only. {_FUNCTION}"
                ) from None
            except Exception as error:
                # Keras raises errors of many kinds for a model that cannot be saved.
                problem = (str(error).strip() or type(error).__name__).splitlines()[0][:200]
                raise UsageError(f"model: {model.name} cannot be saved ({problem}). Use Keras' own layers.") from None
            content = plain.read_bytes()
        weights = weights_digest({f"{number:05d}": np.asarray(weight) for number, weight in enumerate(model.weights)})
        return cls(DIGEST + fingerprint(_nameless(architecture, {}))[:_HALF] + weights[:_HALF], content)

    def into(self, config: Config) -> Config:
        """Returns a configuration whose model it is.

        Raises:
            UsageError: the configuration names another model, or what the layers of a model decide.
        """
        trainer = config.trainer
        if trainer.model not in ("auto", self.name):
            raise UsageError(f"model: trainer.model is {trainer.model!r}, too. Give one of them.")
        if trainer.precision != TrainerConfig.precision:
            policy = 'keras.config.set_dtype_policy("mixed_bfloat16")'
            raise UsageError(
                f"trainer.precision: {trainer.precision}, but the layers of the model have theirs. Remove it, and call "
                f"{policy} before you build the model."
            )
        return replace(config, trainer=replace(trainer, model=self.name))

    def has_other_weights(self, before: str) -> bool:
        """Returns whether another `name` is of a model with the same layers and other weights."""
        half = len(DIGEST) + _HALF
        return before != self.name and before[:half] == self.name[:half]

    def write(self, folder: Path) -> str:
        """Writes the file into the folder of its training, which is made; returns its path."""
        make_own_folder(folder)
        write_bytes(folder / FILE, self.content)
        return str(folder / FILE)


def _without_compilation(saved: Path, plain: Path) -> Any:
    """Copies a `.keras` file without what its models were compiled with; returns the architecture."""
    with zipfile.ZipFile(saved) as source, zipfile.ZipFile(plain, "w") as target:
        for name in source.namelist():
            content = source.read(name)
            if name == ARCHITECTURE:
                architecture = _uncompiled(json.loads(content))
                content = json.dumps(architecture).encode()
            target.writestr(name, content)
    return architecture


def _uncompiled(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _uncompiled(inner) for key, inner in value.items() if key != _COMPILED}
    return [_uncompiled(inner) for inner in value] if isinstance(value, list) else value


def _nameless(value: Any, numbers: dict[Any, int], key: str = "", *, policy: bool = False) -> Any:
    """Returns an architecture with numbers in the order of their first place for the names that Keras gives."""
    if isinstance(value, Mapping):
        policy = str(value.get("class_name", "")).endswith(_POLICIES)
        return {inner: _nameless(one, numbers, inner, policy=policy) for inner, one in value.items()}
    if isinstance(value, list):
        return [_nameless(one, numbers, key) for one in value]
    if key in _NAMES and not policy and value is not None:
        return numbers.setdefault(value, len(numbers))
    return value
