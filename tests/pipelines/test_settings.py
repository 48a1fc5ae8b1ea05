"""`--set`: every command that reads a configuration has it, and its values count like those of the file."""

import json
import re
import shlex
from pathlib import Path

import layouts
import pytest

from shardwright.config import load_config
from shardwright.errors import UsageError
from shardwright.pipelines.cli import main
from shardwright.pipelines.commands import catalog, entry

COMMANDS = Path(catalog.__file__).parent


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos.yaml").write_text("input: {images: photos, labels: {path: masks.csv}}\ntrainer: {epochs: 3}\n")
    return "photos.yaml"


def test_every_command_that_reads_a_configuration_has_it():
    # By what its code calls, and by what its help says.
    reads = {
        path.stem.replace("_", "-")
        for path in COMMANDS.glob("*.py")
        if re.search(r"\bconfiguration\(options\)|settings_of\(options\)", path.read_text())
    } - {"settings", "runs"}
    has = {
        name.partition(" ")[0] if name != "schema infer" else name
        for name, found in catalog.ENTRIES.items()
        if entry.SET in found.options
    }
    assert reads - {"submit"} <= has
    for name, found in catalog.ENTRIES.items():
        takes = any(isinstance(option, entry.Option) and option.names == ("config",) for option in found.options)
        assert not takes or entry.SET in found.options, name
    assert {"run", "ingest", "validate", "compile", "submit", "schedule", "status", "cancel", "clean", "init"} <= has
    plain = re.compile(r"\bload_config\((?![^)]*settings=)")
    assert not [path.name for path in COMMANDS.glob("*.py") if plain.search(path.read_text())]


def test_its_values_count_like_those_of_the_file(file, capsys):
    arguments = ["validate", file, "--show", "--json"]
    assert main([*arguments, "--set", "trainer.epochs=7", "--set", "gate.allow_anomalies=[DRIFT]"]) == 0
    values = json.loads(capsys.readouterr().out)
    assert values["trainer"]["epochs"] == 7
    assert values["gate"]["allow_anomalies"] == ["DRIFT"]
    assert main(arguments) == 0
    assert json.loads(capsys.readouterr().out)["trainer"]["epochs"] == 3


@pytest.mark.parametrize(
    ("setting", "problem"),
    [
        ("trainer.epochs=0", "trainer.epochs"),
        ("trainer.epoch=2", "trainer.epoch"),
        ("trainer.epochs", "is not KEY=VALUE"),
        ("trainer..epochs=1", "is not KEY=VALUE"),
        ("input.labels.path.order=row", "input.labels.path is 'masks.csv' in photos.yaml"),
        ("trainer.epochs=[", "is not YAML"),
    ],
)
def test_a_wrong_value_is_refused(file, capsys, setting, problem):
    assert main(["validate", file, "--set", setting]) == 2
    output = capsys.readouterr()
    assert problem in output.out + output.err


def test_the_file_is_not_changed(file):
    before = Path(file).read_bytes()
    assert load_config(file, settings={"trainer.epochs": 9}).trainer.epochs == 9
    assert Path(file).read_bytes() == before
    with pytest.raises(UsageError, match="no such configuration file"):
        load_config("missing.yaml", settings={"trainer.epochs": 9})


def test_a_grown_folder_names_the_options_that_keep_the_earlier_dataset_and_they_work(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for number in range(6):
        layouts.image(tmp_path / "photos" / "ab"[number % 2] / f"{number}.jpg", number)
    (tmp_path / "photos.yaml").write_text("task: classification\ninput: {images: photos}\n")
    assert main(["ingest", "photos.yaml", "--out", "first", "--workers", "1"]) == 0
    layouts.image(tmp_path / "photos/a/new.jpg", 9)
    assert main(["ingest", "photos.yaml", "--out", "first", "--workers", "1"]) == 2
    keys = re.findall(r"`([a-z_.]+): first`", capsys.readouterr().err)
    assert keys == ["reuse_from", "split.keep_from"]
    named = [word for key in keys for word in ("--set", f"{key}=first")]
    assert main(["ingest", "photos.yaml", "--out", "second", "--workers", "1", *named]) == 0
    assert "6 of 7 images copied from" in capsys.readouterr().out


def test_a_command_that_is_named_next_has_the_same_values(file, capsys):
    assert main(["validate", file, "--set", "trainer.epochs=5", "--set", "name=two words"]) == 2
    given = ["--set", "trainer.epochs=5", "--set", "loader.augment=[flip_left_right, crop=0.6]"]
    assert main(["validate", file, *given]) == 0
    step = shlex.split(capsys.readouterr().out.rpartition("Next: shardwright ")[2])
    assert step == ["ingest", file, *given, "--out", "DIR"]
    named = [
        path.name
        for path in COMMANDS.glob("*.py")
        if re.search(r"""shardwright [^"']*\{(shlex\.quote\()?options\.config\b""", path.read_text())
    ]
    assert named == [], "write {config_words(options)}"
