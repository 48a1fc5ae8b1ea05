"""The whole configuration: its sections as frozen dataclasses that check their values.

Every section checks its own values in `__post_init__`; `Config` checks conditions on several sections. The `PATH` of a
section is its YAML path, so that an error names the line to change. Unknown values are refused, not silently ignored.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, fields
from typing import Any, ClassVar

from shardwright import label_formats
from shardwright.config.cloud import BeamConfig
from shardwright.config.evaluation import EvaluatorConfig, GateConfig
from shardwright.config.images import FULL, KEEP, DuplicatesConfig, ImagesConfig
from shardwright.config.input import InputConfig
from shardwright.config.kubeflow import KubeflowConfig
from shardwright.config.loader import LoaderConfig
from shardwright.config.options import Pattern, Section, option
from shardwright.config.parse_values import parse_string, plain_value
from shardwright.config.push import PushConfig
from shardwright.config.shards import KAGGLE_FLOWERS, RLE_TEXT, TFDS, FeaturesConfig, RejectsConfig, ShardsConfig
from shardwright.config.split import SplitConfig
from shardwright.config.trainer import TrainerConfig, check_learning, check_texts, import_path_form
from shardwright.config.transform import TransformConfig
from shardwright.config.vertex import VertexConfig
from shardwright.errors import ConfigError
from shardwright.storage.paths import is_remote, split_url
from shardwright.storage.spans import NEWEST, SpanPath
from shardwright.text.redaction import published

TASKS = ("segmentation", "classification")
CHECK, WARN = "check", "warn"
_NAME = Pattern(
    re.compile(r"[a-z]([a-z0-9-]{0,61}[a-z0-9])?"),
    "Use a-z, 0-9 and -, at most 63 characters, a letter first.",
    "is not a pipeline name",
)


def _check_staging(path: str, folder: str) -> None:
    if is_remote(folder) and not split_url(folder)[1]:
        raise ConfigError(path, f"{folder!r} does not name a bucket", "Write gs://bucket/folder.")


def _check_dataset(path: str, folder: str) -> None:
    if not folder.strip():
        raise ConfigError(path, "empty", f"Name a dataset of `shardwright ingest`, or remove {path}.")


@dataclass(frozen=True)
class RunConfig(Section):
    """The folders of a run."""

    PATH: ClassVar[str] = "run"

    root: str | None = option(None, help="Folder of the run.")
    staging: str | None = option(
        None, form=_check_staging, help="Folder of unfinished work; by default one inside `root`."
    )
    space: str = option(
        CHECK,
        choices=(CHECK, WARN),
        help="Whether to start a run that needs more space than the disk has, by an estimate: `check` refuses it, "
        "`warn` only logs it.",
    )
    on_finish: str | None = option(
        None,
        form=import_path_form("mine.tracking:log"),
        help="Import path of a function that gets a summary of each run on this machine.",
    )


@dataclass(frozen=True)
class Config(Section):
    """One whole configuration, validated."""

    PATH: ClassVar[str] = ""

    name: str = option(form=_NAME, help="Name of the pipeline; by default that of the file.")
    task: str = option(choices=TASKS, help="`segmentation`, the default, or `classification`.")
    input: InputConfig = option(help="The images and their annotations.")
    images: ImagesConfig = option(factory=ImagesConfig)
    duplicates: DuplicatesConfig = option(factory=DuplicatesConfig)
    split: SplitConfig = option(factory=SplitConfig)
    shards: ShardsConfig = option(factory=ShardsConfig)
    features: FeaturesConfig = option(factory=FeaturesConfig)
    rejects: RejectsConfig = option(factory=RejectsConfig, help="How many inputs may be rejected.")
    transform: TransformConfig = option(factory=TransformConfig)
    loader: LoaderConfig = option(factory=LoaderConfig)
    trainer: TrainerConfig = option(factory=TrainerConfig)
    evaluator: EvaluatorConfig = option(factory=EvaluatorConfig)
    gate: GateConfig = option(factory=GateConfig)
    # Where a pipeline runs changes nothing of what it makes, and is nobody's business who gets the result.
    beam: BeamConfig = option(factory=BeamConfig, published=False)
    run: RunConfig = option(factory=RunConfig, published=False)
    push: PushConfig = option(factory=PushConfig, published=False)
    vertex: VertexConfig = option(factory=VertexConfig, published=False)
    kubeflow: KubeflowConfig = option(factory=KubeflowConfig, published=False)
    reuse_from: str | None = option(
        None,
        form=_check_dataset,
        help="Dataset of an earlier ingest: images that have not changed are copied from there, not fetched again. It "
        "does not change the result.",
    )
    # Not keys of the file.
    base: str = option(".", key=False, published=False, help="Folder that relative paths in the file start from.")
    notes: tuple[str, ...] = option(
        (), key=False, published=False, help="Lines to log about how the file was understood."
    )

    def check(self, path: str) -> None:
        """Refuses options of different sections that contradict each other."""
        super().check(path)
        # A configuration that was written in Python was not parsed.
        parse_string(self.input.images, "input.images")
        parse_string(self.base, "the current folder")
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
        if self.features.preset == RLE_TEXT and (self.images.resize != KEEP or self.images.orientation == "apply"):
            raise self.error(
                "features.preset",
                "rle_text keeps the masks as the source has them, and images.resize or orientation moves the pixels",
                "Use another preset, or leave the pixels where they are.",
            )
        if self.features.preset in (TFDS, KAGGLE_FLOWERS) and self.images.encoding in ("raw", "tensor"):
            raise self.error(
                "features.preset",
                f"readers of {self.features.preset} decode JPEG and PNG, and images.encoding is {self.images.encoding}",
                "Use another preset, or images.encoding: jpeg or png.",
            )
        # Here and not in the section: a recipe has the section without its paths.
        paths = {"input.images": self.input.images, "input.labels.path": self.input.labels.path or ""}
        spanned = [SpanPath.parse(option, path) is not None for option, path in paths.items()]
        files = self.input.labels.files.values()
        if files and any(SpanPath.parse("input.labels.path", path) for path in (paths["input.labels.path"], *files)):
            problem = "names spans, and several files of annotations"
            raise ConfigError("input.labels.path", problem, "Put the annotations of a span into one file.")
        for name, choice in (("span", self.input.span), ("version", self.input.version)):
            if choice != NEWEST and not any(spanned):
                raise ConfigError(
                    f"input.{name}", f"{choice!r}, but {' and '.join(paths)} name no spans", f"Remove input.{name}."
                )
        if self.gate.skew is not None:
            self.gate.skew.shared(len(self.split.names) - 1 or 1)
        if self.evaluator.split not in self.split.names:
            raise self.error(
                "evaluator.split",
                f"{self.evaluator.split!r} is not a split of this configuration",
                f"Use one of: {', '.join(self.split.names)}.",
            )

    def _check_labels(self) -> None:
        row = label_formats.BY_NAME.get(self.input.labels.format)
        if self.task == "segmentation" and row is not None and not row.has_masks:
            raise self.error(
                "input.labels.format",
                f"{self.input.labels.format} contains no masks for the task segmentation",
                "Use rle_csv, coco_json, mask_images or pascal_voc, or task: classification.",
            )
        if self.task == "classification" and row is not None and row.reads == label_formats.MASKS:
            raise self.error(
                "input.labels.format",
                f"{self.input.labels.format} contains masks, and task is classification",
                "Use another format, or task: segmentation.",
            )
        pattern, of_masks = self.input.labels.regex, self.input.labels.path is not None
        if self.task == "segmentation" and pattern is not None and not of_masks:
            raise self.error("input.labels.regex", "the task segmentation takes no labels from names")
        if self.task == "classification" and pattern is not None and of_masks:
            raise self.error("input.labels.regex", f"{pattern!r} is for file_name only, without a path")
        for name in self.input.labels.rle.given if self.task == "classification" else ():
            raise ConfigError(
                f"input.labels.rle.{name}", "the task classification has no masks", f"Remove input.labels.rle.{name}."
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
        shown = (section.name for section in fields(self) if section.metadata.get("published", True))
        return {name: published(plain_value(getattr(self, name)), os.path.abspath(self.base)) for name in shown}
