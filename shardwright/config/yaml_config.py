"""Reads a YAML file into a `Config`; unknown keys, wrong types and bad units are errors with their YAML path.

Values are converted by the type annotations of the sections, so a new option needs a field there and nothing here.
"""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from shardwright.config import config as config_config
from shardwright.config.class_tables import read_classes
from shardwright.config.evaluation import EvaluatorConfig
from shardwright.config.input import ALL
from shardwright.config.parse_values import check_keys, parse_section, parse_string
from shardwright.config.split import EVAL, NAMES_OF_EVAL, SplitConfig
from shardwright.config.yaml_text import MOST_BYTES, parse_yaml
from shardwright.errors import ConfigError, UsageError
from shardwright.storage.listing import is_several, split_glob
from shardwright.storage.spans import Choice


def load_config(
    path: str | os.PathLike[str], *, root: str | None = None, settings: Mapping[str, Any] | None = None
) -> config_config.Config:
    """Reads and validates a configuration file.

    Args:
        path: YAML file. Relative paths inside it start from the current folder, as those on the command line do.
        root: replaces `run.root`.
        settings: values that replace those of the file, by their keys: `trainer.epochs`.

    Returns:
        The configuration; its `base` is the current folder, absolute.

    Raises:
        UsageError: the file is missing or not a YAML mapping.
        ConfigError: a key or a value is wrong; the message names the YAML path.
    """
    values = with_settings(path, settings or {})
    name = re.sub(r"[^a-z0-9]+", "-", Path(path).stem.lower()).strip("-")
    name = name if name and name[0].isalpha() else f"p-{name}".rstrip("-")
    config = parse_config(values, base=os.getcwd(), default_name=name)
    if root is not None:
        config = dataclasses.replace(config, run=dataclasses.replace(config.run, root=root))
    return config


def with_settings(path: str | os.PathLike[str], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a configuration file as `read_mapping` does, with other values for some keys.

    Raises:
        UsageError: what should have such a key is a value in the file.
    """
    values = read_mapping(path)
    for key, value in settings.items():
        *parents, last = key.split(".")
        section = values
        for number, name in enumerate(parents, 1):
            inner = section.setdefault(name, {})
            if inner is None:
                inner = section[name] = {}
            if not isinstance(inner, dict):
                above = ".".join(parents[:number])
                raise UsageError(f"--set {key}: {above} is {inner!r} in {os.fspath(path)}. Set {above} as a whole.")
            section = inner
        section[last] = value
    return values


def read_mapping(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Returns a configuration file as it is written, without checking its keys; see `load_config`."""
    # A path would join the two slashes of a URL.
    file = os.fspath(path)
    try:
        # It need not be a regular file: a shell's `<(...)` is a pipe.
        with open(file, "rb", opener=_open_at_once) as opened:
            data = opened.read(MOST_BYTES + 1)
        text = data.decode("utf-8-sig")
    except FileNotFoundError:
        raise UsageError(f"{file}: no such configuration file. Check the path.") from None
    except IsADirectoryError:
        if Path(file, "manifest.json").is_file():
            raise UsageError(f"{file}: is a dataset. Give the YAML file of a configuration in its place.") from None
        fix = f"Give a YAML file, which `shardwright init {file} --out NAME.yaml` writes."
        raise UsageError(f"{file}: is a folder. {fix}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{file}: cannot be read as UTF-8 text ({error}). Give a YAML file.") from None
    if len(data) > MOST_BYTES:
        raise UsageError(f"{file}: has more than {MOST_BYTES:,} bytes. Give the YAML file of a configuration.")
    try:
        raw = parse_yaml(text)
    except yaml.YAMLError as error:
        raise UsageError(f"{file}: not valid YAML: {_yaml_problem(error)}") from None
    except (ValueError, RecursionError) as error:
        # An impossible date, a number of thousands of digits, brackets within brackets.
        raise UsageError(f"{file}: not valid YAML: {error}") from None
    if not isinstance(raw, dict):
        problem = "is empty" if raw is None else f"contains {type(raw).__name__}, not a mapping"
        raise UsageError(f"{file}: {problem}. Start with `input: {{images: FOLDER}}`.")
    return raw


def _open_at_once(path: str, flags: int) -> int:
    """Opens a file; a pipe that nobody writes into counts as empty, where opening it would wait for a writer."""
    descriptor = os.open(path, flags | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    os.set_blocking(descriptor, True)
    return descriptor


def as_config(config: str | os.PathLike[str] | config_config.Config) -> config_config.Config:
    """Returns a configuration as it is, or that of a YAML file.

    Raises:
        UsageError: it is neither, or the file is wrong.
    """
    if isinstance(config, config_config.Config):
        return config
    if not isinstance(config, (str, os.PathLike)):
        problem = f"a value of the type {type(config).__name__} is not a configuration"
        raise UsageError(f"config: {problem}. Give the path of a YAML file, or a Config of load_config.")
    return load_config(config)


def parse_config(raw: Mapping[str, Any], *, base: str, default_name: str = "pipeline") -> config_config.Config:
    """Validates a configuration that is already a mapping; see `load_config`."""
    values = dict(raw)
    if "base" in values:
        raise ConfigError("base", "unknown key", "Remove base; relative paths start from the current folder.")
    values.setdefault("name", default_name)
    values.setdefault("task", "segmentation")
    check_keys(config_config.Config, values, "")
    if values.get("input") is None or (isinstance(values["input"], Mapping) and "images" not in values["input"]):
        raise ConfigError("input.images", "missing", "Give a folder or a glob of images.")
    if isinstance(values["input"], Mapping):
        values["input"] = input_options(values["input"], base)
    notes: tuple[str, ...] = ()
    if "split" in values:
        values["split"], renamed = split_options(values["split"])
        notes = tuple(f"the split {name} is understood as {split}" for name, split in renamed.items())
        evaluator = values.get("evaluator")
        if isinstance(evaluator, Mapping) and str(evaluator.get("split")) in renamed:
            values["evaluator"] = {**evaluator, "split": renamed[str(evaluator["split"])]}
        if (judged := _judged_split(values)) is not None:
            values["evaluator"] = {**(values.get("evaluator") or {}), "split": judged}
            notes += (f"evaluator.split: {judged}, since there is no split test",)
    config = parse_section(config_config.Config, values, "")
    return dataclasses.replace(config, base=base, notes=notes)


def _judged_split(values: Mapping[str, Any]) -> str | None:
    """Returns the split that takes the place of `evaluator.split`'s default, where there is no such split."""
    evaluator = values.get("evaluator") or {}
    if not isinstance(evaluator, Mapping) or "split" in evaluator or not isinstance(values["split"], Mapping):
        return None
    try:
        names = parse_section(SplitConfig, values["split"], SplitConfig.PATH).names
    except (ConfigError, TypeError):
        return None  # The whole configuration reports it.
    return None if EvaluatorConfig().split in names else EVAL if EVAL in names else names[0]


def input_options(raw: Mapping[str, Any], base: str) -> dict[str, Any]:
    """Reads what people write in `input` as its options; a file of classes starts from `base`.

    Raises:
        ConfigError: classes or labels have another form.
    """
    options = dict(raw)
    for name in ("span", "version"):
        if name in options:
            options[name] = Choice.written(options[name])
    if options.get("classes") is not None:
        options["classes"] = read_classes(options["classes"], base)
    if "labels" in options:
        options["labels"] = label_options(options["labels"])
    return options


def label_options(raw: object) -> object:
    """Reads what people write in `input.labels` as its options.

    Raises:
        ConfigError: it is a text, or its files are not.
    """
    if isinstance(raw, str):
        raise ConfigError("input.labels", f"{raw!r} is not a mapping", f"Write labels: {{path: {raw}}}.")
    if isinstance(raw, Mapping) and (isinstance(raw.get("path"), (list, Mapping)) or is_several(raw.get("path"))):
        if raw.get("files"):
            problem = "given, and input.labels.path names several files, too"
            raise ConfigError("input.labels.files", problem, "Write the folder into input.labels.path.")
        folder, files = _label_files(raw["path"])
        raw = {**raw, "path": folder, "files": files}
    if isinstance(raw, Mapping) and isinstance(raw.get("threshold"), (int, float)):
        raw = {**raw, "threshold": {ALL: raw["threshold"]}}
    if isinstance(raw, Mapping) and "features" in raw:
        # Columns given as `auto` (all), `none`, a list, or with their types.
        features = raw["features"]
        if features in ("auto", "none"):
            features = {"*": "auto"} if features == "auto" else {}
        elif isinstance(features, list):
            names = (parse_string(header, f"input.labels.features[{i}]") for i, header in enumerate(features))
            features = dict.fromkeys(names, "auto")
        return {**raw, "features": features}
    return raw


def _label_files(path: str | list[Any] | Mapping[Any, Any]) -> tuple[str, dict[str, str]]:
    """Reads a list, a glob, or a mapping of splits to files as the folder of all of them, and the files below it.

    A key is the split, or where none is given the file itself.
    """
    if isinstance(path, str):
        folders, pattern = split_glob(parse_string(path, "input.labels.path"))
        return folders or ".", {"*": "/".join(pattern)}
    named = path.items() if isinstance(path, Mapping) else [(f"[{i}]", file) for i, file in enumerate(path)]
    texts = {str(key): parse_string(file, f"input.labels.path.{key}") for key, file in named}
    if not texts:
        raise ConfigError("input.labels.path", "names no file", "Give the files of annotations.")
    parts = [text.split("/")[:-1] for text in texts.values()]
    shared = 0
    while all(len(part) > shared and part[shared] == parts[0][shared] for part in parts):
        shared += 1
    folder = "/".join(parts[0][:shared])
    files = {key: "/".join(text.split("/")[shared:]) for key, text in texts.items()}
    rooted = any(text.startswith("/") for text in texts.values())
    if (rooted and not folder) or folder in ("gs:", "gs:/", "s3:", "s3:/"):
        raise ConfigError("input.labels.path", "the files have no folder in common", "Put them into one folder.")
    return folder or ".", files if isinstance(path, Mapping) else {name: name for name in files.values()}


def _yaml_problem(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or str(error).splitlines()[0]
    if problem.startswith("but "):
        problem = f"{getattr(error, 'context', '')} {problem}"
    return f"{problem} (line {mark.line + 1}, column {mark.column + 1})" if mark else str(problem)


def split_options(raw: object) -> tuple[object, dict[str, str]]:
    """Reads what people write in `split` as its options.

    Returns:
        The options, and the other names of `eval` that were found: `val` -> `eval`.

    Raises:
        ConfigError: the shares do not go with the method, or a split has two names.
    """
    if not isinstance(raw, Mapping):
        return raw, {}
    options, renamed = dict(raw), dict[str, str]()
    for key in ("ratios", "from_lists"):
        if isinstance(options.get(key), Mapping):
            path = f"split.{key}"
            splits = options[key]
            others = [name for name in splits if name in NAMES_OF_EVAL]
            if (others and EVAL in splits) or len(others) > 1:
                second = EVAL if EVAL in splits else others[1]
                problem = f"is another name of {EVAL}, and {path}.{second} is given, too"
                raise ConfigError(f"{path}.{others[0]}", problem, f"Give one of them, as {EVAL}.")
            renamed.update(dict.fromkeys(others, EVAL))
            options[key] = {EVAL if name in others else name: value for name, value in splits.items()}
    if str(options.get("unlisted_images")) in renamed:
        options["unlisted_images"] = EVAL
    if options.get("method") == "kfold" and isinstance(options.get("ratios"), Mapping):
        for name in ("train", EVAL):
            if name in options["ratios"]:
                raise ConfigError(
                    f"split.ratios.{name}", "follows from split.num_folds", f"Remove split.ratios.{name}."
                )
        # `test: 0` puts all images into folds, while leaving it out means the default share.
        options["ratios"] = {name: share for name, share in options["ratios"].items() if share != 0}
    return options, renamed
