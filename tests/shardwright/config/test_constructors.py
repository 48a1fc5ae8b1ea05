"""The functions of sections and annotation formats: what they take, what editors see, and what each gives."""

import dataclasses
import inspect
import os
import types
import typing
from pathlib import Path

import pytest

from shardwright.config import Config, constructors
from shardwright.config.constructors import CONSTRUCTORS, SECTIONS
from shardwright.config.input import LabelsConfig
from shardwright.config.options import NO_UNIT, options_of
from shardwright.config.parse_values import keys_of, plain_value, section_of
from shardwright.errors import ConfigError, UsageError
from shardwright.label_formats import FORMATS

STUB = Path(constructors.__file__).with_suffix(".pyi")
# What YAML takes for a key, where that is more than the field of the section has.
TYPES = {
    "path": "str | os.PathLike[str] | Sequence[str] | Mapping[str, str]",
    "columns": "Mapping[str, str] | None",
    "features": "str | Sequence[str] | Mapping[str, str] | None",
    "threshold": "int | Mapping[str, int] | None",
    "rle": "RleConfig | Mapping[str, Any] | None",
    "multi_label": "bool | None",
    "boxes": "bool",
    "confirmed": "Sequence[str]",
    "start": "int | None",
    "separator": "str | None",
    "regex": "str | None",
    "key_regex": "str | None",
}
OF_INPUT = {
    "images": "str | os.PathLike[str]",
    "classes": "str | os.PathLike[str] | Sequence[str] | Mapping[str, int] | Mapping[int, str] | None",
    "span": "str | int | datetime.date | Sequence[Any]",
    "version": "str | int",
}
START = '''"""See `constructors.py`. This file is generated from the sections and `shardwright.label_formats`."""

import datetime
import os
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from shardwright.config.config import Config
from shardwright.config.shards import FeaturesConfig, RejectsConfig, ShardsConfig
from shardwright.config.evaluation import DriftConfig, EvaluatorConfig, GateConfig, SkewConfig
from shardwright.config.images import DuplicatesConfig, ImagesConfig, NearConfig
from shardwright.config.input import InputConfig, LabelsConfig, RleConfig
from shardwright.config.loader import LoaderConfig
from shardwright.config.split import GroupConfig, SplitConfig
from shardwright.config.trainer import CheckpointConfig, ProfileConfig, TrainerConfig
from shardwright.config.transform import TextConfig, TransformConfig

_Section = TypeVar("_Section")

'''
PLAIN = """def config_of(
    input: InputConfig | Mapping[str, Any] | None = None,
    *,
    task: str = "segmentation",
    base: str | None = None,
    **sections: Any,
) -> Config: ...

def as_section(section: type[_Section], value: object, name: str) -> _Section: ...

def labels_of(raw: Mapping[str, Any]) -> LabelsConfig: ...
"""


def written(hint, unit=NO_UNIT):
    """The type of a value as people write it in Python."""
    args = typing.get_args(hint)
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return " | ".join(dict.fromkeys(part for one in args for part in written(one, unit).split(" | ")))
    if hint is type(None):
        return "None"
    if dataclasses.is_dataclass(hint):
        return f"{hint.__name__} | Mapping[str, Any]"
    if typing.get_origin(hint) is tuple:
        return ("str | " if args[0] is str else "") + f"Sequence[{written(args[0])}]"
    if typing.get_origin(hint) is not None:
        return f"Mapping[str, {written(args[1])}]"
    # `5%` is a number, and so is `20MP`.
    return "float | str" if hint is float else "int | str" if hint is int and unit is not NO_UNIT else hint.__name__


def function(name, lines, result, make):
    taken = "".join(f"    {line},\n" for line in lines)
    taken = f"\n{taken}" if len(lines) > 1 else ", ".join(lines)
    text = "\n".join(f"    {line}" if line else "" for line in inspect.getdoc(make).splitlines()).strip()
    end = '"""' if "\n" not in text else '\n    """'
    return f'def {name}({taken}) -> {result.__name__}:\n    """{text}{end}\n'


def shown(default):
    """A default; that of a section or a mapping is an empty one."""
    return repr(list(default) if isinstance(default, tuple) else default).replace("'", '"')


def stub():
    """The signatures, for editors and type checkers."""
    names = "".join(f'    "{name}",\n' for name in constructors.__all__)
    parts = [f"{START}__all__ = [\n{names}]\n", PLAIN]
    for name, make in SECTIONS.items():
        section = inspect.unwrap(make)
        lines = []
        for of in dataclasses.fields(section):
            kind = written(keys_of(section)[of.name], options_of(section)[of.name].unit)
            kind = OF_INPUT.get(of.name, kind) if name == "Input" else kind
            default = "" if of.default is dataclasses.MISSING else f" = {shown(of.default)}"
            if of.default_factory is not dataclasses.MISSING:
                default = " = ..."
            lines.append(f"{of.name}: {kind}{default}")
        if name == "Split":
            lines.append("**shares: float | str")
        parts.append(function(name, lines, section, make))
    for name, make in CONSTRUCTORS.items():
        lines = []
        for one in inspect.signature(make).parameters.values():
            default = "" if one.default is one.empty else f" = {shown(one.default)}"
            lines += ["*"] if one.kind is one.KEYWORD_ONLY and "*" not in lines else []
            lines.append(f"{one.name}: {TYPES.get(one.name, 'str')}{default}")
        parts.append(function(name, lines, LabelsConfig, make))
    return "\n".join(parts)


def test_every_section_that_a_component_takes_has_a_function():
    named = {inspect.unwrap(make) for make in SECTIONS.values()}
    for name, hint in keys_of(Config).items():
        if (section := section_of(hint)) is not None and name not in ("beam", "run", "push", "vertex", "kubeflow"):
            assert section in named, name


@pytest.mark.parametrize("name", SECTIONS)
def test_a_function_gives_its_section_and_reads_it_again(name):
    needed = {"Input": {"images": "x"}, "Drift": {"reference": "x"}}.get(name, {})
    section = inspect.unwrap(SECTIONS[name])
    made = SECTIONS[name](**needed)
    assert made == section(**needed)
    assert SECTIONS[name](**plain_value(made)) == made
    for of in dataclasses.fields(section):
        assert f"\n    {of.name}: {options_of(section)[of.name].help}" in SECTIONS[name].__doc__
    with pytest.raises(ConfigError, match=f"{section.PATH}.an_option: unknown key"):
        SECTIONS[name](an_option="x", **needed)


def test_values_are_written_as_in_yaml():
    assert constructors.Split(method="group", group={"column": "patient"}, train="75%", eval=0.25) == (
        constructors.Split(method="group", group={"column": "patient"}, ratios={"train": 0.75, "eval": 0.25})
    )
    assert constructors.Shards(target_size="2MB").target_size == 2_000_000
    assert constructors.Input("x", labels=constructors.RleCsv("t.csv", order="row")).labels.rle.order == "row"
    assert dict(constructors.Input("x", classes=["b", "a"]).classes) == {"b": None, "a": None}
    assert constructors.Input("x/{SPAN}", span=(1, 3)).span == "1-3"
    assert constructors.Gate(drift=constructors.Drift("d")).drift.reference == "d"
    assert constructors.Transform(text={"note": constructors.Text(9)}).text["note"].vocabulary == 9
    assert constructors.Trainer(checkpoint={"keep": 3}).checkpoint.keep == 3


def test_the_stub_is_that_of_the_rows():
    if os.environ.get("SHARDWRIGHT_RENEW_GOLDEN"):
        STUB.write_text(stub(), encoding="utf-8")
    assert STUB.read_text(encoding="utf-8") == stub(), "SHARDWRIGHT_RENEW_GOLDEN=1 writes it again"


@pytest.mark.parametrize("row", FORMATS, ids=lambda row: row.name)
def test_a_function_gives_its_format_with_its_options_alone(row):
    make = CONSTRUCTORS[row.function]
    needed = ["a"] if row.path else []
    assert make(*needed) == LabelsConfig(format=row.name, path=(row.path and "a") or None)
    values = {"boxes": True, "beyond_image": "clip", "regex": "(?P<image>.+)" if row.path else "(?P<label>.+)",
              "key_regex": "(.+)", "columns": {"image": "x"}, "rle": {"order": "row"}, "polygons": "center",
              "features": "auto", "multi_label": True, "separator": "|", "threshold": 128, "values": "stored",
              "unlisted_values": "ignore", "orientation": "stored"}  # fmt: skip
    for name, value in values.items():
        if name in inspect.signature(make).parameters:
            value = {row.options[0].rpartition(".")[2]: "x"} if name == "columns" and row.name == "via_json" else value
            made = make(*needed, **{name: value})
            assert getattr(made, name) != getattr(LabelsConfig(), name), name
        else:
            with pytest.raises(UsageError, match=f"{row.function}: {name}: is not an option"):
                make(*needed, **{name: value})


def test_the_form_of_run_lengths_may_be_given_directly():
    both = (
        constructors.RleCsv("t.csv", order="row", start=0),
        constructors.RleCsv("t.csv", rle={"order": "row", "start": 0}),
    )
    assert both[0] == both[1]
    assert both[0].rle.given == {"order": "row", "start": 0}
    with pytest.raises(ConfigError, match=r"input\.labels\.rle\.order: 'diagonal' is not known"):
        constructors.RleCsv("t.csv", order="diagonal")
    # A part of a section and the whole of something else.
    with pytest.raises(ConfigError):
        constructors.RleCsv("t.csv", order="row", rle=7)
