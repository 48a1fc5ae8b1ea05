"""All that is wrong with a configuration at once: what is refused is set aside, and the rest is tried again."""

from __future__ import annotations

import copy
import os
import re
from collections.abc import Mapping
from typing import Any

from shardwright.config.config import Config
from shardwright.config.yaml_config import load_config, parse_config, with_settings
from shardwright.errors import ConfigError

# More than anyone corrects in one go; it also ends a file that is something else.
_MOST = 50


def check_file(
    path: str | os.PathLike[str], settings: Mapping[str, Any] | None = None
) -> tuple[Config | None, list[ConfigError]]:
    """Reads a configuration file and finds everything that is wrong with it.

    Args:
        path: the file.
        settings: see `load_config`.

    Returns:
        The configuration, or `None` where anything is wrong; and the errors in the order in which they were found, one
        for each key.

    Raises:
        UsageError: the file is missing, or not a YAML mapping.
    """
    try:
        return load_config(path, settings=settings), []
    except ConfigError as error:
        first = error
    return None, problems_of(with_settings(path, settings or {}), first)


def problems_of(raw: Mapping[str, Any], first: ConfigError) -> list[ConfigError]:
    """Returns the errors of a mapping, of which the first is known.

    A key that is refused is left out for the next attempt, with its default in its place. An error that may follow from
    such a default is not returned: it is found by the next call if it is real. If the images are missing, the search
    goes on with others. Any other error that no key can be left out for ends the search.
    """
    left: dict[str, Any] = copy.deepcopy(dict(raw))
    errors, left_out = [first], [first.path]
    while len(left_out) < _MOST:
        if not _leave_out(left, left_out[-1]):
            # The only key without a default may be missing.
            if left_out[-1] != "input.images":
                break
            inner = left.get("input")
            left["input"] = {**(inner if isinstance(inner, dict) else {}), "images": "*"}
        try:
            parse_config(left, base=os.getcwd())
        except ConfigError as error:
            if error.path in left_out:
                break
            # What concerns a section that lacks a key, or is below the key, or names it.
            if not any(
                path.startswith(f"{error.path}.")
                or error.path.startswith(f"{path}.")
                or re.search(rf"(?<![\w.]){re.escape(path)}(?!\w|\.\w)", f"{error.problem} {error.fix}")
                for path in left_out
            ):
                errors.append(error)
            left_out.append(error.path)
        else:
            break
    return errors


def _leave_out(raw: dict[str, Any], path: str) -> bool:
    """Removes the value at a path; returns whether there was one. Below a list or a text it removes that."""
    inner: Any = raw
    # Of a list all entries are left out.
    *folders, last = re.sub(r"\[\d+\]", "", path).split(".")
    for name in folders:
        if not isinstance(inner.get(name), dict):
            last = name
            break
        inner = inner[name]
    # YAML has keys that are not texts, and null is a value.
    keys = [key for key in inner if str(key) == last]
    for key in keys:
        del inner[key]
    return bool(keys)
