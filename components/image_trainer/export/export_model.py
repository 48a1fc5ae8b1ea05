"""From `model.keras` to a SavedModel, in a process that runs Keras on TensorFlow.

Models trained on another backend are exported in the same way. The graph has plain TensorFlow operations only, which
TFMA and TF Serving run on any machine.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from shardwright.components.image_trainer.spec import MODEL_FILE, TrainSpec
from shardwright.evaluation.thresholds import THRESHOLDS_FILE, Thresholds, write_thresholds
from shardwright.tfrecords.records import RecordWriter
from shardwright.tfrecords.wire import delimited_start

if TYPE_CHECKING:
    from shardwright.components.image_trainer.export.signatures import FlippedMean

WARM_UP_FILE = "assets.extra/tf_serving_warmup_requests"


def export_model(spec: TrainSpec) -> None:
    """Writes the SavedModel of a finished training to `spec.export`, with its assets, and pictures for TensorBoard.

    Assets: `classes.json`, class names in the order of the outputs. `preparation.json`, size, resize policy and
    normalization. `thresholds.json`, threshold and smallest region of every class. `training.json`, task, fingerprints
    of training and data, recipe.
    """
    from shardwright.components.image_trainer.export.choose_thresholds import choose_thresholds
    from shardwright.components.image_trainer.export.signatures import FlippedMean
    from shardwright.components.image_trainer.models.build import load_trained
    from shardwright.components.image_trainer.training.tensorboard import log_images

    model = FlippedMean(load_trained(Path(spec.output, MODEL_FILE), spec), spec)
    chosen = choose_thresholds(model, spec)
    save_model(model, spec, chosen)
    log_images(model, spec, chosen)


def save_model(model: FlippedMean, spec: TrainSpec, chosen: Thresholds) -> None:
    """Writes a model as a SavedModel to `spec.export`."""
    import tensorflow as tf

    from shardwright.components.image_trainer.export.signatures import EMBEDDING, EXAMPLES, PIXELS, ServedModel

    served = ServedModel(model, spec, chosen)
    with tempfile.TemporaryDirectory() as folder:
        served.assets = [tf.saved_model.Asset(str(file)) for file in _write_assets(spec, chosen, Path(folder))]
        signatures = served.signatures()
        tf.saved_model.save(served, spec.export, signatures=signatures)
    of_images = tuple(sorted(set(signatures) - {EXAMPLES, PIXELS, EMBEDDING}))
    write_warm_up(spec.export, of_images, spec.height, spec.width, len(spec.texts))


def write_warm_up(export: str, signatures: tuple[str, ...], height: int, width: int, columns: int) -> None:
    """Writes a request for each signature into an exported model.

    The first answer of a graph takes seconds. TF Serving calls a model with these requests before it serves clients
    (tensorflow/serving, servables/tensorflow/saved_model_warmup_util.h): TFRecords of `PredictionLog`.

    Args:
        export: folder of the SavedModel.
        signatures: the signatures that take encoded images.
        height: of the image, which is gray.
        width: of the image.
        columns: how many texts an image has; 0 for a model without texts.
    """
    import tensorflow as tf

    image = tf.io.encode_jpeg(tf.fill([height, width, 3], tf.constant(128, tf.uint8))).numpy()
    file = Path(export, WARM_UP_FILE)
    file.parent.mkdir(exist_ok=True)
    with file.open("wb") as records:
        writer = RecordWriter(records)
        for signature in signatures:
            inputs = {"image_bytes": tf.make_tensor_proto([image])}
            if columns:
                inputs["texts"] = tf.make_tensor_proto([[""] * columns])
            # The server has a name of its choice for the model, and ignores this one.
            model = _field(1, b"default") + _field(3, signature.encode())
            request = _field(1, model)
            for name, tensor in inputs.items():
                content = tensor.SerializeToString(deterministic=True)
                request += _field(2, _field(1, name.encode()) + _field(2, content))
            writer.write(_field(6, _field(1, request)))


def _field(number: int, content: bytes) -> bytes:
    """Returns a field of bytes of a protocol buffer.

    The numbers are those of `PredictionLog.predict_log.request` (tensorflow/serving, apis/prediction_log.proto and
    predict.proto); the package with these messages would bring a TensorFlow of its own version.
    """
    return delimited_start(number, len(content)) + content


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
