"""`training.json`: what a training was, where it ran, how fast, and what it reached, for people and for reports."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shardwright.components.image_trainer.checkpoints import Arrays
from shardwright.components.image_trainer.progress import Progress
from shardwright.components.json_records import read_record, write_record

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
