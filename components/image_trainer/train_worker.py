"""The first worker: trains a model on a transformed dataset and keeps the best epoch.

    KERAS_BACKEND=tensorflow python -m shardwright_components.image_trainer.train_worker --spec FILE

The same seed, data and machine give the same loss curve to the last digit: weights, order, augmentation and the ops are
seeded or deterministic.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from shardwright.dataset import Dataset
from shardwright_components.image_trainer import worker
from shardwright_components.image_trainer.history import History, write_history
from shardwright_components.image_trainer.spec import MODEL_FILE, TrainSpec

_WARM_UP = 0.05
_FLOOR = 0.01
_WEIGHT_DECAY = 1e-3
_CLIP = 1.0


def train(spec: TrainSpec) -> None:
    """Trains, and writes `model.keras`, `history.json` and TensorBoard logs to `spec.output`.

    Raises:
        ShardwrightError: the loss is no number any more.
    """
    import keras
    import tensorflow as tf

    from shardwright import loader
    from shardwright_components.image_trainer.callbacks import EpochReport, StopAtNaN
    from shardwright_components.image_trainer.losses import loss_of
    from shardwright_components.image_trainer.models import build_model

    tf.config.experimental.enable_op_determinism()
    keras.utils.set_random_seed(spec.recipe.seed)
    recipe, dataset = spec.recipe, Dataset.open(spec.dataset)
    records = dataset.num_records("train")
    batch_size = min(recipe.batch_size, records)
    steps = records // batch_size
    statistics = {"mean": spec.mean, "std": spec.std} if recipe.normalize == "dataset" else None
    common: dict[str, Any] = {"normalize": recipe.normalize, "statistics": statistics}
    data = loader.load(
        spec.dataset,
        "train",
        batch_size,
        augment=recipe.augment,
        shuffle=True,
        seed=recipe.seed,
        repeat=True,
        drop_remainder=True,
        shuffle_buffer=recipe.shuffle_buffer,
        order=recipe.order,
        **common,
    )
    held_out = recipe.eval_split if recipe.eval_split and dataset.num_records(recipe.eval_split) else ""
    evaluation = loader.load(spec.dataset, held_out, batch_size, **common) if held_out else None

    model = build_model(
        recipe.model,
        height=spec.height,
        width=spec.width,
        classes=len(spec.classes),
        filters=recipe.filters,
        seed=recipe.seed,
        multi=spec.multi,
    )
    # On a CPU XLA costs more time compiling than it saves in a run of minutes.
    loss = loss_of(spec)
    model.compile(_optimizer(recipe.learning_rate, steps * recipe.epochs), loss, jit_compile=False)
    report = EpochReport(spec, evaluation, worker.send)
    model.fit(
        data,
        epochs=recipe.epochs,
        steps_per_epoch=steps,
        callbacks=[StopAtNaN(), report],
        verbose=0,
    )
    model.set_weights(report.best_weights)
    model.save(Path(spec.output, MODEL_FILE))
    history = History(
        fingerprint=spec.fingerprint,
        parameters=model.count_params(),
        steps_per_epoch=steps,
        eval_split=held_out,
        best_epoch=report.best_epoch,
        loss=report.losses,
        evaluation=report.evaluations,
    )
    write_history(spec.output, history)


def _optimizer(rate: float, steps: int) -> Any:
    """AdamW with a short linear warm-up, then half a cosine down to a hundredth of the rate."""
    import keras

    warm_up = math.ceil(_WARM_UP * steps)
    schedule = keras.optimizers.schedules.CosineDecay(
        rate * _WARM_UP, max(steps - warm_up, 1), alpha=_FLOOR, warmup_target=rate, warmup_steps=warm_up
    )
    return keras.optimizers.AdamW(schedule, weight_decay=_WEIGHT_DECAY, clipnorm=_CLIP)


if __name__ == "__main__":
    worker.main(train)
