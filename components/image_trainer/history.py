"""`history.json`: the loss curve of a training and what every epoch reached on the evaluation split."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from shardwright.components.json_records import read_record, write_record

HISTORY_FILE = "history.json"


@dataclass(frozen=True)
class History:
    """A finished training.

    Attributes:
        fingerprint: of the training.
        parameters: number of trained numbers in the model.
        steps_per_epoch: batches of an epoch.
        eval_split: split that chose the best epoch; empty: the last one was kept.
        best_epoch: the epoch whose weights were kept, from 1.
        loss: mean training loss of every epoch.
        evaluation: metrics of every epoch over the whole evaluation split; empty without one.
    """

    fingerprint: str
    parameters: int
    steps_per_epoch: int
    eval_split: str
    best_epoch: int
    loss: list[float]
    evaluation: list[dict[str, float]]


def write_history(folder: str | os.PathLike[str], history: History) -> None:
    """Writes `history.json` into the folder of a training."""
    write_record(Path(folder, HISTORY_FILE), history)


def read_history(folder: str | os.PathLike[str]) -> History:
    """Reads the history of a training, e.g. from the Trainer's `model_run`.

    Raises:
        DatasetError: there is none in that folder.
    """
    return read_record(Path(folder, HISTORY_FILE), History, "history", "Run the Trainer again.")
