"""The functions of the annotation formats: what they take, what editors see, and what each gives."""

import inspect
import os
from pathlib import Path

import pytest

from shardwright.config import constructors
from shardwright.config.constructors import CONSTRUCTORS
from shardwright.config.input import LabelsConfig
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
    "start": "int | None",
    "separator": "str | None",
    "regex": "str | None",
    "key_regex": "str | None",
}
START = '''"""See `constructors.py`. This file is generated from `shardwright.label_formats`."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

from shardwright.config.input import LabelsConfig, RleConfig

'''


def stub() -> str:
    """The signatures, for editors and type checkers."""
    names = "".join(f'    "{name}",\n' for name in ["labels_of", *CONSTRUCTORS])
    parts = [f"{START}__all__ = [\n{names}]\n", "def labels_of(raw: Mapping[str, Any]) -> LabelsConfig: ...\n"]
    for name, make in CONSTRUCTORS.items():
        lines = []
        for one in inspect.signature(make).parameters.values():
            default = "" if one.default is one.empty else f" = {one.default!r}".replace("'", '"')
            lines += ["*"] if one.kind is one.KEYWORD_ONLY and "*" not in lines else []
            lines.append(f"{one.name}: {TYPES.get(one.name, 'str')}{default}")
        taken = "".join(f"    {line},\n" for line in lines)
        taken = f"\n{taken}" if len(lines) > 1 else ", ".join(lines)
        parts.append(f'def {name}({taken}) -> LabelsConfig:\n    """{inspect.getdoc(make).splitlines()[0]}"""\n')
    return "\n".join(parts)


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
