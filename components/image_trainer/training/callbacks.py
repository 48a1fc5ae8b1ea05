"""Keras callbacks of the user, called by the training loop.

`trainer.callbacks: package.module:function` names a function that returns a list of `keras.callbacks.Callback`. It may
take any of the keywords `folder` (of the training's results; files written there are in the artifact `model_run`),
`epochs`, `steps_per_epoch`, `task` and `classes`.

Called are `on_train_begin`, `on_epoch_begin`, `on_train_batch_begin`, `on_train_batch_end`, `on_epoch_end` and
`on_train_end`. The logs have `loss`, and at the end of an epoch the metrics of the split `eval` as `val_…`.
`model.stop_training = True` ends the training with its epoch. At `on_epoch_end` the model has the weights that were
evaluated; a callback may read them. Changes of weights or of the learning rate have no effect: the optimizer and its
schedule are options of `trainer`. After an interruption the callbacks are made again, and `on_train_begin` is called
again. The module's source is part of the recipe.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from shardwright.components.image_trainer.spec import TrainSpec
from shardwright.components.runtime.call_user_code import call_function
from shardwright.errors import UsageError

_OPTION = "trainer.callbacks"
# Keras's own methods of a batch call the older ones without `train`.
_BATCH_METHODS = ("on_train_batch_begin", "on_train_batch_end", "on_batch_begin", "on_batch_end")


class CallbackRunner:
    """Calls Keras callbacks.

    Args:
        path: their import path, for messages.
        callbacks: the callbacks; false in a condition if there are none.
        model: the model in training; `None` without callbacks.
    """

    def __init__(self, path: str, callbacks: Sequence[Any], model: Any) -> None:
        self._path, self._callbacks, self._model = path, callbacks, model

    def __bool__(self) -> bool:
        return bool(self._callbacks)

    @property
    def each_batch(self) -> bool:
        """True if a callback does something with every batch."""
        import keras

        usual = keras.callbacks.Callback
        return any(
            getattr(type(callback), name, None) is not getattr(usual, name, None)
            for callback in self._callbacks
            for name in _BATCH_METHODS
        )

    @property
    def stop_training(self) -> bool:
        """True if a callback has asked to end the training."""
        return bool(getattr(self._model, "stop_training", False))

    def call(self, method: str, *arguments: Any) -> None:
        """Calls a method of every callback.

        Raises:
            UsageError: a callback raised an error; the traceback is in the log.
        """
        for callback in self._callbacks:
            try:
                getattr(callback, method)(*arguments)
            except Exception as error:
                # A callback may raise any error.
                raise UsageError(
                    f"{_OPTION}: {self._path}: {type(callback).__name__}.{method} failed "
                    f"({type(error).__name__}: {error}). Correct it, and run again: the training continues from its "
                    "last checkpoint."
                ) from error


NO_CALLBACKS = CallbackRunner("", (), None)


def build_callbacks(
    spec: TrainSpec, model: Any, optimizer: Any, steps_per_epoch: int, note: Callable[[str], None]
) -> CallbackRunner:
    """Calls the user's function and connects its callbacks with the model.

    Args:
        spec: the training.
        model: the model in training.
        optimizer: its optimizer, which callbacks find as `model.optimizer`.
        steps_per_epoch: steps of an epoch.
        note: is told which files the function reads that are not part of its code.

    Raises:
        UsageError: the function cannot be imported, fails, or does not return Keras callbacks.
    """
    import keras

    path = spec.recipe.trainer.callbacks
    if not path:
        return NO_CALLBACKS
    found = call_function(
        path,
        spec.recipe.callbacks_code,
        option=_OPTION,
        own=[spec.output],
        tell=note,
        folder=spec.output,
        epochs=spec.epochs,
        steps_per_epoch=steps_per_epoch,
        task=spec.task,
        classes=spec.classes,
    )
    callbacks = list(found) if isinstance(found, (list, tuple)) else [found]
    for callback in callbacks:
        if not isinstance(callback, keras.callbacks.Callback):
            raise UsageError(
                f"{_OPTION}: {path} returned {type(callback).__name__}. Return a list of keras.callbacks.Callback."
            )
        callback.set_params({"epochs": spec.epochs, "steps": steps_per_epoch, "verbose": 0})
        callback.set_model(model)
    model.optimizer, model.stop_training = optimizer, False
    return CallbackRunner(path, callbacks, model)
