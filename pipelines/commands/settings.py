"""The configuration of a command: its file, with the values of `--set` in place of those of the file."""

from __future__ import annotations

import shlex
from argparse import Namespace
from typing import Any

import yaml

from shardwright.config import Config, load_config
from shardwright.config.yaml_text import parse_yaml
from shardwright.errors import UsageError


def configuration(options: Namespace) -> Config:
    """Reads and checks the configuration that a command was called with; see `load_config`."""
    return load_config(options.config, settings=settings_of(options))


def config_words(options: Namespace) -> str:
    """Returns the configuration of a command as the next command takes it: the file, and each `--set` again."""
    return shlex.join([options.config, *(word for text in options.set for word in ("--set", text))])


def settings_of(options: Namespace) -> dict[str, Any]:
    """Returns the values of `--set` by their keys; of a key that is named twice the last one counts.

    Raises:
        UsageError: one is not KEY=VALUE, or its value is not YAML.
    """
    settings: dict[str, Any] = {}
    for text in options.set:
        path, equals, value = text.partition("=")
        if not equals or not all(path.split(".")):
            raise UsageError(f"--set {text}: is not KEY=VALUE. Write e.g. --set input.labels.rle.order=row.")
        try:
            settings[path] = parse_yaml(value)
        except (yaml.YAMLError, ValueError, RecursionError):
            raise UsageError(f"--set {path}: {value!r} is not YAML. Put it in quotes.") from None
    return settings
