"""A check before the ingest that weights, custom models and callbacks fit the configuration.

A separate process runs the code of the Trainer that builds the model and sets its initial weights. That takes some
seconds, so it runs only for weights, a custom model or callbacks.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from shardwright.components.image_trainer.devices.placement import BACKEND
from shardwright.components.image_trainer.spec import SPEC_FILE, TextColumn, TrainRecipe, TrainSpec
from shardwright.components.image_trainer.training.warm_start import weights_file
from shardwright.components.image_trainer.worker import WORKER, run_worker
from shardwright.config import Config
from shardwright.config.trainer import BLESSED, FRESH, is_import_path

# Weights of the built-in models do not depend on the size. Custom models are checked with the true size only.
_ANY_SIZE = (64, 64)


def check_model(config: Config, classes: Sequence[str], *, multi: bool, own: bool = True) -> None:
    """Builds the model of a configuration with the weights of its files.

    Args:
        config: the configuration.
        classes: names of the classes.
        multi: whether an image may have several of them.
        own: whether a custom model and callbacks can be imported here.

    Raises:
        UsageError: a file cannot be read or has weights of another architecture, or a model does not meet the
            requirements; the message is that of the Trainer.
        ShardwrightError: the worker failed.
    """
    trainer, size = config.trainer, config.transform.size
    warm = trainer.warm_start not in (FRESH, BLESSED)
    theirs = is_import_path(trainer.model)
    needed = own and size if theirs else warm or trainer.weights or (own and trainer.callbacks)
    if not needed:
        return
    height, width = size or _ANY_SIZE
    columns = tuple(TextColumn(c, c, config.transform.text[c].vocabulary, "") for c in trainer.text)
    with tempfile.TemporaryDirectory(prefix="shardwright-") as folder:
        spec = TrainSpec(
            recipe=TrainRecipe.from_config(config),
            dataset="",
            dataset_fingerprint="",
            task=config.task,
            classes=tuple(classes),
            height=height,
            width=width,
            resize=config.transform.resize,
            mean=None,
            std=None,
            output=folder,
            export=folder,
            multi=multi,
            warm_from=weights_file(config.resolve(trainer.warm_start))[0] if warm else "",
            weights_from=config.resolve(trainer.weights) if trainer.weights else "",
            texts=columns,
        )
        spec.write(Path(folder, SPEC_FILE))
        environment = {BACKEND: "tensorflow"}
        run_worker((WORKER, "check"), Path(folder, SPEC_FILE), Path(folder, "check.log"), environment=environment)
