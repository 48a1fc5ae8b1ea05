"""An exported model, opened for predictions: the SavedModel and the facts in its assets."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from shardwright.components.image_transform.transform_recipe import changes_pixels
from shardwright.components.model_files.saved_model import load_saved_model
from shardwright.errors import DatasetError, UsageError
from shardwright.evaluation.thresholds import THRESHOLDS_FILE, Thresholds, read_thresholds, threshold_masks
from shardwright.lineage.ancestry import METADATA_FILE, PUSHED
from shardwright.lineage.blessing import BLESSING_FILE, read_blessing
from shardwright.storage import is_remote
from shardwright.untrusted import json_text as untrusted
from shardwright.untrusted.json_text import parse_untrusted_json

_SERVING, _PIXELS, _EXAMPLES = "serving_default", "pixels", "examples"
_SAVED = "saved_model.pb"
# Folder of the SavedModel in an artifact of TFX's Trainer.
_FORMAT = "Format-Serving"


_RECORDS = {
    "training": untrusted.record(
        {
            "task": untrusted.choice("segmentation", "classification"),
            "multi": untrusted.truth,
            "fingerprint": untrusted.text,
        },
        {"submission": untrusted.text},
        closed=False,
    ),
    "preparation": untrusted.record(
        {"height": untrusted.count, "width": untrusted.count, "resize": untrusted.text},
        {
            "ingested": untrusted.mapped(untrusted.anything),
            "texts": untrusted.listed(
                untrusted.record({"column": untrusted.text, "feature": untrusted.text}, closed=False)
            ),
        },
        closed=False,
    ),
    "classes": untrusted.listed(untrusted.class_name, unique=True),
}


@dataclass(frozen=True)
class ExportedModel:
    """A model that predicts.

    Attributes:
        folder: folder of the SavedModel.
        task: `segmentation` or `classification`.
        multi: whether an image may have several classes.
        classes: names in the order of the outputs.
        height: rows of the model's images.
        width: their columns.
        resize: policy that brings images to that size.
        fingerprint: fingerprint of the training.
        submission: the layout of the table it was trained from; empty if unknown.
        loaded: result of `tf.saved_model.load`.
        texts: columns of texts that it reads, and the feature of each, in their order.
        ingested: the ingest's image options, which the model repeats, and its limit of pixels, which `predict` does.
    """

    folder: str
    task: str
    multi: bool
    classes: tuple[str, ...]
    height: int
    width: int
    resize: str
    fingerprint: str
    submission: str
    loaded: Any
    texts: tuple[tuple[str, str], ...] = ()
    ingested: Mapping[str, Any] = field(default_factory=dict)

    @property
    def thresholds(self) -> Thresholds:
        """Those that it was exported with; of a model that Shardwright did not export, a half."""
        if not is_exported(self.folder):
            return Thresholds.fixed(len(self.classes))
        return read_thresholds(Path(self.folder, "assets", THRESHOLDS_FILE), self.classes)

    def answer(
        self, images: list[bytes], texts: Sequence[Sequence[bytes]] | None = None, *, stored: bool = False
    ) -> dict[str, Any]:
        """Predicts for encoded images; returns numpy arrays by the names of the signature's outputs.

        Args:
            images: JPEG or PNG.
            texts: for each image a text for each of `self.texts`; empty texts by default.
            stored: the images are those of a dataset, so the model must not repeat the changes of the ingest.

        Raises:
            tf.errors.InvalidArgumentError: one of them cannot be decoded.
            UsageError: the model would have to repeat these changes, since an earlier version exported it.
        """
        import tensorflow as tf

        inputs = {}
        if self.texts:
            rows = [[b""] * len(self.texts)] * len(images) if texts is None else [list(row) for row in texts]
            inputs["texts"] = tf.constant(rows, tf.string, [len(images), len(self.texts)])
        if stored and changes_pixels(self.ingested):
            pixels = tf.constant(self.pixels(images, stored=True))
            return self._decided(np.asarray(self.of_pixels(pixels=pixels, **inputs)["probabilities"]))
        outputs = self.loaded.signatures[_SERVING](image_bytes=tf.constant(images, tf.string), **inputs)
        return {name: np.asarray(value) for name, value in outputs.items()}

    def examine(self, records: Sequence[bytes]) -> dict[str, npt.NDArray[Any]]:
        """Returns what metrics are made of: the outputs of the signature for records of a dataset.

        Raises:
            tf.errors.InvalidArgumentError: an image cannot be decoded.
        """
        import tensorflow as tf

        outputs = self.loaded.signatures[_EXAMPLES](examples=tf.constant(records, tf.string))
        return {name: np.asarray(value) for name, value in outputs.items()}

    @property
    def of_pixels(self) -> Any:
        """The signature that takes pixels in the model's size.

        Raises:
            UsageError: an earlier version exported the model without it.
        """
        if _PIXELS not in self.loaded.signatures:
            raise UsageError(
                f"{self.folder}: has no signature {_PIXELS!r}, so an earlier version of Shardwright exported it. "
                "Run the pipeline again with this version."
            )
        return self.loaded.signatures[_PIXELS]

    def pixels(self, images: list[bytes], *, stored: bool = False) -> npt.NDArray[Any]:
        """Returns what the model looks at: uint8 [N, height, width, 3]; the arguments are those of `answer`."""
        import tensorflow as tf

        from shardwright.components.image_transform.serving_preprocess import as_ingested
        from shardwright.images import tf_ops

        changes = {} if stored else self.ingested
        whole = (as_ingested(tf.constant(one), changes) for one in images)
        return np.stack([tf_ops.decode_resized(one, self.height, self.width, self.resize).numpy() for one in whole])

    def _decided(self, probabilities: npt.NDArray[Any]) -> dict[str, Any]:
        """Returns what the default signature adds to its probabilities."""
        found: dict[str, Any] = {"probabilities": probabilities}
        if self.task != "segmentation" and not self.multi:
            labels = [self.classes[place].encode("utf-8") for place in probabilities.argmax(-1)]
            return {**found, "labels": np.array(labels, object)}
        chosen = self.thresholds
        if self.task == "segmentation":
            return {**found, "masks": threshold_masks(probabilities, chosen)}
        return {**found, "classes": np.asarray(probabilities >= np.array(chosen.thresholds, np.float32), np.uint8)}


def model_folder(place: str) -> Path:
    """Finds the SavedModel of a path: itself, the blessed one of a push folder or run, or a Trainer's `model`.

    Raises:
        UsageError: there is no SavedModel.
    """
    if is_remote(place):
        raise UsageError(f"{place}: models are opened on this machine. Copy it here first.")
    folder = Path(place)
    if Path(folder, PUSHED, BLESSING_FILE).is_file():
        folder = folder / PUSHED
    if Path(folder, BLESSING_FILE).is_file():
        blessing = read_blessing(folder)
        return Path(folder, blessing.model) if blessing else folder
    for candidate in (folder, folder / _FORMAT):
        if Path(candidate, _SAVED).is_file():
            return candidate
    if Path(place, METADATA_FILE).is_file():
        raise UsageError(
            f"{place}: no model of this run was blessed; its report.html has the reasons. To predict with the last one "
            "all the same, add --unblessed."
        )
    raise UsageError(
        f"{place}: contains neither {_SAVED} nor {BLESSING_FILE}. Give the folder of a run that has pushed a "
        "model, its push folder, or a SavedModel exported by a pipeline."
    )


def is_exported(folder: str | os.PathLike[str]) -> bool:
    """Returns whether the SavedModel of a folder is one that Shardwright exported."""
    return Path(folder, "assets", "training.json").is_file()


def open_model(place: str, *, trusted: bool = False) -> ExportedModel:
    """Opens a model.

    Args:
        place: see `model_folder`.
        trusted: see `check_saved_model`.

    Raises:
        UsageError: there is no model.
        DatasetError: this version did not export it, or it does more than compute.
    """
    folder = model_folder(place)
    import tensorflow as tf

    if not is_exported(folder):
        raise UsageError(
            f"{folder}: Shardwright did not export this model. `predict`, `review` and `try` take it as it is; for "
            "all else train it by shardwright.train(…, model=…), which exports it."
        )
    try:
        training, preparation = read_asset(folder, "training"), read_asset(folder, "preparation")
        loaded = load_saved_model(folder, trusted=trusted)
        return ExportedModel(
            folder=os.fspath(folder),
            task=training["task"],
            multi=training["multi"],
            classes=tuple(read_asset(folder, "classes")),
            height=preparation["height"],
            width=preparation["width"],
            resize=preparation["resize"],
            fingerprint=training["fingerprint"],
            submission=training.get("submission", ""),
            loaded=loaded,
            ingested=dict(preparation.get("ingested", {})),
            texts=tuple((c["column"], c["feature"]) for c in preparation.get("texts", ())),
        )
    except (OSError, ValueError, KeyError, TypeError, tf.errors.OpError) as error:
        problem = str(error).splitlines()[0][:200]
        raise DatasetError(
            f"{folder}: not a model exported by this version of Shardwright ({problem}). Export it again."
        ) from None


def read_asset(folder: Path, name: str) -> Any:
    """Returns the content of an asset of a SavedModel, checked: `training`, `preparation` or `classes`."""
    text = Path(folder, "assets", f"{name}.json").read_text(encoding="utf-8")
    return _RECORDS[name](parse_untrusted_json(text), f"{name}.json")
