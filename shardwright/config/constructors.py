"""A configuration in Python: a function for each section, and one for each annotation format.

`Split(method="group", train=0.8, eval=0.2)` is what `split: {method: group, ratios: {train: 0.8, eval: 0.2}}` is in
YAML, and `RleCsv("train.csv", order="row")` is `labels: {format: rle_csv, path: train.csv, rle: {order: row}}`. Options
have the names, forms and defaults of the YAML keys. `constructors.pyi`, which is generated, has the signatures for
editors and type checkers.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import os
from collections.abc import Callable, Mapping
from inspect import Parameter, Signature
from typing import Any, TypeVar, cast

from shardwright.config.check_arguments import bind
from shardwright.config.config import Config
from shardwright.config.evaluation import DriftConfig, EvaluatorConfig, GateConfig, SkewConfig
from shardwright.config.images import DuplicatesConfig, ImagesConfig
from shardwright.config.input import InputConfig, LabelsConfig, RleConfig
from shardwright.config.loader import LoaderConfig
from shardwright.config.options import options_of
from shardwright.config.parse_values import check_keys, keys_of, parse_section, plain_value, section_of
from shardwright.config.shards import FeaturesConfig, RejectsConfig, ShardsConfig
from shardwright.config.split import SplitConfig
from shardwright.config.trainer import TrainerConfig
from shardwright.config.transform import TextConfig, TransformConfig
from shardwright.config.yaml_config import input_options, label_options, split_options
from shardwright.errors import ConfigError, UsageError
from shardwright.label_formats import FORMATS, LabelFormat

_Section = TypeVar("_Section")
# The function of a section has its name without the `Config`.
_SECTIONS: tuple[type[Any], ...] = (
    InputConfig,
    ImagesConfig,
    DuplicatesConfig,
    SplitConfig,
    ShardsConfig,
    FeaturesConfig,
    RejectsConfig,
    TransformConfig,
    TextConfig,
    LoaderConfig,
    TrainerConfig,
    EvaluatorConfig,
    GateConfig,
    DriftConfig,
    SkewConfig,
)
_OF_RUNS = tuple(keys_of(RleConfig))


def config_of(
    input: InputConfig | Mapping[str, Any] | None = None,  # noqa: A002 -- the name of the section
    *,
    task: str = "segmentation",
    base: str | None = None,
    **sections: Any,
) -> Config:
    """Makes a configuration of its sections, each an object or a mapping; `None` stands for the defaults.

    Args:
        input: the section `input`; without it there are no images, for what needs none.
        task: `segmentation` or `classification`.
        base: folder that relative paths start from; by default the working directory.
        **sections: the others by their names in YAML, and `reuse_from`.

    Raises:
        ConfigError: a value is wrong, or values contradict each other; the message names the YAML key.
    """
    kinds = {name: section_of(hint) for name, hint in keys_of(Config).items()}
    made: dict[str, Any] = {}
    for name, value in {**sections, "input": {"images": "."} if input is None else input}.items():
        kind = kinds[name]
        if value is not None:
            made[name] = value if kind is None else as_section(kind, value, name)
    names, judging = made.get("split", SplitConfig()).names, made.get("evaluator", EvaluatorConfig())
    if judging.split == EvaluatorConfig.split and judging.split not in names:
        made["evaluator"] = dataclasses.replace(judging, split=names[0])
    return Config(name="examples", task=task, base=base or os.getcwd(), **made)


def as_section(section: type[_Section], value: object, name: str) -> _Section:
    """Returns a section that was given as an object, as a mapping of its keys, or as `None` for the defaults.

    Args:
        section: class of the section.
        value: the value.
        name: the option, for messages.

    Raises:
        ConfigError: it is neither, or a value in it is wrong.
    """
    if isinstance(value, section):
        return value
    if value is None or isinstance(value, Mapping):
        made: _Section = _read(section, {str(key): inner for key, inner in (value or {}).items()})
        return made
    path = cast(Any, section).PATH
    written = 'ClassFolders(), RleCsv("train.csv") or' if section is LabelsConfig else f"{_name(section)}(...) or"
    raise ConfigError(name, f"{value!r} is not a section", f"Write {written} a mapping of the keys of {path}.")


def labels_of(raw: Mapping[str, Any]) -> LabelsConfig:
    """Returns the section `input.labels` of the keys that YAML has.

    Raises:
        ConfigError: a key is unknown, or a value wrong.
    """
    section: LabelsConfig = _read(LabelsConfig, raw)
    return section


def _read(section: type[Any], raw: Mapping[str, Any]) -> Any:
    """Makes a section of what people write in YAML; values may be sections, paths, and numbers of NumPy."""
    for name, value in raw.items():
        if type(value).__module__.startswith("tfx."):
            problem = f"a {type(value).__name__} is known only when the pipeline runs"
            raise ConfigError(f"{section.PATH}.{name}", problem, "Give the value itself.")
    raw = plain_value(raw)
    if section is SplitConfig:
        shares = {
            name: value
            for name, value in raw.items()
            if name not in keys_of(SplitConfig)
            and not isinstance(value, bool)
            and (isinstance(value, (int, float)) or (isinstance(value, str) and value.endswith("%")))
        }
        others = {name: value for name, value in raw.items() if name not in shares}
        raw = {**others, "ratios": {**(others.get("ratios") or {}), **shares}} if shares else others
    check_keys(section, raw, section.PATH)
    if section is InputConfig:
        raw = input_options(raw, os.getcwd())
    elif section is LabelsConfig:
        raw = label_options(raw)
    elif section is SplitConfig:
        raw = split_options(raw)[0]
    return parse_section(section, raw, section.PATH)


def _name(section: type[Any]) -> str:
    return section.__name__.removesuffix("Config")


def _of_section(section: type[Any]) -> Callable[..., Any]:
    """Returns the function of a section, which takes what YAML takes, such as `150MB` and `1%`."""
    parameters = list(inspect.signature(section).parameters.values())

    @functools.wraps(section, updated=())
    def make(*values: Any, **options: Any) -> Any:
        if len(values) > len(parameters):
            raise UsageError(f"{make.__name__}: too many positional arguments. Give options by their names.")
        return _read(section, {**dict(zip((one.name for one in parameters), values, strict=False)), **options})

    make.__name__ = make.__qualname__ = _name(section)
    make.__doc__ = str(section.__doc__).replace("\nAttributes:", "\nArgs:")
    if section is SplitConfig:
        make.__doc__ += "\n    **shares: share of a split by its name, as in `ratios`: `train=0.8`."
        shares = Parameter("shares", Parameter.VAR_KEYWORD)
        make.__signature__ = Signature([*parameters, shares])  # type: ignore[attr-defined] # functions may have one
    return make


def _of_format(row: LabelFormat) -> Callable[..., LabelsConfig]:
    """Returns the function of a format; what it takes first may be given without its name."""
    options = dict.fromkeys(option.partition(".")[0] for option in row.options)
    runs = _OF_RUNS if "rle" in options else ()
    names = [*(["path"] if row.path else []), *runs, *options, *(["orientation"] if row.has_masks else [])]
    names += ["confirmed"] if row.path else []
    names.sort(key=lambda name: name not in ("path", "columns" if not row.path else ""))
    fields = {one.name: one for section in (LabelsConfig, RleConfig) for one in dataclasses.fields(section)}
    parameters = [
        Parameter(
            name,
            Parameter.KEYWORD_ONLY if i else Parameter.POSITIONAL_OR_KEYWORD,
            default=Parameter.empty
            if name == "path"
            else None
            if fields[name].default is dataclasses.MISSING
            else fields[name].default,
        )
        for i, name in enumerate(names)
    ]
    signature = Signature(parameters, return_annotation=LabelsConfig)
    described_options = {**options_of(RleConfig), **options_of(LabelsConfig)}

    def make(*values: Any, **given: Any) -> LabelsConfig:
        options = {k: v for k, v in bind(signature, row.function, values, given).arguments.items() if v is not None}
        form = {name: options.pop(name) for name in runs if name in options}
        if form and isinstance(options.setdefault("rle", {}), Mapping):
            options["rle"] = {**options["rle"], **form}
        return labels_of({"format": row.name, **options})

    make.__name__ = make.__qualname__ = row.function
    make.__signature__ = signature  # type: ignore[attr-defined] # `inspect` reads it; the type of functions lacks it
    described = "".join(f"\n    {name}: {described_options[name].help}" for name in names)
    make.__doc__ = f"Returns labels that are {row.meaning}.\n" + (f"\nArgs:{described}\n" if described else "")
    return make


SECTIONS = {_name(section): _of_section(section) for section in _SECTIONS}
CONSTRUCTORS = {row.function: _of_format(row) for row in FORMATS}
globals().update(SECTIONS | CONSTRUCTORS)
__all__ = ["as_section", "config_of", "labels_of", *SECTIONS, *CONSTRUCTORS]
