"""`shardwright init`: looks at images and annotations, and writes a configuration with everything that it detected."""

from __future__ import annotations

import os
import re
import shlex
import sys
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from shardwright.display.readings import Column
from shardwright.errors import Reading, ShardwrightError, UsageError
from shardwright.ingest import IngestInput
from shardwright.pipelines.commands.files import check_free, picture_file, write
from shardwright.pipelines.commands.results import print_json
from shardwright.pipelines.commands.settings import settings_of
from shardwright.pipelines.commands.validate import plain_values
from shardwright.pipelines.init.decide import detect_input
from shardwright.pipelines.init.question import Decision
from shardwright.pipelines.init.show import ReadInput, hint, setting_text, show, show_readings
from shardwright.pipelines.init.spell_out import resolve_input, yaml_text
from shardwright.pipelines.init.write_project import pipeline_name
from shardwright.text.escaping import escape

_STDOUT = "-"
_NOTHING = "The images have no classes: `shardwright ingest` makes a dataset; there is nothing to train."
_UNTRAINED = {
    "numbers": "The images have numbers: `shardwright ingest` makes a dataset, and `shardwright.load` with `numbers` "
    "gives them to a training of your own."
}
_PATH = "input.labels.path"


def run(options: Namespace) -> int:
    """Writes the configuration, or asks."""
    if options.out == "":
        raise UsageError(f"--out: is empty. Name a file, or {_STDOUT} to print it.")
    options.folder = _from_here(options.folder)
    options.labels, options.set = ([_from_here(text) for text in texts] for texts in (options.labels, options.set))
    # The run is named after the file that people call it by.
    named = options.out and options.out != _STDOUT
    name = pipeline_name(os.path.splitext(options.out)[0] if named else options.folder)
    out = options.out or f"{name}.yaml"
    if out != _STDOUT:
        check_free("--out", out, force=options.force)
    stated = {"name": name, **settings_of(options)}
    if options.task is not None and stated.setdefault("task", options.task) != options.task:
        raise UsageError(f"--task {options.task}: --set task={stated['task']} names another one. Leave one out.")
    labels = _annotations(options.labels)
    if isinstance(labels, (list, dict)):
        stated = {_PATH: labels, **stated}
    # The call as the user gave it, to be pasted.
    asked = [*(["--task", options.task] if options.task else []), *(f"--set={text}" for text in options.set)]
    call = shlex.join(["shardwright", "init", options.folder, *options.labels, *asked])
    again = [*(["--out", options.out] if options.out else []), *(["--force"] if options.force else [])]
    pictures = picture_file(options.show, options.folder, force=options.force)
    file = labels if isinstance(labels, str) else None
    decision = _detect(options.folder, file, stated, [*shlex.split(call), *again], pictures)
    resolved = resolve_input(decision)
    header = [f"# Written by `{call}`. All keys: `shardwright docs reference/configuration`."]
    if not resolved.trainable:
        header.append(f"# {_UNTRAINED.get(resolved.config.input.labels.format, _NOTHING)}")
    text = yaml_text(resolved, header)
    if out != _STDOUT:
        write(out, text.encode("utf-8"))
    if pictures is not None:
        show([ReadInput(Column(out, ""), decision.input.surveyed)], pictures)
    row = {"file": None if out == _STDOUT else out, "detected": list(resolved.notes)}
    if options.json:
        print_json({**row, "configuration": plain_values(resolved.config)})
        return 0
    for note in resolved.notes if not options.quiet else ():
        print(f"  {escape(note)}", file=sys.stderr if out == _STDOUT else sys.stdout)
    if out == _STDOUT:
        print(text, end="")
        return 0
    train = f", or shardwright run {shlex.quote(out)}" if resolved.trainable else ""
    print(f"{out}: written. Next: shardwright ingest {shlex.quote(out)} --out DIR{train}")
    return 0


def _annotations(texts: list[str]) -> str | list[str] | dict[str, str] | None:
    """Returns the annotations as `input.labels.path` has them: one path, a list, or a mapping of splits to files.

    Raises:
        UsageError: one is empty, some are of a split and others are not, or a split has two files.
    """
    if not texts:
        return None
    if "" in texts:
        raise UsageError("LABELS: is empty. Name the annotations, or leave LABELS out.")
    pairs = [] if any(os.path.lexists(text) for text in texts) else [text.partition("=") for text in texts]
    of_splits = [(split, file) for split, equals, file in pairs if equals and split.isidentifier() and file]
    if not of_splits:
        return texts[0] if len(texts) == 1 else texts
    if len(of_splits) < len(texts):
        raise UsageError(f"LABELS: {' '.join(texts)}: write SPLIT=FILE for each file, or for none.")
    files = dict(of_splits)
    if len(files) < len(texts):
        raise UsageError(f"LABELS: {' '.join(texts)}: a split has two files. Give each split one.")
    return files


def _detect(
    folder: str, labels: str | None, stated: dict[str, Any], call: Sequence[str], pictures: str | None
) -> Decision:
    """Detects the input; asks where several readings fit and somebody is there, and fails elsewhere.

    Args:
        folder: see `detect_input`.
        labels: likewise.
        stated: likewise; answers are added.
        call: the words of the command, to which the settings of an answer are added.
        pictures: the PNG of `--show`, empty for the terminal; `None` without the option.
    """

    def survey(options: Mapping[str, Any]) -> IngestInput:
        return detect_input(folder, labels, {**stated, **options}).input.surveyed

    while True:
        try:
            return detect_input(folder, labels, stated)
        except ShardwrightError as error:
            if not error.readings:
                raise
            note = hint(error.readings) if pictures is None else show_readings(error.readings, survey, pictures)
            if not (sys.stdin.isatty() and sys.stdout.isatty()):
                lines = [str(error), "Choose one of:"]
                for reading in error.readings:
                    settings = (setting_text(path, value) for path, value in reading.options.items())
                    lines += [f"  {' '.join([shlex.join(call), *settings])}", f"    # {reading.meaning}"]
                raise UsageError("\n".join([*lines, *([note] if note else [])])) from None
            stated |= _ask(error, note, input).options


def _ask(error: ShardwrightError, note: str, read: Callable[[str], str]) -> Reading:
    """Asks which reading is meant."""
    print(error)
    for number, reading in enumerate(error.readings, 1):
        print(f"  {number}. {reading.meaning}")
    if note:
        print(note)
    while True:
        try:
            answer = read(f"Which is meant (1 to {len(error.readings)})? ").strip()
        except EOFError:
            raise error from None
        if answer.isdecimal() and 1 <= int(answer) <= len(error.readings):
            return error.readings[int(answer) - 1]


def _from_here(text: str) -> str:
    """Returns a text with paths below the current folder as relative ones: other machines read a configuration, too."""
    here = re.escape(os.path.join(os.getcwd(), ""))
    return re.sub(rf"""(^|[="'\[{{ ,]){here}(?=.)""", r"\1", text)
