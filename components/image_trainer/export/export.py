"""From `model.keras` to a SavedModel, in a process that runs Keras on TensorFlow.

Models trained on another backend are exported in the same way. The graph has plain TensorFlow operations only, which
TFMA and TF Serving run on any machine.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from shardwright.components.image_trainer.spec import MODEL_FILE, TrainSpec
from shardwright.evaluation.thresholds import THRESHOLDS_FILE, Thresholds, write_thresholds


def export_model(spec: TrainSpec) -> None:
    """Writes the SavedModel of a finished training to `spec.export`, with its assets, and pictures for TensorBoard.

    Assets: `classes.json`, class names in the order of the outputs. `preparation.json`, size, resize policy and
    normalization. `thresholds.json`, threshold and smallest region of every class. `training.json`, task, fingerprints
    of training and data, recipe.
    """
    from shardwright.components.image_trainer.export.signatures import FlippedMean
    from shardwright.components.image_trainer.export.thresholds import choose_thresholds
    from shardwright.components.image_trainer.models.build import load_trained
    from shardwright.components.image_trainer.training.tensorboard import log_images

    model = load_trained(Path(spec.output, MODEL_FILE), spec)
    flipped = FlippedMean(model, spec.recipe.evaluator.flips, masks=spec.task == "segmentation")
    chosen = choose_thresholds(flipped, spec)
    save_model(model, spec, chosen)
    log_images(flipped, spec, chosen)


def save_model(model: Any, spec: TrainSpec, chosen: Thresholds) -> None:
    """Writes a model, images to probabilities on the TensorFlow backend, as a SavedModel to `spec.export`."""
    import tensorflow as tf

    from shardwright.components.image_trainer.export.signatures import EXAMPLES, ServedModel
    from shardwright.components.image_trainer.export.warm_up import write_warm_up

    served = ServedModel(model, spec, chosen)
    with tempfile.TemporaryDirectory() as folder:
        served.assets = [tf.saved_model.Asset(str(file)) for file in _write_assets(spec, chosen, Path(folder))]
        signatures = served.signatures()
        tf.saved_model.save(served, spec.export, signatures=signatures)
    of_images = tuple(sorted(set(signatures) - {EXAMPLES}))
    write_warm_up(spec.export, of_images, spec.height, spec.width, len(spec.texts))


def _write_assets(spec: TrainSpec, chosen: Thresholds, folder: Path) -> list[Path]:
    recipe = spec.recipe
    contents = {
        "classes.json": list(spec.classes),
        "preparation.json": {
            "height": spec.height,
            "width": spec.width,
            "resize": spec.resize,
            "normalize": recipe.loader.normalize,
            "mean": spec.mean,
            "std": spec.std,
            **({"ingested": dict(spec.ingested)} if spec.ingested else {}),
            **({"texts": [{"column": c.column, "feature": c.feature} for c in spec.texts]} if spec.texts else {}),
        },
        "training.json": {
            "task": spec.task,
            "multi": spec.multi,
            "fingerprint": spec.fingerprint,
            "dataset": spec.dataset_fingerprint,
            "submission": recipe.submission,
            "recipe": recipe.to_dict(),
        },
    }
    for name, value in contents.items():
        (folder / name).write_text(json.dumps(value, sort_keys=True, indent=1) + "\n", encoding="utf-8")
    write_thresholds(folder / THRESHOLDS_FILE, chosen, spec.classes)
    return sorted(folder.iterdir())
