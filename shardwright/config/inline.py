"""A configuration written in Python: sections under the names that the field uses, and all of it from its values.

The options have the names and the defaults of the YAML keys; `shardwright docs how-to/ingest` describes them. For
annotations see `shardwright.config.constructors`.
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
import os
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar, cast

from shardwright.config.calls import check_call
from shardwright.config.config import Config
from shardwright.config.constructors import labels_of
from shardwright.config.evaluation import DriftConfig, EvaluatorConfig, SkewConfig
from shardwright.config.images import DuplicatesConfig, ImagesConfig
from shardwright.config.input import InputConfig, LabelsConfig
from shardwright.config.parse_values import check_keys, keys_of, parse_section, plain_value
from shardwright.config.shards import FeaturesConfig, RejectsConfig, ShardsConfig
from shardwright.config.split import SplitConfig
from shardwright.config.transform import TextConfig
from shardwright.config.yaml_config import read_classes, split_options
from shardwright.errors import ConfigError, UsageError
from shardwright.storage.spans import NEWEST, Choice

_Section = TypeVar("_Section")


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
        return labels_of({str(key): inner for key, inner in value.items()})
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
