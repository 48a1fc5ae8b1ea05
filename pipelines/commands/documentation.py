"""The page of the documentation that a help text or an error ends with."""

from __future__ import annotations

import argparse
import re
from typing import Any

from shardwright.errors import CheckFailed, ConfigError, DatasetError, NotFound, StorageError
from shardwright.extras import MissingExtra
from shardwright.pipelines.commands.catalog import ENTRIES

COMMANDS_PAGE = "reference/command-line.md"
_DOCUMENTATION = "docs/"
_MESSAGES = "reference/messages.md"
# Kind of error -> its page. The first kind that fits counts.
ERROR_PAGES: dict[type[Exception], str] = {
    MissingExtra: "get-started/installation.md#which-command-needs-which-extra",
    NotFound: f"{_MESSAGES}#paths",
    CheckFailed: f"{_MESSAGES}#failed-checks",
    StorageError: f"{_MESSAGES}#buckets-and-disks",
    DatasetError: f"{_MESSAGES}#damaged-datasets",
    OSError: f"{_MESSAGES}#buckets-and-disks",
}


def address(page: str) -> str:
    """Returns the address of a page of `docs/`, which may end with an anchor."""
    return f"{_DOCUMENTATION}{page}"


def page_of_error(error: Exception, options: argparse.Namespace) -> str:
    """Returns the page that explains an error.

    Args:
        error: an error that users see.
        options: of the command line, as far as it was parsed: the page of the command serves for all other errors.
    """
    if isinstance(error, ConfigError) and not error.path.startswith("-"):
        return f"reference/configuration.md#{section_anchor(error.path)}"
    for kind, page in ERROR_PAGES.items():
        if isinstance(error, kind):
            return page
    command = getattr(options, "invoked", None)
    return ENTRIES[command].page if command in ENTRIES else COMMANDS_PAGE


def section_anchor(path: str) -> str:
    """Returns the anchor of the section of a YAML path on the page of the configuration.

    Args:
        path: for example `input.labels.runs` or `kubeflow.volumes[0].claim`.
    """
    from shardwright.config.json_schema import config_schema

    properties: Any = config_schema()["properties"]
    anchor = ""
    for key in re.sub(r"\[[^]]*\]", "", path).split("."):
        value = properties.get(key, {})
        section = next((one for one in (value, *value.get("anyOf", ())) if "properties" in one), None)
        # Rows under names of the user's own, such as those of components, share a section of the page.
        rows = value.get("additionalProperties")
        if section is None and not (isinstance(rows, dict) and "properties" in rows):
            break
        anchor += key
        properties = section["properties"] if section else {}
    return anchor or "top-level"
