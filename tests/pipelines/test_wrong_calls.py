"""Calls that cannot work: one line with the place and the problem, the right exit code, nothing left behind."""

import json
import os
import shutil
from pathlib import Path

import build
import pytest
import yaml

from benchmarks.__main__ import main as measure
from shardwright.components.predictor.convert_model import convert
from shardwright.components.predictor.predict_images import predict
from shardwright.dataset.reader import ImageDataset
from shardwright.edit.export_dataset import export
from shardwright.errors import UsageError
from shardwright.loader import load
from shardwright.pipelines.cli import main
from shardwright.pipelines.commands.catalog import ENTRIES
from shardwright.pipelines.commands.files import compiled_pipeline
from shardwright.pipelines.standalone_transform import transform_dataset

LONG = "x" * 300
OUTPUTS = {
    "subset": ["--count", "2"],
    "reshard": ["--shard-count", "1"],
    "merge": [],
    "export": [],
    "report": [],
    "schema infer": [],
    "card": [],
}


@pytest.fixture(scope="module")
def source(small_dataset, tmp_path_factory):
    return small_dataset(
        tmp_path_factory.mktemp("source"), task="classification", counts={"train": [4, 2], "eval": [2]}
    )


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("x")
    return tmp_path


def refused(arguments, capsys, code=2):
    """Makes a call; its message, which is one line."""
    assert main(list(map(str, arguments))) == code
    message = capsys.readouterr().err
    assert message.startswith("shardwright: ")
    assert message.count("\n") == 1
    return message


@pytest.mark.parametrize("command", sorted(OUTPUTS))
@pytest.mark.parametrize("out", ["file/x", "/proc/nope/x", LONG])
def test_an_output_that_cannot_be_made(source, here, capsys, command, out):
    message = refused([*command.split(), source, *OUTPUTS[command], "--out", out], capsys)
    assert "file" in message or "nope" in message or LONG in message
    assert [path.name for path in here.iterdir()] == ["file"]


@pytest.mark.parametrize("command", ["drift", "diff"])
@pytest.mark.parametrize("page", ["file/x", LONG])
def test_a_page_that_cannot_be_written(source, here, capsys, command, page):
    assert "cannot be written" in refused([command, source, source, "--html", page], capsys)


# The commands that write a file where the call says, up to its name. `init` has a test where its input is.
FILES = {
    "report": ["report", "DS", "--out"],
    "card": ["card", "DS", "--out"],
    "schema infer": ["schema", "infer", "DS", "--out"],
    "get": ["get", "DS", "KEY", "--out"],
    "diff": ["diff", "DS", "DS", "--html"],
    "drift": ["drift", "DS", "--html"],
    "compile": ["compile", "c.yaml", "--target", "vertex", "--out"],
    "predict": ["predict", "model", "images", "--out"],
}


@pytest.mark.parametrize("command", FILES)
def test_a_file_that_exists_is_replaced_with_force_only(source, here, capsys, command):
    from shardwright.dataset.reader import ImageDataset

    places = {"DS": source, "KEY": next(key for key, _ in ImageDataset.open(source).records("train"))}
    call = [str(places.get(part, part)) for part in FILES[command]]
    (here / "mine.json").write_text("mine")
    (here / "folder.json").mkdir()
    option = f"{call[-1]}: "
    assert f"{option}mine.json exists already. Name another file, or rep" in refused([*call, "mine.json"], capsys)
    assert f"{option}folder.json is a folder. Give the name of a file." in refused([*call, "folder.json"], capsys)
    assert (here / "mine.json").read_text() == "mine"
    forced = main([*call, "mine.json", "--force"])
    if command in ("compile", "predict"):
        # It goes on to the inputs, which are not there.
        assert {"compile": "c.yaml", "predict": "images does not exist"}[command] in capsys.readouterr().err
    else:
        assert forced == 0
        assert (here / "mine.json").read_bytes() != b"mine"


PAGES = {name: FILES[name] for name in ("report", "diff", "drift")}


@pytest.mark.parametrize("command", PAGES)
def test_a_page_is_written_again_by_its_own_command_without_force(source, here, capsys, command):
    def call(name):
        return [*(str(source) if part == "DS" else part for part in PAGES[name]), "page.html"]

    assert main(call(command)) == 0
    first = (here / "page.html").read_bytes()
    assert main(call(command)) == 0
    assert (here / "page.html").read_bytes() == first
    for other in PAGES.keys() - {command}:
        assert "page.html exists already" in refused(call(other), capsys)
    (here / "page.html").rename(here / "elsewhere.html")
    (here / "page.html").symlink_to("elsewhere.html")
    assert "page.html exists already" in refused(call(command), capsys)


def test_a_compiled_pipeline_is_known_by_its_name_and_its_command(tmp_path):
    golden = Path(__file__).parent / "golden"
    compiled = tmp_path / "compiled.json"
    compiled.write_text(json.dumps(yaml.safe_load((golden / "vertex.yaml").read_text()), indent=1))
    assert compiled_pipeline(str(compiled)) == compiled_pipeline(str(golden / "kubeflow.yaml")) == "clouds"
    assert compiled_pipeline(str(golden / "jobset.yaml")) is None
    compiled.write_text(compiled.read_text().replace("shardwright.", "mine."))
    assert compiled_pipeline(str(compiled)) is None


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("card DS --search .", "--search: the card of a dataset does not use it. Leave it out."),
        ("clean c.yaml --target vertex --lifecycle --keep 3", "--keep: --lifecycle does not use it."),
        ("clean c.yaml --target vertex --lifecycle --superseded", "--superseded: --lifecycle does not use it."),
        ("deliver c.yaml --kserve --alias new", "--alias: --kserve does not use it."),
        ("deliver c.yaml --kserve --batch /a /b --traffic 10", "--traffic: --kserve --batch does not use it."),
        ("deliver c.yaml --batch gs://a gs://b --endpoint x", "--endpoint: --batch does not use it."),
        ("deliver c.yaml --model-registry http://x --machine m", "--machine: --model-registry does not use it."),
        ("deliver c.yaml --roll-back --replicas 2", "--replicas: --roll-back does not use it."),
        ("export DS --out out --masks png", "has no masks. Omit --masks."),
        ("export DS --out out --order row", "has no masks. Omit the options of their run lengths, such as --table"),
        (
            "export DS --out out --masks png --table image_class",
            "--masks: png writes no run lengths. Omit their options",
        ),
        (
            "init DS --task segmentation --set task=classification",
            "--task segmentation: --set task=classification names",
        ),
        ("preflight c.yaml --tpu v5e-2x4 --seconds 9", "--seconds: a call without --dataset does not use it."),
        ("status c.yaml a-run --limit 3", "--limit: the status of one run does not use it."),
        ("submit c.yaml --dry-run --wait", "--wait: --dry-run does not use it."),
        ("subset DS --out out --splits eval --seed 3", "--seed: a call without --share or --count does not use it."),
    ],
)
def test_an_option_that_the_call_does_not_use(source, here, capsys, call, message):
    (here / "c.yaml").write_text(json.dumps({"name": "x", "input": {"images": "gs://b/x"}}))
    assert message in refused([str(source) if part == "DS" else part for part in call.split()], capsys)
    assert sorted(path.name for path in here.iterdir()) == ["c.yaml", "file"]


@pytest.mark.parametrize("command", ["verify", "stats", "inspect", "lineage", "report", "schema infer"])
def test_a_path_that_is_too_long(here, capsys, command):
    code = main([*command.split(), LONG])
    assert code in (1, 2)
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("size", ["nan", "inf", "0", "-1"])
def test_sizes_that_are_none(source, here, capsys, size):
    assert "--shard-size" in refused(["reshard", source, "--out", "out", "--shard-size", size], capsys)


def test_what_is_written_to_this_machine_is_on_no_bucket(source, here, capsys):
    assert "this machine" in refused(["schema", "infer", source, "--out", "gs://b/x"], capsys)
    assert "this machine" in refused(["card", source, "--out", "gs://b/x"], capsys)
    assert "inside the dataset" in refused(["card", source, "--out", source / "CARD.md"], capsys)
    assert "replace it with --force" in refused(["schema", "infer", source, "--out", "file"], capsys)
    assert "DIR: is empty" in refused(["init-pipeline", ""], capsys)
    assert "this machine" in refused(["compile", "c.yaml", "--target", "vertex", "--out", "gs://b/x.json"], capsys)
    assert "--evaluation: there is no folder nope" in refused(["report", source, "--evaluation", "nope"], capsys)
    assert [path.name for path in here.iterdir()] == ["file"]


def test_a_dataset_in_place_of_a_configuration_is_named(source, here, capsys):
    assert "is a dataset. Give the YAML file" in refused(["transform", source, "c.yaml", "--out", "x"], capsys)
    assert "is a folder. Give a YAML file" in refused(["validate", here], capsys)


def test_a_dataset_that_no_model_learns_from_is_not_measured(source, here, capsys):
    assert measure(["train", str(source)]) == 2
    assert "not of one size" in capsys.readouterr().err


def test_nothing_but_the_dataset_stays(source, here):
    assert main(["subset", str(source), "--count", "2", "--out", "new"]) == 0
    assert sorted(path.name for path in here.iterdir()) == ["file", "new"]


def test_an_image_that_cannot_be_written_whole_is_not_there(source, here, capsys, monkeypatch):
    from shardwright.dataset.reader import ImageDataset
    from shardwright.storage.whole_files import WholeFile

    key = next(key for key, _ in ImageDataset.open(source).records("train"))
    write = WholeFile.write

    def full(self, data):
        write(self, data[:10])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(WholeFile, "write", full)
    assert "No space left" in refused(["get", source, key, "--out", "one.png"], capsys, 1)
    assert [path.name for path in here.iterdir()] == ["file"]


def test_a_dataset_that_may_not_be_read_is_not_called_damaged(source, here, capsys, monkeypatch):
    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("shardwright.dataset.reader.read_bytes", refuse)
    assert "Check the permissions." in refused(["stats", source], capsys)


@pytest.mark.parametrize("command", sorted(ENTRIES))
def test_an_argument_that_is_not_utf_8_is_named(command, here, capsys):
    with pytest.raises(SystemExit) as end:
        main([*command.split(), "--out", "caf\udce9"] if command.count(" ") else [command, "caf\udce9"])
    assert end.value.code == 2
    message = capsys.readouterr().err.splitlines()[-1]
    # A command that only has further commands does not know this one.
    assert r"argument 'caf\udce9' is not UTF-8" in message or r"unknown command 'caf\udce9'" in message


@pytest.mark.parametrize("where", ["images", "labels", "cwd"])
def test_a_path_of_a_configuration_that_is_not_utf_8_is_named(here, capsys, where):
    bad, images = "caf\udce9", here / "images"
    raw = {"input": {"images": bad if where == "images" else str(images), "labels": {"path": f"{bad}.csv"}}}
    if where == "cwd":
        del raw["input"]["labels"]
        try:
            os.mkdir(bad)
        except OSError:
            pytest.skip("this file system has names in UTF-8 only")
        os.chdir(bad)
    (here / "c.yaml").write_text(json.dumps(raw))
    path = {"images": "input.images", "labels": "input.labels.path", "cwd": "the current folder"}[where]
    assert f"shardwright: {path}: " in (message := refused(["ingest", here / "c.yaml", "--out", here / "out"], capsys))
    assert "is not UTF-8. Rename the file or folder." in message


def test_functions_refuse_what_commands_refuse_and_load_reads_it(source, here):
    name = "caf\udce9"
    for call in (
        lambda: export(ImageDataset.open(source), name),
        lambda: transform_dataset(str(source), build.config(), name),
        lambda: predict("model", str(here), name),
        lambda: predict(name, str(here), "out"),
        lambda: convert("model", str(here), name, "litert"),
    ):
        with pytest.raises(UsageError, match=r"^(--out|model): 'caf.*' is not UTF-8. Rename the file or folder\.$"):
            call()
    try:
        shutil.copytree(source, here / name)
    except OSError:
        pytest.skip("this file system has names in UTF-8 only")
    expected = [part.numpy().tobytes() for part in next(iter(load(source, "train", 6)))]
    for options in ({}, {"cache": here / f"{name}s"}):
        found = next(iter(load(here / name, "train", 6, **options)))
        assert [part.numpy().tobytes() for part in found] == expected


def test_a_failed_ingest_names_what_it_has_kept(here, image_input, capsys):
    raw = image_input(here / "in", layout="label_csv", images=4)
    (here / "c.yaml").write_text(json.dumps(raw))
    files = [here / f"in/images/00{number}.jpg" for number in range(3)]
    whole = [file.read_bytes() for file in files]
    for file, data in zip(files, whole, strict=True):
        file.write_bytes(data[:-200])
    assert main(["ingest", "c.yaml", "--out", "ds"]) == 1
    note = f"{here}/.ds.staging keeps what was done. The next call with this --out uses it, and deletes it in the end"
    assert note in capsys.readouterr().out
    for file, data in zip(files, whole, strict=True):
        file.write_bytes(data)
    assert main(["ingest", "c.yaml", "--out", "ds"]) == 0
    assert "keeps what was done" not in capsys.readouterr().out
    assert not (here / ".ds.staging").exists()
