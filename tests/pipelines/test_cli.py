"""The command line: it starts fast; a wrong call ends with one message and the right exit code."""

import argparse
import importlib
import json
import math
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import layouts
import pytest
from command_page import page

from shardwright.edit.export_dataset import WRITERS
from shardwright.errors import CheckFailed
from shardwright.evaluation.submission import LAYOUTS
from shardwright.pipelines import cli
from shardwright.pipelines import run_local as local
from shardwright.pipelines.commands.catalog import ENTRIES, GROUPS
from shardwright.pipelines.commands.parsers import Parser
from shardwright.pipelines.commands.results import print_json
from shardwright.running.progress import print_note, quiet_output

DOCS = Path(__file__).parents[2] / "docs"
# Commands whose result is a file or a page of their own kind, or that have none.
WITHOUT_JSON = {"docs"}


# Command -> what its start must not import beyond `HEAVY`.
HEAVY = (
    *("tensorflow", "tfx", "apache_beam", "keras", "jax", "pandas", "pyarrow", "rich", "google.protobuf", "boto3"),
    *("jsonschema", "kubernetes_validate", "rfc3987_syntax", "requests"),
)
NO_INGEST = ("shardwright.ingest", "shardwright.formats", "shardwright.loader", "sqlite3")
NOT_IMPORTED = {
    "--help": ("yaml", "numpy", "PIL", "shardwright.config", "shardwright.storage"),
    "validate c.yaml": ("PIL", "markupsafe", "multiprocessing", "zoneinfo", *NO_INGEST),
    "validate c.yaml --data": ("shardwright.loader",),
    "init images --out i.yaml": ("shardwright.loader", "shardwright.drift"),
    "ingest c.yaml --out out": ("shardwright.report", "shardwright.drift", "shardwright.pipelines.init"),
    "stats dataset": NO_INGEST[:1],
    "verify dataset": ("shardwright.report", *NO_INGEST),
    "inspect dataset": ("shardwright.report", *NO_INGEST),
    "diff dataset dataset": NO_INGEST,
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, small_dataset: Callable[..., Path]) -> Path:
    folder = tmp_path_factory.mktemp("start")
    layouts.class_folders(folder / "images")
    (folder / "c.yaml").write_text("task: classification\ninput: {images: images, labels: {format: class_folders}}\n")
    small_dataset(folder).rename(folder / "dataset")
    return folder


@pytest.mark.parametrize("command", NOT_IMPORTED)
def test_a_command_imports_what_it_uses(place: Path, tmp_path: Path, command: str) -> None:
    shutil.copytree(place, tmp_path / "here")
    script = (
        "import sys\n"
        "from shardwright.pipelines import cli\n"
        f"try:\n    code = cli.main({command.split()!r})\n"
        "except SystemExit as end:\n    code = end.code\n"
        "assert code == 0, code\n"
        f"late = set({(*HEAVY, *NOT_IMPORTED[command])!r}) & set(sys.modules)\n"
        "assert not late, late\n"
    )
    environment = {**os.environ, "SHARDWRIGHT_TEST_PREFORK": "0"}
    call = [sys.executable, "-c", script]
    done = subprocess.run(call, capture_output=True, text=True, check=False, cwd=tmp_path / "here", env=environment)
    assert done.returncode == 0, done.stderr


def test_a_call_without_a_command_or_with_an_unknown_one_exits_2() -> None:
    for arguments in ([], ["dance"], ["run"], ["ingest", "x.yaml"]):
        with pytest.raises(SystemExit) as end:
            cli.main(arguments)
        assert end.value.code == 2


def test_errors_become_one_message_and_their_exit_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cli.main(["run", str(tmp_path / "none.yaml")]) == 2
    assert "none.yaml: no such configuration file" in capsys.readouterr().err

    def failing(config_path: str, **options: object) -> int:
        raise CheckFailed("12 of 100 images were rejected")

    monkeypatch.setattr(local, "run_local", failing)
    assert cli.main(["run", "x.yaml"]) == 1
    assert capsys.readouterr().err == (
        "shardwright: 12 of 100 images were rejected (shardwright docs reference/messages failed-checks)\n"
    )


def test_interrupting_is_no_traceback(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(config_path: str, **options: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(local, "run_local", interrupted)
    assert cli.main(["run", "x.yaml"]) == 130
    assert "run the same command again" in capsys.readouterr().err


def test_output_that_nobody_takes_ends_without_pythons_own_words() -> None:
    """As `| head -0` has it, and a full disk: what is printed is met when it is flushed."""
    call = [sys.executable, "-m", "shardwright.pipelines.cli", "--help"]
    # Unbuffered, as in our image, argparse of Python 3.13 lets such an error pass when it prints its help.
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    with open("/dev/full", "w") as full:
        done = subprocess.run(call, stdout=full, stderr=subprocess.PIPE, text=True, check=False, env=buffered)
    assert done.returncode == 1
    assert done.stderr == (
        "shardwright: No space left on device. Check paths, permissions and free space. "
        "(shardwright docs reference/messages buckets-and-disks)\n"
    )
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(call, stdout=writer, stderr=subprocess.PIPE, text=True, check=False, env=buffered)
    os.close(writer)
    assert (done.returncode, done.stderr) == (1, "")


def test_no_file_takes_the_place_of_a_closed_stream(tmp_path: Path) -> None:
    script = (
        "import sys; from shardwright.pipelines import cli; code = cli.main(['inspect', '/nowhere']); "
        "file = open(sys.argv[1], 'w'); file.write(f'{code} {file.fileno() > 2}')"
    )
    closed = ["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", sys.executable, "-c", script, str(tmp_path / "code")]
    assert subprocess.run(closed, check=False).returncode == 0
    assert (tmp_path / "code").read_text() == "2 True"


def parsers(parser: Parser, words: str = "") -> Iterator[tuple[str, Parser]]:
    """All commands, with the words that call them."""
    for name, found in parser.below.items():
        yield f"{words} {name}".strip(), found
        yield from parsers(found, f"{words} {name}".strip())


COMMANDS = dict(parsers(cli.build_parser()))


def test_the_help_has_every_command_in_a_group(capsys: pytest.CaptureFixture[str]) -> None:
    assert set(COMMANDS) == set(ENTRIES)
    with pytest.raises(SystemExit):
        cli.main(["--help"])
    shown = capsys.readouterr().out
    for title, entries in GROUPS.items():
        assert f"\n{title}:\n" in shown
        assert all(
            re.search(f"^  {name} +{re.escape(one.summary)}$", shown, re.M)
            for name, one in entries.items()
            if " " not in name
        )
    assert shown.endswith("documentation: shardwright docs\n")


@pytest.mark.parametrize("name", ENTRIES)
def test_every_command_has_a_description_an_example_that_parses_and_a_page(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    entry, shown = ENTRIES[name], COMMANDS[name].format_help()
    assert entry.example in shown
    shows_page = shlex.split(shown.rpartition("documentation: shardwright ")[2])
    assert cli.main(shows_page) == 0
    assert capsys.readouterr().out.startswith("#")
    words = shlex.split(entry.example.partition(" > ")[0])
    assert entry.example.startswith(name)
    options = argparse.Namespace()
    cli.parse(words, options)
    module, _, function = options.call.partition(":")
    assert callable(getattr(importlib.import_module(f"shardwright.pipelines.commands.{module}"), function))
    assert options.invoked == name.split()[0]


def test_the_page_of_all_options_is_that_of_the_parsers() -> None:
    file, made = DOCS / "reference" / "command-line.md", page(cli.build_parser())
    if os.environ.get("SHARDWRIGHT_RENEW_GOLDEN"):
        file.write_text(made, encoding="utf-8")
    assert file.read_text(encoding="utf-8") == made, "renew it with SHARDWRIGHT_RENEW_GOLDEN=1"
    for name, parser in COMMANDS.items():
        if not parser.below:
            section = made.partition(f"\n## {name}\n")[2].partition("\n## ")[0]
            assert all(option in section for option in {*parser.options} - {"-h", "--help", "-q", "--quiet"}), name


def test_every_command_can_be_quiet_and_has_json() -> None:
    for name, parser in COMMANDS.items():
        if not parser.below:
            assert "--quiet" in parser.options, name
            assert ("--json" in parser.options) == (name not in WITHOUT_JSON), name
    # All of it is printed in one form.
    for file in (DOCS.parent / "pipelines/commands").glob("*.py"):
        text = file.read_text(encoding="utf-8")
        assert file.name == "results.py" or not re.search(r"print\(\s*(json\.dumps|_json)\b", text), file


WITH_JSON = [name for name, parser in COMMANDS.items() if "--json" in parser.options]


@pytest.mark.parametrize("name", sorted({*WITH_JSON} - {"doctor"}))
def test_a_call_that_fails_prints_no_part_of_a_document(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Calls the examples where a wrong configuration is in place of every input and output."""
    monkeypatch.chdir(tmp_path)
    words = shlex.split(ENTRIES[name].example)
    for target in [word.split("/")[0] for word in words[1:] if not word.startswith("-")]:
        (tmp_path / target).write_text("input: {}")
    code = cli.main([*words, "--json"])
    out, error = capsys.readouterr()
    assert code in (1, 2), (out, error)
    # The errors of a configuration are what `validate` is for.
    assert bool(out) == (name == "validate"), out
    assert bool(error) == (name != "validate"), error
    json.loads(out or "[]")


def test_numbers_that_json_does_not_have_are_null(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"NaN": [math.nan, math.inf, -math.inf, 1.5, "Infinity"]})
    assert json.loads(capsys.readouterr().out) == {"NaN": [None, None, None, 1.5, "Infinity"]}


@pytest.mark.parametrize(
    ("arguments", "suggestion"),
    [
        (["reportt"], "Did you mean report?"),
        (["schema", "rendr"], "Did you mean render?"),
        (["ingest", "c.yaml", "--ou", "x"], "Did you mean --out?"),
        (["ingest", "c.yaml", "--out", "x", "--jsn"], "Did you mean --json?"),
        (["export", "ds", "--out", "x", "--masks", "pgn"], "png"),
        (["report", "ds", "more"], "'more'"),
    ],
)
def test_a_wrong_word_gets_a_suggestion(
    arguments: list[str], suggestion: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        cli.main(arguments)
    assert end.value.code == 2
    assert suggestion in capsys.readouterr().err


def test_pages_are_shown_whole_or_by_section(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cli.main(["docs"]) == 0
    listed = {line.split()[0] for line in capsys.readouterr().out.splitlines()}
    assert listed == {page.relative_to(DOCS).with_suffix("").as_posix() for page in DOCS.rglob("*.md")}
    assert cli.main(["docs", "predict"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("# Predict\n")
    # Links become names that the command takes; pictures are described.
    assert "](" not in re.sub(r"\]\(https?:", "", shown)
    for anchor in (["reference/messages", "paths"], ["docs/reference/messages.md#paths"]):
        assert cli.main(["docs", *anchor]) == 0
        section = capsys.readouterr().out
        assert section.startswith("## Paths\n")
        assert "\n## " not in section
    assert cli.main(["docs", "how-to/predikt"]) == 2
    assert "Did you mean how-to/predict" in capsys.readouterr().err
    assert cli.main(["docs", "messages", "nowhere"]) == 2
    assert "reference/messages has no section 'nowhere'. It has: " in capsys.readouterr().err
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert cli.main(["docs", "messages", "paths"]) == 0
    drawn = capsys.readouterr().out
    assert "no such configuration file" in drawn
    assert "| message |" not in drawn


def test_a_word_like_no_other_gets_no_suggestion(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["zzz"])
    assert "Did you mean" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "option", "known"),
    [("predict", "dialect", LAYOUTS), ("export", "to", ["csv", *WRITERS])],
)
def test_the_help_names_the_values_that_the_code_knows(command: str, option: str, known: Iterable[str]) -> None:
    """Lists that are written down once more, because the help does not import the code."""
    (taken,) = (one.choices for one in COMMANDS[command].actions if one.dest == option)
    assert sorted(taken) == sorted(known)


def test_quiet_output_has_no_notes(capsys: pytest.CaptureFixture[str]) -> None:
    with quiet_output(True):
        with quiet_output(False):
            print_note("a")
        print_note("b")
    with quiet_output(False):
        print_note("c")
    assert capsys.readouterr().out == "  c\n"


def test_ingest_and_sample_print_json_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.main(["sample", "--out", "data", "--count", "40", "--height", "64", "--width", "96", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["count"] == 40
    assert cli.main(["init", "data", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["file"] == "data.yaml"
    assert cli.main(["ingest", "data.yaml", "--out", "ds", "--workers", "1", "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert made["totals"]["written"] == 40
    assert made["notes"]
    assert cli.main(["ingest", "data.yaml", "--out", "ds2", "--workers", "1", "-q"]) == 0
    assert capsys.readouterr().out.count("\n") == 1
    assert cli.main(["schema", "infer", "ds", "--json"]) == 0
    assert "image/encoded" in json.loads(capsys.readouterr().out)["schema"]
    (tmp_path / "a.pbtxt").write_text('feature { name: "a" }')
    assert cli.main(["schema", "diff", "a.pbtxt", "a.pbtxt", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == []
    assert cli.main(["schema", "diff", "a.pbtxt", "none"]) == 2
    assert "none: cannot be read (No such file or directory). Give" in capsys.readouterr().err
