"""What a command of the catalog is, and the options that several commands have."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple


@dataclass(frozen=True)
class Option:
    """An option or an argument of a command: its names, and the further arguments of `ArgumentParser.add_argument`."""

    names: tuple[str, ...]
    settings: dict[str, Any]


class Entry(NamedTuple):
    """A command.

    Attributes:
        summary: for the list of commands: a verb first, without a period.
        description: for its own help, sentences.
        example: a call, without the program's name.
        page: file and anchor in `docs/`.
        options: what it takes; those of an inner tuple exclude each other. Empty for a command that only has further
            commands.
        call: `module:function` in `shardwright.pipelines.commands`, which gets the parsed options and returns the exit
            code; it is imported when the command is called. By default `run` of the module of the command's name.
    """

    summary: str
    description: str
    example: str
    page: str
    options: tuple[Option | tuple[Option, ...], ...] = ()
    call: str = ""


def arg(name: str, metavar: str | tuple[str, ...], text: str, **settings: Any) -> Option:
    """Returns an option with a value, or an argument."""
    return Option((name,), {"metavar": metavar, "help": text, **settings})


def flag(name: str, text: str, *more_names: str) -> Option:
    """Returns an option without a value."""
    return Option((*more_names, name), {"action": "store_true", "help": text})


def choice(name: str, values: Sequence[Any], text: str, **settings: Any) -> Option:
    """Returns an option with one of some values."""
    return Option((name,), {"choices": values, "help": text, **settings})


def first_of(name: str, values: Sequence[Any], text: str) -> Option:
    """Returns an option with one of some values, by default the first."""
    return choice(name, values, text, default=values[0])


def several(name: str, metavar: str, text: str) -> Option:
    """Returns an option that may be given several times; its value is a list."""
    return arg(name, metavar, text, action="append", default=[])


def show(text: str) -> Option:
    """Returns the option that shows pictures, in the terminal or as a PNG."""
    return arg("--show", "FILE.png", text, nargs="?", const="", type=_png)


def _png(text: str) -> str:
    if text and not text.lower().endswith(".png"):
        # Probably an argument that came after the option.
        raise argparse.ArgumentTypeError(
            f"{text} does not end with .png. Put --show last, or name the file: --show=pictures.png."
        )
    return text


def json(text: str) -> Option:
    """Returns the option that prints the result as JSON."""
    return flag("--json", text)


SET = several("--set", "KEY=VALUE", "use this value of the configuration, e.g. trainer.epochs=3; may be repeated")
# Of all commands that read a configuration.
CONFIG = (arg("config", "CONFIG", "YAML file"), SET)
DATASET = arg("dataset", "DIR", "a dataset")
INGESTED = arg("dataset", "DIR", "folder that `shardwright ingest` wrote, or its URL")
OUT = arg("--out", "DIR", "folder to make", required=True)
WORKERS = arg("--workers", "N", "processes (default: one for each core)", type=int)
FORCE = flag("--force", "replace any existing file")
TRUST = flag("--trust-model", "do not check the model's operations: it is your own")
# Of all commands that make a dataset of others.
DERIVED = (
    OUT,
    arg("--shard-size", "MB", "megabytes per shard (default 150)", type=float),
    arg("--shard-records", "N", "records per shard instead", type=int),
    arg("--shard-count", "N", "shards per split instead", type=int),
    json("print what was made as JSON"),
)
SEED = arg("--seed", "S", "selects the images (default 0)", type=int, default=0)
