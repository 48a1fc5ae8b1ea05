"""The worker of `checked_model`: builds the model of a training, with the weights that it would begin with.

KERAS_BACKEND=tensorflow python -m shardwright.components.image_trainer.check_worker --spec FILE
"""

from __future__ import annotations

from shardwright.components.image_trainer import worker
from shardwright.components.image_trainer.spec import TrainSpec


def check(spec: TrainSpec) -> None:
    """Builds it, and lets go of it.

    Raises:
        UsageError: a model of the user's is not as asked for, or weights are of another architecture.
    """
    from shardwright.components.image_trainer.building import model_of
    from shardwright.components.image_trainer.warm_start import begin_with

    model = model_of(spec)
    if spec.warm_from:
        begin_with(model, spec.warm_from)


if __name__ == "__main__":
    worker.main(check)
