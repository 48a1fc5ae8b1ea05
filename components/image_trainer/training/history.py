"""`history.json`: the loss curve of a training and what every epoch reached on the evaluation split.

`training.json`: what a training was, where it ran, how fast, and what it reached, for people and for reports.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shardwright.components.image_trainer.training.checkpoints import Arrays
from shardwright.components.image_trainer.training.progress import Progress
from shardwright.components.runtime.artifacts import read_record, write_record

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


SUMMARY_FILE = "training.json"


@dataclass(frozen=True)
class TrainingSummary:
    """A finished training. What differs between two runs of the same training is here, not in `history.json`.

    Attributes:
        fingerprint: of the training.
        accelerator: `cpu`, `gpu` or `tpu`.
        device: its kind, as the backend calls it.
        backend: `tensorflow` or `jax`.
        hosts: number of hosts.
        devices: devices of all hosts.
        batch_size: images of a batch of all of them.
        compilations: how often the training step was compiled on this host.
        step_bytes: memory of a step on one device, by estimate.
        warm_start: SHA-256 of the file of weights that it began with; empty: with random ones.
        resumed: steps at which it was taken up again from a checkpoint.
        epochs: per epoch `epoch`, `loss`, `metrics`, `images_per_second`, `input_bound` and `seconds`.
        best_epoch: the one whose weights were kept, from 1.
        stopped_early: whether it ended because no epoch was better for a while.
        weights: SHA-256 of the weights that were kept.
        versions: of the packages.
    """

    fingerprint: str
    accelerator: str
    device: str
    backend: str
    hosts: int
    devices: int
    batch_size: int
    compilations: int
    step_bytes: int
    warm_start: str
    resumed: list[int]
    epochs: list[dict[str, Any]]
    best_epoch: int
    stopped_early: bool
    weights: str
    versions: dict[str, str]


def epoch_rows(progress: Progress) -> list[dict[str, Any]]:
    """Rows for `TrainingSummary.epochs`."""
    return [
        {
            "epoch": number + 1,
            "loss": loss,
            "metrics": progress.evaluations[number] if progress.evaluations else {},
            **vars(progress.rates[number]),
        }
        for number, loss in enumerate(progress.losses)
    ]


def weights_digest(arrays: Arrays) -> str:
    """SHA-256 over names, types and numbers."""
    digest = hashlib.sha256()
    for name, array in sorted(arrays.items()):
        digest.update(f"{name} {array.dtype.str} {list(array.shape)}\n".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def write_summary(folder: str | os.PathLike[str], summary: TrainingSummary) -> None:
    """Writes `training.json` into the folder of a training."""
    write_record(Path(folder, SUMMARY_FILE), summary)


def read_summary(folder: str | os.PathLike[str]) -> TrainingSummary:
    """Reads it.

    Raises:
        DatasetError: there is none in that folder.
    """
    return read_record(Path(folder, SUMMARY_FILE), TrainingSummary, "summary", "Run the Trainer again.")
