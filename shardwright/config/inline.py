"""A configuration written in Python: annotation formats and options under the names that the field uses.

`RleCsv("train.csv")` is what `labels: {format: rle_csv, path: train.csv}` is in YAML. The options have the names and
the defaults of the YAML keys; `docs/ingest.md` describes them.
"""

from __future__ import annotations

import os
import typing
from collections.abc import Mapping, Sequence
from typing import Any

from shardwright.config.config import Config
from shardwright.config.dataset import FeaturesConfig, RejectsConfig, ShardsConfig
from shardwright.config.evaluation import EvaluatorConfig
from shardwright.config.images import DuplicatesConfig, ImagesConfig
from shardwright.config.input import InputConfig, LabelsConfig
from shardwright.config.load import read_classes, split_options
from shardwright.config.parsing import parse_section
from shardwright.config.split import SplitConfig

Shards = ShardsConfig
Duplicates = DuplicatesConfig
Features = FeaturesConfig
Images = ImagesConfig
Rejects = RejectsConfig


def RleCsv(path: str, **options: Any) -> LabelsConfig:
    """Returns labels that are run lengths in a CSV, a row for each mask.

    Args:
        path: the CSV.
        **options: `columns`, `runs`, `order`, `base`, `frame`, `features`, `key_pattern` of `input.labels`.
    """
    return LabelsConfig(format="rle_csv", path=path, **options)


def Coco(path: str, **options: Any) -> LabelsConfig:
    """Returns labels that are a COCO instances file: polygons, run lengths, and with `boxes=True` boxes."""
    return LabelsConfig(format="coco_json", path=path, **options)


def MaskImages(path: str, **options: Any) -> LabelsConfig:
    """Returns labels that are mask images in a folder: indices, palettes, colours, or a file for each class."""
    return LabelsConfig(format="mask_images", path=path, **options)


def PascalVoc(path: str, **options: Any) -> LabelsConfig:
    """Returns labels that are a folder of Pascal VOC: masks, boxes and lists of splits."""
    return LabelsConfig(format="pascal_voc", path=path, **options)


def LabelCsv(path: str, **options: Any) -> LabelsConfig:
    """Returns labels that are classes in a CSV, one or several for each image."""
    return LabelsConfig(format="label_csv", path=path, **options)


def Captions(path: str, **options: Any) -> LabelsConfig:
    """Returns labels that are texts for each image, in a CSV or JSONL file."""
    return LabelsConfig(format="captions", path=path, **options)


def ClassFolders() -> LabelsConfig:
    """Returns labels that are the names of the folders in which the images are."""
    return LabelsConfig(format="class_folders")


def FileNames(pattern: str | None = None) -> LabelsConfig:
    """Returns labels that are in the names of the images: before the last `_<number>`, or a pattern's group `label`."""
    return LabelsConfig(format="file_name", pattern=pattern)


def Unlabelled() -> LabelsConfig:
    """Returns no labels: every image belongs to the dataset, without a class."""
    return LabelsConfig(format="none")


def Split(**options: Any) -> SplitConfig:
    """Returns how images are divided: `Split(train=0.8, eval=0.2)`, with options of the section `split` if wanted."""
    section: SplitConfig = parse_section(SplitConfig, split_options(options), "split")
    return section


def inline_config(
    images: str,
    /,
    *,
    task: str = "segmentation",
    labels: LabelsConfig | None = None,
    classes: Sequence[str] | Mapping[str, int] | str | None = None,
    base: str | None = None,
    **sections: Any,
) -> Config:
    """Makes a configuration of values and sections.

    Args:
        images: folder or glob of images, or URL.
        task: `segmentation` or `classification`.
        labels: the annotations; by default the format is detected.
        classes: names of the classes in the order of their labels, names with numbers, or a file of them; by default
            those of the annotations.
        base: folder that relative paths start from; by default the working directory.
        **sections: sections of the configuration by their name in YAML, such as `split` or `shards`: an object of this
            module, or a mapping of the keys.

    Raises:
        ConfigError: a value is wrong; the message names the YAML key.
    """
    base = base or os.getcwd()
    types = typing.get_type_hints(Config)
    made: dict[str, Any] = {}
    for name, value in sections.items():
        if isinstance(value, Mapping):
            made[name] = Split(**value) if name == "split" else parse_section(types[name], value, name)
        elif value is not None:
            made[name] = value
    names = made.get("split", SplitConfig()).names
    if "evaluator" not in made and EvaluatorConfig().split not in names:
        made["evaluator"] = EvaluatorConfig(split=names[0])
    source = InputConfig(images, labels or LabelsConfig(), None if classes is None else read_classes(classes, base))
    return Config(name="examples", task=task, input=source, base=base, **made)
