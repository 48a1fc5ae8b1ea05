"""`shardwright.train`: a training in a notebook or a script, with the Trainer's own code and without TFX.

The images are brought to one size (`transform_images`), the workers of ImageTrainer train and export, and the exported
model is measured on a split that decided nothing about it. The folder has what a pipeline has:

    OUT/images      the transformed dataset, if the given one was not transformed
    OUT/training    model.keras, history.json, training.json, steps.jsonl, TensorBoard logs, the workers' logs
    OUT/model       the SavedModel that `shardwright predict`, `convert` and TF Serving take
"""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy.typing as npt

from shardwright.components.image_trainer.models.custom import check_shapes
from shardwright.components.image_trainer.models.given_model import GivenModel
from shardwright.components.image_trainer.run_fn import train_and_export
from shardwright.components.image_trainer.spec import MODEL_FILE, SPEC_FILE, TrainRecipe, TrainSpec
from shardwright.components.image_trainer.training.history import read_history
from shardwright.components.image_transform.transform_images import transform_images
from shardwright.components.image_transform.transform_plan import plan_of_config
from shardwright.components.predictor.exported_model import ExportedModel, open_model
from shardwright.config import Config, EvaluatorConfig, LoaderConfig, RejectsConfig, TrainerConfig, TransformConfig
from shardwright.config.constructors import as_section, config_of
from shardwright.config.parse_values import keys_of, section_of
from shardwright.config.trainer import BLESSED
from shardwright.config.transform import KEEP, size_of_images
from shardwright.config.yaml_config import as_config, parse_config
from shardwright.dataset.manifest import MASKS, MULTI
from shardwright.dataset.reader import ImageDataset
from shardwright.errors import ShardwrightError, UsageError
from shardwright.evaluation.figures import Figures, Measured
from shardwright.evaluation.metrics import ClassSums, LabelCounts, MaskSums, headline
from shardwright.lineage.record import LINEAGE_FILE, read_lineage
from shardwright.loader.dataset_info import image_size, median_size
from shardwright.running.progress import print_note
from shardwright.storage import is_remote
from shardwright.storage.durable import make_folder
from shardwright.storage.own_names import is_own

IMAGES, TRAINING, MODEL = "images", "training", "model"

_TEST, _EVAL = "test", "eval"
_TRANSFORMED = "transform"
# Masks of a batch are in memory at once.
_BATCH = 16
# An option of the command, in messages; and where the keyword of Python has another name.
_OPTION, _KEYWORDS = re.compile(r"(?<![^\s('\"])--([a-z][a-z-]*)"), {"format": "form"}


@dataclass(frozen=True)
class TrainedModel:
    """A finished training.

    Attributes:
        folder: the folder `out` of the call.
        task: `segmentation` or `classification`.
        classes: names in the order of the outputs.
        best_epoch: the epoch whose weights were kept, from 1.
        history: for each epoch its metrics on the split `eval`; empty without that split.
        figures: metrics of the exported model, and the split, images and thresholds that they are of; `None` if the
            dataset has neither a split `test` nor `eval`.
    """

    folder: Path
    task: str
    classes: tuple[str, ...]
    best_epoch: int
    history: tuple[Mapping[str, float], ...]
    figures: Figures | None

    @property
    def model(self) -> Path:
        """Folder of the SavedModel."""
        return self.folder / MODEL

    @property
    def keras_file(self) -> Path:
        """The trained Keras model, without the resizing and the thresholds of the SavedModel."""
        return self.folder / TRAINING / MODEL_FILE

    def predict(
        self, images: str | os.PathLike[str], out: str | os.PathLike[str], *, force: bool = False, **options: Any
    ) -> Any:
        """Predicts a folder of images or a dataset, and writes a table.

        Args:
            images: folder, glob or dataset.
            out: the CSV to write.
            force: replace a CSV that is there.
            **options: fields of `shardwright.components.predictor.predict_images.PredictOptions`, such as `dialect`.

        Returns:
            The `Prediction`: the file, its layout, numbers of images and rows, and the images that were left out.

        Raises:
            UsageError: the file exists already, or an option is wrong.
        """
        from shardwright.components.predictor.predict_images import PredictOptions, predict
        from shardwright.components.predictor.prediction_rows import CSV

        try:
            chosen = PredictOptions(**options)
            if chosen.form == CSV and os.path.lexists(os.path.expanduser(out)) and not force:
                raise UsageError(f"out={os.fspath(out)!r}: exists already. Name another file, or give force=True.")
            return predict(str(self.model), os.fspath(images), os.fspath(out), chosen)
        except UsageError as error:
            raise UsageError(_OPTION.sub(_keyword, str(error))) from None

    def __repr__(self) -> str:
        lines = [f"TrainedModel({str(self.folder)!r}, {self.task}, classes={list(self.classes)})"]
        if self.figures is not None:
            shown = ", ".join(f"{name} {value:.4f}" for name, value in self.figures.means(headline(self.task)))
            lines.append(f"  {shown}; of {self.figures.measured.words()}")
        return "\n".join(lines)


def _keyword(option: re.Match[str]) -> str:
    return _KEYWORDS.get(option[1], option[1].replace("-", "_"))


def train(
    dataset: str | os.PathLike[str] | ImageDataset,
    out: str | os.PathLike[str],
    *,
    model: Any = None,
    config: str | os.PathLike[str] | Mapping[str, Any] | Config | None = None,
    transform: TransformConfig | Mapping[str, Any] | None = None,
    loader: LoaderConfig | Mapping[str, Any] | None = None,
    trainer: TrainerConfig | Mapping[str, Any] | None = None,
    evaluator: EvaluatorConfig | Mapping[str, Any] | None = None,
    rejects: RejectsConfig | Mapping[str, Any] | None = None,
    workers: int | None = None,
) -> TrainedModel:
    """Trains a model on a dataset and exports it, on this machine, without TFX.

    It learns from the split `train`, chooses the best epoch and the thresholds on `eval`, and measures on `test` (on
    `eval` where there is none). Call it again to continue an interrupted training, or to get a finished one. With more
    `epochs`, a finished one continues if it has `schedule: constant` and `warm_up: 0`.

    Example:
        ```python
        trained = shardwright.train("clouds-dataset", "out", model=keras_model, trainer={"epochs": 20})
        trained.predict("test_images", "submission.csv", dialect="clouds")
        ```

    Args:
        dataset: a dataset of `make_dataset` or `shardwright ingest`, or a transformed one.
        out: folder of the results.
        model: a `keras.Model` of Keras' layers; by default one of ours, see `trainer`. It takes float32 images [batch,
            height, width, 3], whose height and width may be open, as `loader.normalize` makes them (by default `unit`:
            0 to 1), and returns float32 [batch, height, width, classes] or [batch, classes]: probabilities, or logits
            if its last layer has no activation or `trainer.outputs` says so. Training starts from its weights, and
            leaves the object as it is. Loss and optimizer come from `trainer`. A call continues, or finds, a training
            of the same layers and weights.
        config: a configuration, or its file, whose sections are used where none is given here.
        transform: `{"size": (256, 256)}`: how the images are brought to one size. Without `size` and `config` it is
            that of `model`'s input; where that is open, or there is no `model`, it is what `init` writes: the images'
            median, each side as a multiple of 32, for masks at most 512, for classes a square of at most 224.
        loader: `{"augment": ["flip_left_right"]}`, as `loader` in YAML.
        trainer: `{"epochs": 20}`, as `trainer` in YAML. `"model": "my_models:build"` names a function that builds a
            model with layers of your own: in a notebook, write it with `%%writefile my_models.py`.
        evaluator: `{"threshold": 0.5}`: only what the exported model has.
        rejects: `{"max_fraction": 0.01}`: how many images may be rejected because they cannot be decoded.
        workers: processes of the transform; by default one for each core.

    Returns:
        The trained model with its metrics.

    Raises:
        ConfigError: a value is wrong; the message names it as a key of the YAML file.
        UsageError: `out` contains another training, the model does not fit the dataset, or an option needs the whole
            pipeline.
        DatasetError: the dataset is damaged, or there is nothing to train on.
        ShardwrightError: the training failed; the message has its last lines.
    """
    # For the processes of the transform: each would tell of CUDA plugins.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    opened = dataset if isinstance(dataset, ImageDataset) else ImageDataset.open(dataset)
    begun = None if model is None else GivenModel.of(model)
    if begun is not None and (isinstance(trainer, Mapping) or (trainer is None and config is None)):
        trainer = {"model": begun.name, **(trainer or {})}
    if config is None and opened.manifest.kind != _TRANSFORMED and not isinstance(transform, TransformConfig):
        transform = _with_size(opened, transform or {}, model)
    given = {"transform": transform, "loader": loader, "trainer": trainer, "evaluator": evaluator, "rejects": rejects}
    chosen = training_config(opened, config, {name: value for name, value in given.items() if value is not None})
    if begun is not None:
        chosen = begun.into(chosen)
        _check_fits(model, opened, chosen)
    if is_remote(os.fspath(out)):
        raise UsageError(f"{out}: a training writes to this machine. Give a folder, and copy it later.")
    folder = Path(os.path.abspath(out))
    recipe = dataclasses.replace(
        TrainRecipe.from_config(chosen, given=begun is not None), eval_split=_EVAL if _EVAL in opened.splits else ""
    )
    if recipe.trainer.warm_start == BLESSED:
        raise UsageError("trainer.warm_start: blessed is for pipelines. Give the folder of a model.")
    make_folder(str(folder))
    for name in (IMAGES, TRAINING, MODEL):
        is_own(folder / name)  # The user names `out`, perhaps a link; a link below it is refused.
    weights = chosen.resolve(chosen.trainer.weights) if chosen.trainer.weights else ""
    if begun is not None:
        weights = _keep(begun, folder / TRAINING)
    images, exported = transformed(opened, chosen, folder, workers), folder / MODEL
    start = chosen.trainer.warm_start
    warm = chosen.resolve(start) if start != TrainerConfig.warm_start else ""
    spec = train_and_export(
        recipe,
        dataset=images,
        run_folder=folder / TRAINING,
        export_folder=exported,
        warm_from=warm,
        weights_from=weights,
        finished=str(read_lineage(exported)["fingerprint"]) if Path(exported, LINEAGE_FILE).is_file() else "",
    )
    history = read_history(folder / TRAINING)
    return TrainedModel(
        folder,
        spec.task,
        spec.classes,
        history.best_epoch,
        tuple(history.evaluation),
        evaluate(exported, opened),
    )


def _with_size(dataset: ImageDataset, transform: Mapping[str, Any], model: Any) -> Mapping[str, Any]:
    """Returns the transform with a size: that of a given model's images, or what `init` writes for the dataset's."""
    if transform.get("size") is not None or transform.get("resize") == KEEP:
        return transform
    shape = getattr(model, "input_shape", None)
    own = tuple(shape[1:3]) if isinstance(shape, tuple) and len(shape) == 4 else (None, None)
    if None not in own:
        return {**transform, "size": own}
    median = median_size(dataset)
    suited, resize = size_of_images(dataset.manifest.task, *median)
    size = tuple(side or other for side, other in zip(own, suited, strict=True))
    policy = transform.get("resize", resize)
    print_note(
        f"images are brought to {size[0]}x{size[1]} (height x width; {policy}), since their median is "
        f'{median[0]}x{median[1]}. Another size: transform={{"size": (height, width)}}'
    )
    return {**transform, "size": size, "resize": policy}


def training_config(
    dataset: ImageDataset, config: str | os.PathLike[str] | Mapping[str, Any] | Config | None, given: Mapping[str, Any]
) -> Config:
    """Returns the configuration of a training, whose task must be that of the dataset."""
    if config is None:
        split = {"ratios": {name: 1 / len(dataset.splits) for name in dataset.splits}}
        return config_of(task=dataset.manifest.task, split=split, **given)
    loaded = parse_config(config, base=os.getcwd()) if isinstance(config, Mapping) else as_config(config)
    if loaded.task != dataset.manifest.task:
        raise UsageError(
            f"config: its task is {loaded.task}, and {dataset.root} is for {dataset.manifest.task}. Give the "
            "configuration of this dataset."
        )
    kinds = {name: section_of(hint) for name, hint in keys_of(Config).items()}
    sections: dict[str, Any] = {n: as_section(kind, given[n], n) for n, kind in kinds.items() if kind and n in given}
    return dataclasses.replace(loaded, **sections)


def transformed(opened: ImageDataset, config: Config, folder: Path, workers: int | None = None) -> Path:
    """Returns the folder of the dataset to train on, which is made if the given one is not transformed."""
    if opened.manifest.kind == _TRANSFORMED:
        if is_remote(opened.root):
            raise UsageError(f"{opened.root}: a transformed dataset on a bucket. Copy it here, or give its source.")
        return Path(opened.root)
    transform_images(opened, plan_of_config(opened, config), folder / IMAGES, workers=workers)
    return folder / IMAGES


def _check_fits(model: Any, dataset: ImageDataset, config: Config) -> None:
    """Refuses a model for other images or classes, before the images are transformed."""
    manifest = dataset.manifest
    size = image_size(dataset) if manifest.kind == _TRANSFORMED else config.transform.size
    if size is not None:
        masks = manifest.task == "segmentation"
        check_shapes(model, "model", image=size, classes=manifest.classes, masks=masks)


def _keep(given: GivenModel, folder: Path) -> str:
    """Writes a given model into the folder of its training, and says so if only its weights are others than before."""
    try:
        before = TrainSpec.read(folder / SPEC_FILE).recipe.trainer.model
    except (OSError, ValueError, ShardwrightError):
        before = ""
    if given.has_other_weights(before):
        print_note(
            f"model: has other initial weights than that of the training in {folder.parent}, so it is another one. To "
            "continue or find that one, call keras.utils.set_random_seed(1) before you build the model, both times"
        )
    return given.write(folder)


def evaluate(model: Path, dataset: ImageDataset) -> Figures | None:
    """Measures an exported model on `test`, or on `eval`, by the sums of its own signature.

    Args:
        model: folder of the SavedModel.
        dataset: the dataset; the model resizes its images.

    Returns:
        The figures; `None` if the dataset has neither split. Images that cannot be decoded are left out.
    """
    split = next((name for name in (_TEST, _EVAL) if name in dataset.splits and dataset.num_records(name)), None)
    if split is None:
        print_note(f"no image is in {_TEST} or {_EVAL}, so the model is not measured")
        return None
    opened = open_model(str(model))
    count, labels = len(opened.classes), dataset.manifest.labels
    kinds: dict[str, Any] = {MASKS: MaskSums, MULTI: ClassSums}
    total: Any = kinds.get(labels, LabelCounts).zero(count)
    images = 0
    records = (payload for _, payload in dataset.records(split))
    while batch := list(islice(records, _BATCH)):
        for answers in _answers(opened, batch):
            if labels == MASKS:
                total += MaskSums.of_images(answers["intersection"], answers["prediction"], answers["truth"])
            elif labels == MULTI:
                total += ClassSums.of_labels(answers["prediction"], answers["truth"])
            else:
                total += LabelCounts.of_labels(answers["probabilities"].argmax(-1), answers["label"].ravel(), count)
            images += len(next(iter(answers.values())))
    size = (opened.height, opened.width)
    measured = Measured.of_model(split, images, size, opened.task, opened.multi, opened.thresholds)
    return Figures(total.report(opened.classes), measured)


def _answers(model: ExportedModel, records: Sequence[bytes]) -> Iterator[dict[str, npt.NDArray[Any]]]:
    """Yields the answers for records together, or one by one where an image cannot be decoded."""
    import tensorflow as tf

    try:
        answers = model.examine(records)
    except tf.errors.InvalidArgumentError:
        if len(records) > 1:
            for record in records:
                yield from _answers(model, [record])
        return
    yield answers
