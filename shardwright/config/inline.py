"""A configuration written in Python: annotation formats and options under the names that the field uses.

`RleCsv("train.csv")` is what `labels: {format: rle_csv, path: train.csv}` is in YAML. The options have the names and
the defaults of the YAML keys; `docs/how-to/ingest.md` describes them.
"""

from __future__ import annotations

import difflib
import os
import typing
from collections.abc import Mapping, Sequence
from typing import Any

from shardwright.config.config import Config
from shardwright.config.dataset import FeaturesConfig, RejectsConfig, ShardsConfig
from shardwright.config.evaluation import DriftConfig, EvaluatorConfig, SkewConfig
from shardwright.config.images import DuplicatesConfig, ImagesConfig
from shardwright.config.input import InputConfig, LabelsConfig, RleConfig
from shardwright.config.load import label_options, read_classes, split_options
from shardwright.config.parsing import check_keys, keys_of, parse_section
from shardwright.config.split import SplitConfig
from shardwright.config.transform import TextConfig
from shardwright.errors import ConfigError

Shards = ShardsConfig
Duplicates = DuplicatesConfig
Features = FeaturesConfig
Images = ImagesConfig
Rejects = RejectsConfig
Drift = DriftConfig
Skew = SkewConfig
Text = TextConfig


def RleCsv(path: str, **options: Any) -> LabelsConfig:
    """Returns labels that are run lengths in a CSV, a row for each mask.

    Args:
        path: the CSV.
        **options: `columns`, `orientation`, `features`, `key_regex` and `rle` of `input.labels`; the options of `rle`,
            `encoding`, `order` and `start`, may also be given directly.

    Raises:
        ConfigError: an option is unknown or wrong.
    """
    names = list(keys_of(RleConfig))
    direct = {name: options.pop(name) for name in names if name in options}
    for name in options.keys() - keys_of(LabelsConfig).keys():
        if close := difflib.get_close_matches(name, names, n=1):
            raise ConfigError(f"input.labels.rle.{name}", "unknown key", f"Did you mean input.labels.rle.{close[0]}?")
    return _labels("rle_csv", path, {**options, "rle": {**options.get("rle", {}), **direct}} if direct else options)


def Coco(path: str, **options: Any) -> LabelsConfig:
    """Returns labels that are a COCO instances file: polygons, run lengths, and with `boxes=True` boxes."""
    return _labels("coco_json", path, options)


def MaskImages(path: str, **options: Any) -> LabelsConfig:
    """Returns labels that are mask images in a folder: indices, palettes, colors, or a file for each class."""
    return _labels("mask_images", path, options)


def PascalVoc(path: str, **options: Any) -> LabelsConfig:
    """Returns labels that are a folder of Pascal VOC: masks, boxes and lists of splits."""
    return _labels("pascal_voc", path, options)


def Yolo(path: str, **options: Any) -> LabelsConfig:
    """Returns labels that are YOLO's text files of boxes or polygons: their folder, or the YAML file of the set."""
    return _labels("yolo", path, options)


def LabelMe(path: str, **options: Any) -> LabelsConfig:
    """Returns labels that are LabelMe's JSON files, one for each image, in a folder."""
    return _labels("labelme", path, options)


def Cvat(path: str, **options: Any) -> LabelsConfig:
    """Returns labels that are one XML file, 'CVAT for images 1.1'."""
    return _labels("cvat_xml", path, options)


def LabelStudio(path: str, **options: Any) -> LabelsConfig:
    """Returns labels that are Label Studio's JSON: polygons, boxes, ellipses, brush strokes, choices."""
    return _labels("label_studio", path, options)


def Via(path: str, **options: Any) -> LabelsConfig:
    """Returns labels that are the JSON of VIA 2; `columns={"label": NAME}` names the attribute of the class."""
    return _labels("via_json", path, options)


def LabelJsonl(path: str, **options: Any) -> LabelsConfig:
    """Returns labels that are JSON lines with the class of each image, or with boxes, as Hugging Face writes them."""
    return _labels("label_jsonl", path, options)


def VertexJsonl(path: str, **options: Any) -> LabelsConfig:
    """Returns labels that are JSON lines of Vertex AI: classes or boxes."""
    return _labels("vertex_jsonl", path, options)


def Labelbox(path: str, **options: Any) -> LabelsConfig:
    """Returns labels that are Labelbox's export as JSON lines: polygons, boxes and classifications."""
    return _labels("labelbox", path, options)


def OpenImages(path: str, **options: Any) -> LabelsConfig:
    """Returns labels that are a CSV of Open Images: boxes, classes of images, or masks in PNG files next to it."""
    return _labels("open_images", path, options)


def Panoptic(path: str, **options: Any) -> LabelsConfig:
    """Returns labels that are a COCO panoptic file; its PNGs are in the folder of the same name next to it."""
    return _labels("panoptic", path, options)


def VocBoxes(path: str, **options: Any) -> LabelsConfig:
    """Returns labels that are a folder of Pascal VOC's XML files, boxes without masks."""
    return _labels("voc_boxes", path, options)


def LabelCsv(path: str, **options: Any) -> LabelsConfig:
    """Returns labels that are classes in a CSV, one or several for each image."""
    return _labels("label_csv", path, options)


def Captions(path: str, **options: Any) -> LabelsConfig:
    """Returns labels that are texts for each image, in a CSV or JSONL file."""
    return _labels("captions", path, options)


def ClassFolders() -> LabelsConfig:
    """Returns labels that are the names of the folders in which the images are."""
    return LabelsConfig(format="class_folders")


def FileNames(regex: str | None = None) -> LabelsConfig:
    """Returns labels that are in the names of the images: before the last `_<number>`, or a regex's group `label`."""
    return LabelsConfig(format="file_name", regex=regex)


def Unlabeled() -> LabelsConfig:
    """Returns no labels: every image belongs to the dataset, without a class."""
    return LabelsConfig(format="none")


def _labels(form: str, path: str, options: Mapping[str, Any]) -> LabelsConfig:
    raw = {"format": form, "path": path, **options}
    check_keys(LabelsConfig, raw, LabelsConfig.PATH)
    section: LabelsConfig = parse_section(LabelsConfig, label_options(raw), LabelsConfig.PATH)
    return section


def Split(**options: Any) -> SplitConfig:
    """Returns how images are divided: `Split(train=0.8, eval=0.2)`, with options of the section `split` if wanted.

    Raises:
        ConfigError: an option is unknown or wrong.
    """
    known = keys_of(SplitConfig)
    shares = {
        name: value
        for name, value in options.items()
        if name not in known and isinstance(value, (int, float)) and not isinstance(value, bool)
    }
    others = {name: value for name, value in options.items() if name not in shares}
    if shares:
        others["ratios"] = {**others.get("ratios", {}), **shares}
    check_keys(SplitConfig, others, SplitConfig.PATH)
    section: SplitConfig = parse_section(SplitConfig, split_options(others)[0], SplitConfig.PATH)
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
