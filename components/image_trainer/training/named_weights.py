"""Weights and the state of an optimizer as named arrays: between Keras's variables and a checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from shardwright.components.image_trainer.training.checkpoints import Arrays
from shardwright.errors import ShardwrightError

_GROUPS = ("weights", "state", "optimizer")


def variables(model: Any, optimizer: Any) -> dict[str, list[Any]]:
    """Returns the variables of a training by their groups."""
    groups = (model.trainable_variables, model.non_trainable_variables, optimizer.variables)
    return dict(zip(_GROUPS, groups, strict=True))


def named(group: str, index: int) -> str:
    """Returns the name of a variable in a checkpoint: Keras' own depend on how many models a process has built."""
    return f"{group}/{index:05d}"


def arrays_of(groups: Mapping[str, list[Any]]) -> Arrays:
    """Returns the numbers of variables, as in a checkpoint; bfloat16, which NumPy lacks, becomes float32."""
    # NumPy 2 warns of a Keras variable that it is to copy itself.
    arrays = {named(group, i): np.asarray(v).copy() for group, members in groups.items() for i, v in enumerate(members)}
    return {name: a.astype(np.float32) if a.dtype.kind == "V" else a for name, a in arrays.items()}


def assign(model: Any, optimizer: Any, arrays: Arrays) -> None:
    """Sets the variables of a training to those of a checkpoint.

    Raises:
        ShardwrightError: the arrays are of another model.
    """
    for group, members in variables(model, optimizer).items():
        for index, variable in enumerate(members):
            array = arrays.get(named(group, index))
            if array is None or tuple(array.shape) != tuple(variable.shape):
                raise ShardwrightError(f"the checkpoint does not fit the model at {variable.path}. Delete it.")
            variable.assign(array.astype(variable.dtype))


def set_weights(model: Any, arrays: Arrays) -> None:
    """Sets the variables of a model, without an optimizer, to those of a checkpoint."""
    for group, members in zip(_GROUPS, (model.trainable_variables, model.non_trainable_variables), strict=False):
        for index, variable in enumerate(members):
            variable.assign(arrays[named(group, index)].astype(variable.dtype))


def weights_of(arrays: Arrays) -> Arrays:
    """Returns the model's part of a state."""
    return {name: array for name, array in arrays.items() if not name.startswith("optimizer/")}
