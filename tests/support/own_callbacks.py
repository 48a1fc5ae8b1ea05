"""Keras callbacks as users write them, right and wrong; named by `trainer.callbacks: own_callbacks:<function>`."""

import json
from pathlib import Path

import keras
import numpy as np


class Recorder(keras.callbacks.Callback):
    """Writes what is called, and ends the training after an epoch."""

    def __init__(self, folder, last):
        super().__init__()
        self._file, self._last = Path(folder, "called.jsonl"), last

    def _note(self, method, number, logs=None):
        weights = float(sum(np.abs(np.array(v)).sum() for v in self.model.trainable_variables))
        row = {"method": method, "number": number, "logs": logs, "weights": weights, "params": self.params}
        with self._file.open("a") as file:
            file.write(json.dumps(row) + "\n")

    def on_train_begin(self, logs=None):
        self._note("on_train_begin", None)

    def on_epoch_begin(self, epoch, logs=None):
        self._note("on_epoch_begin", epoch)

    def on_train_batch_end(self, batch, logs=None):
        self._note("on_train_batch_end", batch, logs)

    def on_epoch_end(self, epoch, logs=None):
        self._note("on_epoch_end", epoch, logs)
        self.model.stop_training = epoch == self._last

    def on_train_end(self, logs=None):
        self._note("on_train_end", None, logs)


class Breaks(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        raise RuntimeError("no such server")


def recorded(folder, epochs, **others):
    assert {"steps_per_epoch", "task", "classes"} == set(others)
    return [Recorder(folder, last=1), keras.callbacks.CSVLogger(f"{folder}/epochs.csv")]


def breaks():
    return [Breaks()]


def fails(task):
    raise ValueError(f"nothing for {task}")


def numbers():
    return [1, 2]
