"""The records of a finished training.

`history.json` has the loss curve, and the metrics of every epoch on the evaluation split. `training.json` adds the
machine, the speed and the versions, for people and reports.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shardwright.components.image_trainer.training.checkpoints import Arrays
from shardwright.components.image_trainer.training.training_progress import Progress
from shardwright.components.runtime.artifacts import read_record
from shardwright.errors import DatasetError
from shardwright.evaluation.figures import Measured
from shardwright.storage.checksum import new_checksum

HISTORY_FILE, SUMMARY_FILE = "history.json", "training.json"


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
        measured: what these are of, as `shardwright.evaluation.figures.Measured.to_dict` returns it; empty without one.
    """

    fingerprint: str
    parameters: int
    steps_per_epoch: int
    eval_split: str
    best_epoch: int
    loss: list[float]
    evaluation: list[dict[str, float]]
    measured: dict[str, Any]


def read_history(folder: str | os.PathLike[str]) -> History:
    """Reads the history of a training, e.g. from the Trainer's `model_run`.

    Raises:
        DatasetError: the folder does not contain one.
    """
    found = read_record(Path(folder, HISTORY_FILE), History, "history", "Run the Trainer again.")
    try:
        if found.evaluation:
            Measured.from_dict(found.measured)
    except ValueError as error:
        raise DatasetError(
            f"{Path(folder, HISTORY_FILE)}: no readable history ({error}). Run the Trainer again."
        ) from None
    return found


@dataclass(frozen=True)
class TrainingSummary:
    """A finished training, with all that may differ between two runs of it, in contrast to `history.json`.

    Attributes:
        fingerprint: of the training.
        accelerator: `cpu`, `gpu` or `tpu`.
        device: its kind, in the backend's words.
        backend: `tensorflow` or `jax`.
        hosts: number of hosts.
        devices: devices of all hosts.
        batch_size: images of a batch of all of them.
        compilations: how often the training step was compiled on this host.
        step_bytes: estimated memory of a step on one device.
        warm_start: BLAKE3 of the file of initial weights; empty: random ones.
        resumed: steps at which it was resumed from a checkpoint.
        epochs: per epoch `epoch`, `loss`, `metrics` and what they are of in `measured`, and the fields of `Rate`.
        best_epoch: the one whose weights were kept, from 1.
        stopped_early: whether it ended because no further epoch was better, see `patience`.
        weights: BLAKE3 of the weights that were kept.
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


def epoch_rows(progress: Progress, measured: dict[str, Any]) -> list[dict[str, Any]]:
    """Returns the rows of `TrainingSummary.epochs`; `measured` is that of `History`."""
    return [
        {
            "epoch": number + 1,
            "loss": loss,
            "metrics": progress.evaluations[number] if progress.evaluations else {},
            "measured": measured,
            **vars(progress.rates[number]),
        }
        for number, loss in enumerate(progress.losses)
    ]


def weights_digest(arrays: Arrays) -> str:
    """Returns the BLAKE3 over names, types and numbers."""
    digest = new_checksum()
    for name, array in sorted(arrays.items()):
        digest.update(f"{name} {array.dtype.str} {list(array.shape)}\n".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def read_summary(folder: str | os.PathLike[str]) -> TrainingSummary:
    """Reads `training.json`.

    Raises:
        DatasetError: the folder does not contain one.
    """
    return read_record(Path(folder, SUMMARY_FILE), TrainingSummary, "summary", "Run the Trainer again.")
