"""The whole configuration: its sections as frozen dataclasses that check their values.

Every section checks its own values in `__post_init__`; `Config` checks conditions on several sections. The `PATH` of a
section is its YAML path, so that an error names the line to change. Unknown values are refused, not silently ignored.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

from shardwright import label_formats
from shardwright.config.cloud import BeamConfig
from shardwright.config.dataset import KAGGLE_FLOWERS, RLE_TEXT, TFDS, FeaturesConfig, RejectsConfig, ShardsConfig
from shardwright.config.evaluation import EvaluatorConfig, GateConfig
from shardwright.config.images import FULL, KEEP, DuplicatesConfig, ImagesConfig
from shardwright.config.input import InputConfig
from shardwright.config.kubeflow import KubeflowConfig
from shardwright.config.loader import LoaderConfig
from shardwright.config.parsing import one_of, parse_string, plain_value
from shardwright.config.split import SplitConfig
from shardwright.config.trainer import TrainerConfig, check_import_path, check_learning, check_texts
from shardwright.config.transform import TransformConfig
from shardwright.config.vertex import VertexConfig
from shardwright.errors import ConfigError
from shardwright.redaction import published
from shardwright.storage.paths import is_remote, split_url
from shardwright.storage.spans import NEWEST, SpanPath

TASKS = ("segmentation", "classification")
CHECK, WARN = "check", "warn"
_PRIVATE = {"published": False}
_NAME = re.compile(r"[a-z]([a-z0-9-]{0,61}[a-z0-9])?")


@dataclass(frozen=True)
class RunConfig:
    """The folders of a run.

    Attributes:
        root: its folder.
        staging: folder of unfinished work; by default one inside `root`.
        space: whether to start a run that needs more space than the disk has, by an estimate: `check` refuses it,
            `warn` only logs it.
        on_finish: Import path of a function that gets a summary of each run on this machine.
    """

    PATH: ClassVar[str] = "run"

    root: str | None = None
    staging: str | None = None
    space: str = CHECK
    on_finish: str | None = None

    def __post_init__(self) -> None:
        one_of("run.space", self.space, (CHECK, WARN))
        check_import_path("run.on_finish", self.on_finish, "mine.tracking:log")
        if self.staging is not None and is_remote(self.staging) and not split_url(self.staging)[1]:
            raise ConfigError("run.staging", f"{self.staging!r} does not name a bucket", "Write gs://bucket/folder.")


@dataclass(frozen=True)
class Config:
    """One whole configuration, validated.

    Attributes:
        name: Name of the pipeline; by default that of the file.
        task: `segmentation`, the default, or `classification`.
        input: The images and their annotations.
        images: Checks and changes of each image.
        duplicates: The treatment of images that are the same.
        split: Names and shares of the splits, and how images come into them.
        shards: Number and names of the shards of a split.
        features: Names and forms of the stored features.
        rejects: How many inputs may be rejected.
        transform: The pixels, masks, labels and texts that a model is trained on.
        loader: How examples become batches.
        trainer: The model and how it learns.
        evaluator: Limits that a model must reach to be blessed.
        gate: Checks that stop a run before it trains.
        beam: Options for Beam.
        run: The folders of a run.
        vertex: Options for Vertex AI Pipelines.
        kubeflow: Options for Kubeflow Pipelines.
        reuse_from: Dataset of an earlier ingest: images that have not changed are copied from there, not fetched again.
            It does not change the result.
        base: Folder that relative paths in the file start from.
        notes: Lines to log about how the file was understood.
    """

    name: str
    task: str
    input: InputConfig
    images: ImagesConfig = field(default_factory=ImagesConfig)
    duplicates: DuplicatesConfig = field(default_factory=DuplicatesConfig)
    split: SplitConfig = field(default_factory=SplitConfig)
    shards: ShardsConfig = field(default_factory=ShardsConfig)
    features: FeaturesConfig = field(default_factory=FeaturesConfig)
    rejects: RejectsConfig = field(default_factory=RejectsConfig)
    transform: TransformConfig = field(default_factory=TransformConfig)
    loader: LoaderConfig = field(default_factory=LoaderConfig)
    trainer: TrainerConfig = field(default_factory=TrainerConfig)
    evaluator: EvaluatorConfig = field(default_factory=EvaluatorConfig)
    gate: GateConfig = field(default_factory=GateConfig)
    # Where a pipeline runs changes nothing of what it makes, and is nobody's business who gets the result.
    beam: BeamConfig = field(default_factory=BeamConfig, metadata=_PRIVATE)
    run: RunConfig = field(default_factory=RunConfig, metadata=_PRIVATE)
    vertex: VertexConfig = field(default_factory=VertexConfig, metadata=_PRIVATE)
    kubeflow: KubeflowConfig = field(default_factory=KubeflowConfig, metadata=_PRIVATE)
    reuse_from: str | None = None
    # Not keys of the file.
    base: str = field(default=".", metadata={"key": False, **_PRIVATE})
    notes: tuple[str, ...] = field(default=(), metadata={"key": False, **_PRIVATE})

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ConfigError(
                "name",
                f"{self.name!r} is not a pipeline name",
                "Use a-z, 0-9 and -, at most 63 characters, a letter first.",
            )
        one_of("task", self.task, TASKS)
        # A configuration that was written in Python was not parsed.
        for path, text in (("input.images", self.input.images), ("the current folder", self.base)):
            parse_string(text, path)
        if self.reuse_from is not None and not self.reuse_from.strip():
            raise ConfigError("reuse_from", "empty", "Name a dataset of `shardwright ingest`, or remove the key.")
        if self.duplicates.looks_at_pixels and self.images.verify != FULL:
            option = "near" if self.duplicates.pixels is None else "pixels"
            raise ConfigError(
                f"duplicates.{option}",
                f"compares pixels, and images.verify is {self.images.verify!r}",
                "Set images.verify: full.",
            )
        self._check_labels()
        check_learning(self.task, self.trainer.model, self.trainer.loss)
        check_texts(self.trainer.text, self.transform.text, self.loader.augment)
        self._check_features()
        _check_spans(self.input)
        if self.gate.skew is not None:
            self.gate.skew.shared(len(self.split.names) - 1 or 1)
        if self.evaluator.split not in self.split.names:
            raise ConfigError(
                "evaluator.split",
                f"{self.evaluator.split!r} is not a split of this configuration",
                f"Use one of: {', '.join(self.split.names)}.",
            )

    def _check_labels(self) -> None:
        row = label_formats.BY_NAME.get(self.input.labels.format)
        if self.task == "segmentation" and row is not None and not row.has_masks:
            raise ConfigError(
                "input.labels.format",
                f"{self.input.labels.format} contains no masks for the task segmentation",
                "Use rle_csv, coco_json, mask_images or pascal_voc, or task: classification.",
            )
        if self.task == "classification" and row is not None and row.reads == label_formats.MASKS:
            raise ConfigError(
                "input.labels.format",
                f"{self.input.labels.format} contains masks, and task is classification",
                "Use another format, or task: segmentation.",
            )
        pattern, of_masks = self.input.labels.regex, self.input.labels.path is not None
        if self.task == "segmentation" and pattern is not None and not of_masks:
            raise ConfigError(
                "input.labels.regex",
                "the task segmentation takes no labels from names",
                "Remove input.labels.regex.",
            )
        if self.task == "classification" and pattern is not None and of_masks:
            raise ConfigError(
                "input.labels.regex",
                f"{pattern!r} is for file_name only, without a path",
                "Remove input.labels.regex.",
            )
        for name in self.input.labels.rle.given if self.task == "classification" else ():
            raise ConfigError(
                f"input.labels.rle.{name}", "the task classification has no masks", f"Remove input.labels.rle.{name}."
            )

    def _check_features(self) -> None:
        if self.features.preset == RLE_TEXT and (self.images.resize != KEEP or self.images.orientation == "apply"):
            raise ConfigError(
                "features.preset",
                "rle_text keeps the masks as the source has them, and images.resize or orientation moves the pixels",
                "Use another preset, or leave the pixels where they are.",
            )
        if self.features.preset in (TFDS, KAGGLE_FLOWERS) and self.images.encoding in ("raw", "tensor"):
            raise ConfigError(
                "features.preset",
                f"readers of {self.features.preset} decode JPEG and PNG, and images.encoding is {self.images.encoding}",
                "Use another preset, or images.encoding: jpeg or png.",
            )

    def resolve(self, path: str) -> str:
        """Returns an absolute path; a relative one starts from `base`, and a URL stays as it is."""
        if is_remote(path):
            return path
        scheme, there, base = self.base.rpartition("://")
        joined = os.path.normpath(os.path.join(base, os.path.expanduser(path)))
        return joined if os.path.isabs(joined) else f"{scheme}{there}{joined}"

    def to_dict(self) -> dict[str, Any]:
        """Returns the resolved configuration as plain values, for `build.json` and `run.on_finish`.

        The sections on where it runs are left out. Paths are relative to `base`; of others the last name is left.
        """
        shown = (one.name for one in fields(self) if one.metadata.get("published", True))
        return {name: published(plain_value(getattr(self, name)), os.path.abspath(self.base)) for name in shown}


def _check_spans(section: InputConfig) -> None:
    # Here and not in the section: a recipe has the section without its paths.
    paths = {"input.images": section.images, "input.labels.path": section.labels.path or ""}
    spanned = [SpanPath.parse(option, path) is not None for option, path in paths.items()]
    files = section.labels.files.values()
    if files and any(SpanPath.parse("input.labels.path", path) for path in (paths["input.labels.path"], *files)):
        problem = "names spans, and several files of annotations"
        raise ConfigError("input.labels.path", problem, "Put the annotations of a span into one file.")
    for name, choice in (("span", section.span), ("version", section.version)):
        if choice != NEWEST and not any(spanned):
            raise ConfigError(
                f"input.{name}", f"{choice!r}, but {' and '.join(paths)} name no spans", f"Remove input.{name}."
            )
