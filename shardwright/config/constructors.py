"""The annotation formats in Python: a function for each row of `shardwright.label_formats`.

`RleCsv("train.csv", order="row")` is what `labels: {format: rle_csv, path: train.csv, rle: {order: row}}` is in YAML.
The options have the names and the defaults of the YAML keys. `constructors.pyi`, which is generated, has the signatures
for editors and type checkers.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from inspect import Parameter, Signature
from typing import Any

from shardwright.config.calls import bind
from shardwright.config.input import LabelsConfig, RleConfig
from shardwright.config.options import options_of
from shardwright.config.parse_values import check_keys, keys_of, parse_section, plain_value
from shardwright.config.yaml_config import label_options
from shardwright.label_formats import FORMATS, LabelFormat

_OF_RUNS = tuple(keys_of(RleConfig))


def labels_of(raw: Mapping[str, Any]) -> LabelsConfig:
    """Returns the section `input.labels` of the keys that YAML has.

    Raises:
        ConfigError: a key is unknown, or a value wrong.
    """
    raw = plain_value(raw)
    check_keys(LabelsConfig, raw, LabelsConfig.PATH)
    section: LabelsConfig = parse_section(LabelsConfig, label_options(raw), LabelsConfig.PATH)
    return section


def _constructor(row: LabelFormat) -> Callable[..., LabelsConfig]:
    """Returns the function of a format; what it takes first may be given without its name."""
    options = dict.fromkeys(option.partition(".")[0] for option in row.options)
    runs = _OF_RUNS if "rle" in options else ()
    names = [*(["path"] if row.path else []), *runs, *options, *(["orientation"] if row.has_masks else [])]
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


CONSTRUCTORS = {row.function: _constructor(row) for row in FORMATS}
globals().update(CONSTRUCTORS)
__all__ = ["labels_of", *CONSTRUCTORS]
