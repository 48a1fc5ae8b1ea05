"""The first worker: trains a model on a transformed dataset and keeps the best epoch.

    python -m shardwright.components.image_trainer.train_worker --spec FILE

On a CPU the same seed, data and machine give the same weights to the last bit, whether the training was interrupted or
not: weights, order, augmentation and the ops are seeded or deterministic. One such process runs on every host.
"""

from __future__ import annotations

import os

from shardwright.components.image_trainer import worker
from shardwright.components.image_trainer.hosts import this_host
from shardwright.components.image_trainer.placement import Machine, place
from shardwright.components.image_trainer.preemption import Preemption
from shardwright.components.image_trainer.spec import TrainSpec


def train(spec: TrainSpec) -> None:
    """Trains, and writes `model.keras`, `history.json`, `training.json` and TensorBoard logs to `spec.output`.

    Raises:
        ShardwrightError: the loss is no number any more, the memory does not do, or the process was told to end.
    """
    preemption = Preemption()
    preemption.listen()
    here = this_host(os.environ, spec.running.hosts)
    placement = place(spec.running.accelerator, here.count, Machine.look(os.environ))
    # Before anything imports Keras or JAX.
    os.environ.update(placement.to_environment(os.environ))

    from shardwright.components.image_trainer.training import run_training

    run_training(spec, placement, here, preemption, worker.send)


if __name__ == "__main__":
    worker.main(train)
