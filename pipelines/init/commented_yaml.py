"""Writes a configuration as YAML with comments: what was detected, and the values that people change first."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

from shardwright.config import Config
from shardwright.config.options import BYTES
from shardwright.config.parse_values import option_at
from shardwright.config.yaml_text import dump_yaml
from shardwright.images.colors import COLOR, show_value
from shardwright.pipelines.commands.validate import plain_values
from shardwright.pipelines.init.spell_out import ResolvedInput
from shardwright.text.escaping import escape

_WIDTH = 110
# Sections, and of each the keys that are written even where they have their default.
_SECTIONS: Mapping[str, tuple[str, ...]] = {
    "name": (),
    "task": (),
    "input": ("images", "labels", "classes", "unlisted_images"),
    "images": ("verify",),
    "duplicates": ("exact",),
    "split": ("ratios", "method"),
    "shards": ("target_size",),
    "rejects": (),
}
_OF_TRAINING: Mapping[str, tuple[str, ...]] = {
    "transform": ("size", "resize"),
    "loader": ("augment",),
    "trainer": ("epochs", "batch_size", "learning_rate"),
    "evaluator": ("split",),
}
_COMMENTS = {
    "input": "The images and their annotations. Relative paths start from the folder that the command is called in.",
    "images.verify": "header, or full: every image is decoded once, and hashes and quality become features.",
    "duplicates.exact": "Files with the same bytes: keep (all of them in one split), first, or fail.",
    "split": "Which images a model learns from, and on which it is evaluated.",
    "shards.target_size": "Bytes of a TFRecord file, about. Or: count, records.",
    "transform": "The images that the model is trained on, prepared and resized.",
    "loader.augment": "For example [flip_left_right, flip_up_down].",
    "evaluator.split": "A model is blessed by its result on this split.",
}


def yaml_text(resolved: ResolvedInput, header: list[str]) -> str:
    """Returns the text of the file.

    Args:
        resolved: the configuration.
        header: lines of comments to begin with.
    """
    # Comments name files, and a name may contain characters that YAML does not take, or that end a comment.
    lines = [*map(escape, header), ""]
    comments = {**_COMMENTS, **resolved.comments}
    values = plain_values(resolved.config)
    defaults = plain_values(_defaults(resolved.config))
    known = {**_SECTIONS, **(_OF_TRAINING if resolved.trainable else {})}
    # The others are those that --set gave.
    given = {name: () for name in values if name not in {*_SECTIONS, *_OF_TRAINING} and values[name] != defaults[name]}
    for name, always in {**known, **given}.items():
        section = values[name]
        explained = [path.partition(".")[2] for path in resolved.comments if path.startswith(f"{name}.")]
        if isinstance(section, dict):
            section = _chosen(section, defaults[name], (*always, *explained))
        if section not in ({}, None):
            lines += _lines({name: section}, "", 0, comments)
    return "\n".join(lines) + "\n"


def _defaults(config: Config) -> Config:
    return Config(name=config.name, task=config.task, input=type(config.input)(images=config.input.images))


def _chosen(section: Mapping[str, Any], defaults: Mapping[str, Any], always: tuple[str, ...]) -> dict[str, Any]:
    """Returns the values of a section that are not the default, and the named ones; none that is not given."""
    chosen = {}
    for name, value in section.items():
        if name != "ratios" and isinstance(value, dict) and isinstance(defaults.get(name), dict) and defaults[name]:
            value = _chosen(value, defaults[name], ())
        elif name in defaults and value == defaults[name] and name not in always:
            continue
        if value is not None and value != {}:
            chosen[name] = value
    return chosen


def _lines(values: Mapping[str, Any], above: str, depth: int, comments: Mapping[str, str]) -> Iterator[str]:
    indent = "  " * depth
    for name, value in values.items():
        path = f"{above}.{name}".lstrip(".")
        if path in comments:
            yield from textwrap.wrap(
                escape(comments[path], lines=True),
                _WIDTH,
                initial_indent=f"{indent}# ",
                subsequent_indent=f"{indent}# ",
            )
        key = _scalar(name)
        if isinstance(value, dict) and (depth == 0 or path == "input.labels"):
            yield f"{indent}{key}:"
            yield from _lines(value, path, depth + 1, comments)
        else:
            yield f"{indent}{key}: {_scalar(_readable(path, value))}"


def _readable(path: str, value: Any) -> Any:
    """Returns a size, or the colors of classes, as people write them."""
    if path == "input.classes" and isinstance(value, dict):
        return {name: show_value(number) if number >= COLOR else number for name, number in value.items()}
    whole = isinstance(value, int) and value >= 10**6 and value % 10**6 == 0
    option = option_at(Config, path) if whole else None
    return f"{value // 10**6}MB" if option is not None and option.unit is BYTES else value


def _scalar(value: Any) -> str:
    text = dump_yaml(value, default_flow_style=True, width=float("inf"))
    return text.removesuffix("\n").removesuffix("\n...")
