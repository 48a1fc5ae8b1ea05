"""A configuration written in Python: annotation formats and options under the names that the field uses.

`RleCsv("train.csv")` is what `labels: {format: rle_csv, path: train.csv}` is in YAML. The options have the names and
the defaults of the YAML keys; `shardwright docs how-to/ingest` describes them.
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
import os
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar, cast

from shardwright.config.calls import check_call, unknown_option
from shardwright.config.config import Config
from shardwright.config.dataset import FeaturesConfig, RejectsConfig, ShardsConfig
from shardwright.config.evaluation import DriftConfig, EvaluatorConfig, SkewConfig
from shardwright.config.images import DuplicatesConfig, ImagesConfig
from shardwright.config.input import InputConfig, LabelsConfig, RleConfig
from shardwright.config.load import label_options, read_classes, split_options
from shardwright.config.parsing import check_keys, keys_of, parse_section, plain_value
from shardwright.config.split import SplitConfig
from shardwright.config.transform import TextConfig
from shardwright.errors import ConfigError, UsageError
from shardwright.storage.spans import NEWEST, Choice

_Section = TypeVar("_Section")
# Keys of `input.labels` that a constructor sets itself.
_SET = ("format", "path", "files")


def _constructor(section: type[_Section]) -> Callable[..., _Section]:
    """Returns a section's constructor that takes what YAML takes, such as `150MB` and `1%`, with the same errors."""
    names = [field.name for field in dataclasses.fields(cast(Any, section))]

    @functools.wraps(section, updated=())
    def make(*values: Any, **options: Any) -> _Section:
        if len(values) > len(names):
            raise UsageError(f"{make.__name__}: too many positional arguments. Give options by their names.")
        given = {**dict(zip(names, values, strict=False)), **options}
        made: _Section = parse_section(
            section, {name: plain_value(value) for name, value in given.items()}, cast(Any, section).PATH
        )
        return made

    make.__name__ = make.__qualname__ = section.__name__.removesuffix("Config")
    return make


Shards = _constructor(ShardsConfig)
Duplicates = _constructor(DuplicatesConfig)
Features = _constructor(FeaturesConfig)
Images = _constructor(ImagesConfig)
Rejects = _constructor(RejectsConfig)
Drift = _constructor(DriftConfig)
Skew = _constructor(SkewConfig)
Text = _constructor(TextConfig)


@check_call
def RleCsv(path: str, **options: Any) -> LabelsConfig:
    """Returns labels that are run lengths in a CSV, a row for each mask.

    Args:
        path: the CSV.
        **options: `columns`, `orientation`, `features`, `key_regex` and `rle` of `input.labels`; the options of `rle`,
            `encoding`, `order` and `start`, may also be given directly.

    Raises:
        ConfigError: an option is unknown or wrong.
    """
    direct = list(keys_of(RleConfig))
    _check_names("rle_csv", options, [*direct, "columns", "orientation", "features", "key_regex", "rle"])
    form = {name: options.pop(name) for name in direct if name in options}
    return _labels("rle_csv", path, {**options, "rle": {**options.get("rle", {}), **form}} if form else options)


@check_call
def Coco(path: str, **options: Any) -> LabelsConfig:
    """Returns labels that are a COCO instances file: polygons, run lengths, and with `boxes=True` boxes."""
    return _labels("coco_json", path, options)


@check_call
def MaskImages(path: str, **options: Any) -> LabelsConfig:
    """Returns labels that are mask images in a folder: indices, palettes, colors, or a file for each class."""
    return _labels("mask_images", path, options)


@check_call
def PascalVoc(path: str, **options: Any) -> LabelsConfig:
    """Returns labels that are a folder of Pascal VOC: masks, boxes and lists of splits."""
    return _labels("pascal_voc", path, options)


@check_call
def Yolo(path: str, **options: Any) -> LabelsConfig:
    """Returns labels that are YOLO's text files of boxes or polygons: their folder, or the YAML file of the set."""
    return _labels("yolo", path, options)


@check_call
def LabelMe(path: str, **options: Any) -> LabelsConfig:
    """Returns labels that are LabelMe's JSON files, one for each image, in a folder."""
    return _labels("labelme", path, options)


@check_call
def Cvat(path: str, **options: Any) -> LabelsConfig:
    """Returns labels that are one XML file, 'CVAT for images 1.1'."""
    return _labels("cvat_xml", path, options)


@check_call
def LabelStudio(path: str, **options: Any) -> LabelsConfig:
    """Returns labels that are Label Studio's JSON: polygons, boxes, ellipses, brush strokes, choices."""
    return _labels("label_studio", path, options)


@check_call
def Via(path: str, **options: Any) -> LabelsConfig:
    """Returns labels that are the JSON of VIA 2; `columns={"label": NAME}` names the attribute of the class."""
    return _labels("via_json", path, options)


@check_call
def LabelJsonl(path: str, **options: Any) -> LabelsConfig:
    """Returns labels that are JSON lines with the class of each image, or with boxes, as Hugging Face writes them."""
    return _labels("label_jsonl", path, options)


@check_call
def VertexJsonl(path: str, **options: Any) -> LabelsConfig:
    """Returns labels that are JSON lines of Vertex AI: classes or boxes."""
    return _labels("vertex_jsonl", path, options)


@check_call
def Labelbox(path: str, **options: Any) -> LabelsConfig:
    """Returns labels that are Labelbox's export as JSON lines: polygons, boxes and classifications."""
    return _labels("labelbox", path, options)


@check_call
def Supervisely(path: str, **options: Any) -> LabelsConfig:
    """Returns labels that are a project of Supervisely: bitmaps, polygons, rectangles and tags."""
    return _labels("supervisely", path, options)


@check_call
def OpenImages(path: str, **options: Any) -> LabelsConfig:
    """Returns labels that are a CSV of Open Images: boxes, classes of images, or masks in PNG files next to it."""
    return _labels("open_images", path, options)


@check_call
def BoxCsv(path: str, **options: Any) -> LabelsConfig:
    """Returns labels that are a CSV with a row for each box: image, class, and four edges or a corner and a size."""
    return _labels("box_csv", path, options)


@check_call
def Panoptic(path: str, **options: Any) -> LabelsConfig:
    """Returns labels that are a COCO panoptic file; its PNGs are in the folder of the same name next to it."""
    return _labels("panoptic", path, options)


@check_call
def VocBoxes(path: str, **options: Any) -> LabelsConfig:
    """Returns labels that are a folder of Pascal VOC's XML files, boxes without masks."""
    return _labels("voc_boxes", path, options)


@check_call
def LabelCsv(path: str, **options: Any) -> LabelsConfig:
    """Returns labels that are classes in a CSV, one or several for each image."""
    return _labels("label_csv", path, options)


@check_call
def Captions(path: str, **options: Any) -> LabelsConfig:
    """Returns labels that are texts for each image, in a CSV, JSONL or COCO captions file."""
    return _labels("captions", path, options)


@check_call
def Numbers(path: str, **options: Any) -> LabelsConfig:
    """Returns labels that are numbers for each image and no classes, in a CSV or JSONL file."""
    return _labels("numbers", path, options)


@check_call
def TfRecords(columns: Mapping[str, str] | None = None, **options: Any) -> LabelsConfig:
    """Returns labels that are in the records themselves: `images` is a folder of TFRecords, tar or ArrayRecord files.

    Args:
        columns: which feature is what, where the names are not usual ones: `{"image": "jpeg", "label": "class_id",
            "key": "id"}`; also `mask` and `caption`.
        **options: other keys of `input.labels`.

    Raises:
        ConfigError: an option is unknown or wrong.
    """
    _check_names("tfrecord", options, [name for name in keys_of(LabelsConfig) if name not in (*_SET, "columns")])
    return _labels_of({"format": "tfrecord", "columns": {} if columns is None else columns, **options})


@check_call
def ClassFolders() -> LabelsConfig:
    """Returns labels that are the names of the folders in which the images are."""
    return LabelsConfig(format="class_folders")


@check_call
def FileNames(regex: str | None = None) -> LabelsConfig:
    """Returns labels that are in the names of the images: before the last `_<number>`, or a regex's group `label`."""
    return _labels_of({"format": "file_name", "regex": regex})


@check_call
def Unlabeled() -> LabelsConfig:
    """Returns no labels: every image belongs to the dataset, without a class."""
    return LabelsConfig(format="none")


def _labels(form: str, path: str, options: Mapping[str, Any]) -> LabelsConfig:
    _check_names(form, options, [name for name in keys_of(LabelsConfig) if name not in _SET])
    return _labels_of({"format": form, "path": path, **options})


def _labels_of(raw: dict[str, Any]) -> LabelsConfig:
    raw = plain_value(raw)
    check_keys(LabelsConfig, raw, LabelsConfig.PATH)
    section: LabelsConfig = parse_section(LabelsConfig, label_options(raw), LabelsConfig.PATH)
    return section


def _check_names(form: str, options: Mapping[str, Any], names: Sequence[str]) -> None:
    """Refuses an option that a constructor of labels does not have."""
    for name in options:
        if name not in names:
            problem = f"is not an option of labels of the format {form}"
            raise unknown_option(f"{LabelsConfig.PATH}.{name}", name, names, problem)


@check_call
def Split(**options: Any) -> SplitConfig:
    """Returns how images are divided: `Split(train=0.8, eval=0.2)`, with options of the section `split` if wanted.

    Raises:
        ConfigError: an option is unknown or wrong.
    """
    known = keys_of(SplitConfig)
    options = plain_value(options)
    shares = {
        name: value
        for name, value in options.items()
        if name not in known and not isinstance(value, bool) and (isinstance(value, (int, float)) or _is_percent(value))
    }
    others = {name: value for name, value in options.items() if name not in shares}
    if shares:
        others["ratios"] = {**others.get("ratios", {}), **shares}
    check_keys(SplitConfig, others, SplitConfig.PATH)
    section: SplitConfig = parse_section(SplitConfig, split_options(others)[0], SplitConfig.PATH)
    return section


def _is_percent(value: object) -> bool:
    return isinstance(value, str) and value.endswith("%")


# One example of each section, for messages.
_WRITTEN: dict[type[Any], str] = {
    ShardsConfig: "Shards(count=4)",
    DuplicatesConfig: 'Duplicates(exact="first")',
    FeaturesConfig: 'Features(preset="tfds")',
    ImagesConfig: 'Images(orientation="apply")',
    LabelsConfig: 'ClassFolders(), or RleCsv("train.csv")',
    RejectsConfig: "Rejects(max_fraction=0.05)",
    SplitConfig: "Split(train=0.8, eval=0.2)",
    SkewConfig: "Skew(images=2000)",
    TextConfig: "Text(vocabulary=2000)",
}


def as_section(section: type[Any], value: object, name: str) -> Any:
    """Returns a section that was given as an object of this module, or as a mapping of its keys.

    Args:
        section: class of the section.
        value: the value.
        name: the option, for messages.

    Raises:
        ConfigError: it is neither, or a value in it is wrong.
    """
    if isinstance(value, section):
        return value
    if isinstance(value, Mapping) and section is SplitConfig:
        return Split(**{str(key): inner for key, inner in value.items()})
    if isinstance(value, Mapping) and section is LabelsConfig:
        # As an error about records recommends it.
        return _labels_of({str(key): inner for key, inner in value.items()})
    if isinstance(value, Mapping):
        return parse_section(section, plain_value(value), section.PATH)
    if section is DriftConfig:
        written = f"Drift(reference={value if isinstance(value, str) else 'DATASET'!r})"
    else:
        written = _WRITTEN.get(section, "a mapping of its keys")
    raise ConfigError(name, f"{value!r} is not a section", f"Write {written}.")


def read_span(option: str, span: object) -> str:
    """Returns a span as `input.span` holds it: `newest`, `all`, `7` or `7-9`.

    Raises:
        ConfigError: it is something else than `input.span` in YAML may be.
    """
    written = Choice.written(list(span) if isinstance(span, tuple) else span)
    return Choice.parse(option, written if isinstance(written, str) else repr(written)).text


def inline_config(
    images: str,
    /,
    *,
    task: str = "segmentation",
    labels: LabelsConfig | None = None,
    classes: Sequence[str] | Mapping[str, int] | str | None = None,
    verify: str | None = None,
    base: str | None = None,
    span: object = NEWEST,
    **sections: Any,
) -> Config:
    """Makes a configuration of values and sections.

    Args:
        images: folder or glob of images, or URL.
        task: `segmentation` or `classification`.
        labels: the annotations; by default the format is detected.
        classes: names of the classes in the order of their labels, names with numbers, or a file of them; by default
            those of the annotations.
        verify: `images.verify`, in place of that of the section `images`.
        base: folder that relative paths start from; by default the working directory.
        span: as `input.span` in YAML.
        **sections: sections of the configuration by their name in YAML, such as `split` or `shards`: an object of this
            module, or a mapping of the keys.

    Raises:
        ConfigError: a value is wrong; the message names the YAML key.
    """
    base = base or os.getcwd()
    types = typing.get_type_hints(Config)
    made: dict[str, Any] = {}
    for name, value in sections.items():
        if name not in types:
            close = difflib.get_close_matches(name, types, n=1)
            fix = f"Did you mean {close[0]}?" if close else "See the options of the component."
            raise ConfigError(name, "is not an option", fix)
        if value is not None:
            made[name] = as_section(types[name], value, name)
    if verify is not None:
        made["images"] = dataclasses.replace(made.get("images", ImagesConfig()), verify=plain_value(verify))
    names = made.get("split", SplitConfig()).names
    if "evaluator" not in made and EvaluatorConfig().split not in names:
        made["evaluator"] = EvaluatorConfig(split=names[0])
    source = InputConfig(
        images,
        labels or LabelsConfig(),
        None if classes is None else read_classes(plain_value(classes), base),
        span=read_span("input.span", span),
    )
    return Config(name="examples", task=task, input=source, base=base, **made)
