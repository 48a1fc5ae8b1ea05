"""`shardwright init`: looks at images and annotations, and writes a configuration with everything that it detected."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from shardwright.errors import Reading, ShardwrightError, UsageError, unwritable
from shardwright.pipelines.commands.files import add_force, add_show, check_free, picture_file
from shardwright.pipelines.commands.parsers import Commands
from shardwright.pipelines.commands.results import print_json
from shardwright.text.escaping import escape

if TYPE_CHECKING:
    from shardwright.ingest import SurveyedInput
    from shardwright.pipelines.init.question import Decision
    from shardwright.pipelines.init.spell_out import ResolvedInput

_TASKS = ("segmentation", "classification")
_STDOUT = "-"
_NOTHING = "The images have no classes: `shardwright ingest` makes a dataset; there is nothing to train."
_UNTRAINED = {
    "numbers": "The images have numbers: `shardwright ingest` makes a dataset, and `shardwright.load` with `numbers` "
    "gives them to a training of your own."
}
_PATH = "input.labels.path"


def add(commands: Commands) -> None:
    """Adds the command to the parser of `shardwright`."""
    init = commands.add("init")
    init.add_argument(
        "folder",
        metavar="FOLDER",
        help="the images: a folder, a glob or a URL; or a folder with images and annotations",
    )
    init.add_argument(
        "labels",
        metavar="LABELS",
        nargs="*",
        help="the annotations: a table, COCO JSON or a folder; several files, or SPLIT=FILE for each split",
    )
    init.add_argument("--task", choices=_TASKS, help="by default detected")
    init.add_argument("--out", metavar="FILE", help="file to write (default: FOLDER's name .yaml); - prints it")
    init.add_argument(
        "--set",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="a value of the configuration, e.g. input.labels.rle.order=row; may be repeated",
    )
    add_show(init, "show images under each reading, in the terminal or as a PNG; without a question, as they are read")
    add_force(init)
    init.add_argument("--json", action="store_true", help="print what was detected as JSON")
    init.set_defaults(command=_init)


def _init(options: argparse.Namespace) -> int:
    from shardwright.config.json_schema import schema_line
    from shardwright.display.readings import Column
    from shardwright.pipelines.init.commented_yaml import yaml_text
    from shardwright.pipelines.init.show import ReadInput, show
    from shardwright.pipelines.init.spell_out import resolve_input
    from shardwright.pipelines.init.write_project import pipeline_name

    if options.out == "":
        raise UsageError(f"--out: is empty. Name a file, or {_STDOUT} to print it.")
    # The run is named after the file that people call it by.
    named = options.out and options.out != _STDOUT
    name = pipeline_name(os.path.splitext(options.out)[0] if named else options.folder)
    out = options.out or f"{name}.yaml"
    if out != _STDOUT:
        check_free("--out", out, force=options.force)
    given = {"name": name, **_settings(options.set)}
    if options.task is not None and given.setdefault("task", options.task) != options.task:
        raise UsageError(f"--task {options.task}: --set task={given['task']} names another one. Leave one out.")
    labels = _annotations(options.labels)
    if isinstance(labels, (list, dict)):
        given = {_PATH: labels, **given}
    again = [*(["--out", options.out] if options.out else []), *(["--force"] if options.force else [])]
    words = [*shlex.split(_call(options)), *again]
    pictures = picture_file(options.show, options.folder, force=options.force)
    decision = _detect(options.folder, labels if isinstance(labels, str) else None, given, words, pictures)
    resolved = resolve_input(decision)
    header = [schema_line(), f"# Written by `{_call(options)}`. All keys: `shardwright docs reference/configuration`."]
    if not resolved.trainable:
        header.append(f"# {_UNTRAINED.get(resolved.config.input.labels.format, _NOTHING)}")
    text = yaml_text(resolved, header)
    if out != _STDOUT:
        _write(out, text)
    if pictures is not None:
        show([ReadInput(Column(out, ""), decision.input.surveyed)], pictures)
    _print(options, resolved, out, text)
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


def _call(options: argparse.Namespace) -> str:
    """Returns the command with its options as the user gave them, to be pasted."""
    given = [*(["--task", options.task] if options.task else []), *(f"--set={text}" for text in options.set)]
    return shlex.join(["shardwright", "init", options.folder, *options.labels, *given])


def _print(options: argparse.Namespace, resolved: ResolvedInput, out: str, text: str) -> None:
    if options.json:
        from shardwright.pipelines.commands.validate import plain_values

        found = {"file": None if out == _STDOUT else out, "detected": list(resolved.notes)}
        print_json({**found, "configuration": plain_values(resolved.config)})
        return
    stream = sys.stderr if out == _STDOUT else sys.stdout
    for note in resolved.notes if not options.quiet else ():
        print(f"  {escape(note)}", file=stream)
    if out == _STDOUT:
        print(text, end="")
        return
    dataset = f"shardwright ingest {shlex.quote(out)} --out DIR"
    run = f", or shardwright run {shlex.quote(out)}" if resolved.trainable else ""
    print(f"{out}: written. Next: {dataset}{run}")


def _detect(
    folder: str, labels: str | None, given: dict[str, Any], call: Sequence[str], pictures: str | None
) -> Decision:
    """Detects the input; asks where several readings fit and somebody is there, and fails elsewhere.

    Args:
        folder: see `detect_input`.
        labels: likewise.
        given: likewise; answers are added.
        call: the words of the command, to which the settings of an answer are added.
        pictures: the PNG of `--show`, empty for the terminal; `None` without the option.
    """
    from shardwright.pipelines.init.decide import detect_input
    from shardwright.pipelines.init.show import hint, show_readings

    def survey(options: Mapping[str, Any]) -> SurveyedInput:
        return detect_input(folder, labels, {**given, **options}).input.surveyed

    while True:
        try:
            return detect_input(folder, labels, given)
        except ShardwrightError as error:
            if not error.readings:
                raise
            note = hint(error.readings) if pictures is None else show_readings(error.readings, survey, pictures)
            if not (sys.stdin.isatty() and sys.stdout.isatty()):
                lines = [str(error), "Choose one of:", _answers(error.readings, call), *([note] if note else [])]
                raise UsageError("\n".join(lines)) from None
            given |= _ask(error, note, input).options


def _answers(readings: tuple[Reading, ...], call: Sequence[str]) -> str:
    """Returns the command of each reading, and what it means."""
    from shardwright.pipelines.init.show import setting_text

    commands = [
        " ".join([shlex.join(call), *(setting_text(path, value) for path, value in reading.options.items())])
        for reading in readings
    ]
    return "\n".join(
        f"  {command}\n    # {reading.meaning}" for reading, command in zip(readings, commands, strict=True)
    )


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


def _settings(given: list[str]) -> dict[str, Any]:
    import yaml

    from shardwright.config.yaml_text import parse_yaml

    settings: dict[str, Any] = {}
    for text in given:
        path, equals, value = text.partition("=")
        if not equals or not path:
            raise UsageError(f"--set {text}: is not KEY=VALUE. Write e.g. --set input.labels.rle.order=row.")
        try:
            settings[path] = parse_yaml(value)
        except (yaml.YAMLError, ValueError, RecursionError):
            raise UsageError(f"--set {path}: {value!r} is not YAML. Put it in quotes.") from None
    return settings


def _write(out: str, text: str) -> None:
    from pathlib import Path

    from shardwright.storage.whole_files import write_bytes

    try:
        write_bytes(Path(out), text.encode("utf-8"))
    except OSError as error:
        raise unwritable(f"--out: {out}", error, "Check the path.") from None
