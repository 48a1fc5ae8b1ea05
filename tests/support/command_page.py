"""The reference page of all commands and their options, written from the parsers: `docs/reference/command-line.md`."""

import argparse
import os
import re
from collections.abc import Iterator
from pathlib import Path

from shardwright.pipelines.commands.catalog import ENTRIES, GROUPS
from shardwright.pipelines.commands.documentation import address, heading_anchor
from shardwright.pipelines.commands.parsers import Parser

DOCS = Path(__file__).parents[2] / "docs"
_HEAD = """# Command line

All commands of `shardwright` with all their options. This page is generated from the code.

- `-h` (`--help`) and `-q` (`--quiet`, only errors and the result) work with every command.
- `--json` prints the result as one JSON document, and nothing if the command fails.
- `--set KEY=VALUE` replaces a value of the configuration, such as `trainer.epochs=3`. Repeat it for more.
- Errors and progress go to standard error. An error is one line that ends with the [page](messages.md) about it.

## Exit codes

| code | meaning |
|---|---|
"""
EXIT_CODES = {
    "0": "the command is done",
    "1": "the data, the run or the model failed a check, or a dataset is damaged",
    "2": "the call or the configuration is wrong, or a question is open",
    "3": "of a host of a JobSet: the run that waits for it was terminated, or its task's node is gone",
    "130": "the command was interrupted with Ctrl-C",
    "143": "the training received SIGTERM and saved its state; run it again to continue",
}
_VARIABLES_HEAD = """## Environment variables

You need none of them for a run on one machine. Credentials for buckets are found by the clients of Google Cloud and
AWS, with their usual variables.

| variable | meaning |
|---|---|"""
# A test compares them with those that the code reads.
VARIABLES: dict[str, str] = {
    "SHARDWRIGHT_STAGING": "folder or bucket for finished shards and checkpoints; as `run.staging`",
    "SHARDWRIGHT_IMAGE": "name of the container image, which is written to every `lineage.json`",
    "SHARDWRIGHT_COORDINATOR": "`HOST:PORT` of host 0, if several hosts train together",
    "SHARDWRIGHT_HOSTS": "number of hosts that train together",
    "SHARDWRIGHT_HOST": "number of this host, from 0",
    "SHARDWRIGHT_HEARTBEAT": "file that a waiting task renews, and the hosts of its JobSet watch; the task sets it",
    "SHARDWRIGHT_HEARTBEAT_SECONDS": "seconds without a renewal after which they end; compiled pipelines set it",
    "SHARDWRIGHT_CPU_DEVICES": "number of virtual devices that JAX makes of one CPU",
    "SHARDWRIGHT_SILENT_SECONDS": "seconds after which an unchanged lease counts as abandoned (default 60)",
    "SHARDWRIGHT_KUBERNETES": "address of a `kubectl proxy`, if a JobSet is started from outside the cluster",
    "SHARDWRIGHT_MOUNTS": "where buckets are mounted as folders; compiled pipelines set it",
    "SHARDWRIGHT_INPUT": "location of the input of a pipeline; `run` sets it",
    "SHARDWRIGHT_DRIFT_REFERENCE": "location of the reference dataset of the drift gate; `run` sets it",
    "SHARDWRIGHT_WEBHOOK": "address of the message when a run ends; compiled pipelines set it from a Secret",
    "SHARDWRIGHT_WARM_START": "location of the model of a warm start; `run` sets it",
    "SHARDWRIGHT_ENCODER_WEIGHTS": "location of the weights of the encoder; `run` sets it",
    "SHARDWRIGHT_TRUST_MODELS": "`1`: models are your own and are opened unchecked; as `--trust-model`",
}
_COMMON = {"--help", "--quiet"}
# Explained at the top of the page, and only named where they can be used.
_NAMED = ("--set", "--json")
# What a user wants -> the group of the catalog.
_GOALS = {
    "begin": "start",
    "make a dataset": "data",
    "look at one": "look",
    "change one": "change",
    "use a model, check a training": "model",
    "run on Vertex AI or Kubeflow": "cloud",
    "keep things tidy": "maintenance",
}


def page(program: Parser) -> str:
    """Returns the page."""
    codes = [f"| `{code}` | {meaning} |" for code, meaning in EXIT_CODES.items()]
    lines = [_HEAD.rstrip("\n"), *codes, "", "## Commands", "", "| to | commands |", "|---|---|"]
    parsers = dict(_commands(program))
    order = _order(parsers)
    for goal, group in _GOALS.items():
        links = [f"[`{name}`](#{_anchor(name)})" for name in order if name in GROUPS[group]]
        lines.append(f"| {goal} | {', '.join(links)} |")
    for name in order:
        lines += _section(name, parsers[name])
    variables = [f"| `{name}` | {meaning} |" for name, meaning in VARIABLES.items()]
    lines += ["", *_VARIABLES_HEAD.splitlines(), *variables]
    return "\n".join(lines) + "\n"


def _order(parsers: dict[str, Parser]) -> list[str]:
    """Returns the commands that can be called, in the order of the help."""
    return [name for group in GROUPS.values() for name in group if not parsers[name].below]


def _commands(parser: Parser, words: str = "") -> Iterator[tuple[str, Parser]]:
    for name, found in parser.below.items():
        yield f"{words} {name}".strip(), found
        yield from _commands(found, f"{words} {name}".strip())


def _section(name: str, parser: Parser) -> list[str]:
    entry = ENTRIES[name]
    summary = _linked(f"{entry.summary[0].upper()}{entry.summary[1:]}. {entry.description}")
    actions = [action for action in parser.actions if not _COMMON & set(action.option_strings)]
    see = _linked(f"See `{address(entry.page)}`.")
    named = [f"`{option}`" for option in _NAMED if option in parser.options]
    actions = [action for action in actions if not {*_NAMED} & {*action.option_strings}]
    rows = [_row(action) for action in sorted(actions, key=lambda one: bool(one.option_strings))]
    table = ["", "| argument | default | what it does |", "|---|---|---|", *rows] if rows else []
    also = ["", f"Also {' and '.join(named)}."] if named else []
    return ["", f"## {name}", "", f"{summary} {see}", "", f"    shardwright {entry.example}", *table, *also]


def _title(file: str, anchor: str) -> str:
    """Returns the heading of a page, or of one of its sections."""
    headings = re.findall(r"^#+ (.+)$", (DOCS / file).read_text(encoding="utf-8"), re.MULTILINE)
    return next(one for one in headings if not anchor or heading_anchor(one) == anchor)


def _linked(text: str) -> str:
    """Returns a description with links in place of the commands that show pages."""

    def link(found: re.Match[str]) -> str:
        file, anchor = f"{found['page']}.md", found["anchor"] or ""
        return f"[{_title(file, anchor)}]({os.path.relpath(file, 'reference')}{'#' + anchor if anchor else ''})"

    return re.sub(r"`shardwright docs (?P<page>\S+?)(?: (?P<anchor>\S+?))?`", link, text)


def _row(action: argparse.Action) -> str:
    text = (action.help or "").replace("%(default)s", str(action.default)).replace("%%", "%").replace("|", "\\|")
    needed = "required" if action.required and action.option_strings else ""
    # The help of an option without a value, or with an own default, contains what is needed.
    plain = action.nargs == 0 or action.default in (None, argparse.SUPPRESS, "", [], ()) or "default" in text
    return f"| {_written(action)} | {needed or ('' if plain else f'`{action.default}`')} | {text} |"


def _written(action: argparse.Action) -> str:
    """Returns an option or argument as it is written in a call, such as `--out FILE`."""
    metavar = action.metavar if isinstance(action.metavar, str) else action.dest.upper()
    value = "\\|".join(map(str, action.choices)) if action.choices is not None else metavar
    many = {"*": f"[{value} …]", "+": f"{value} […]", "?": f"[{value}]", 0: ""}
    value = many.get(action.nargs, value) if action.nargs is not None else value
    names = ", ".join(action.option_strings)
    return f"`{f'{names} {value}'.strip()}`"


def _anchor(name: str) -> str:
    return name.replace(" ", "-")
