"""`verify` covers every file of every kind of dataset: each flipped bit, each lost file, each file too many is found.

The kinds are those of the commands that make a folder, so a new command is covered, or named here as none.
"""

import json
import os
import shutil
import socket
from pathlib import Path

import pytest
import yaml
from monthly import raw_of, write_months

from shardwright.dataset.manifest import BUILD_FILE, MANIFEST_FILE
from shardwright.edit.export_dataset import WRITERS
from shardwright.pipelines.cli import build_parser, main
from shardwright.pipelines.standalone_transform import EXAMPLES
from shardwright.verify import verify

# Command -> its arguments before `--out`; `{}` is the folder of the inputs.
DATASETS = {
    "ingest": ["{}/flowers.yaml"],
    "subset": ["{}/base", "--count", "9"],
    "reshard": ["{}/base", "--shard-count", "2"],
    "merge": ["{}/base"],
    "relabel": ["{}/base", "{}/new.csv"],
    "forget": ["{}/base", "--keys", "{}/keys"],
    "retry-rejects": ["{}/flowers.yaml", "{}/base"],
    "transform": ["{}/flowers.yaml", "{}/base"],
}
# They make no dataset, and `verify` says so of what they make.
OTHERS = {
    "sample": ["--count", "2", "--height", "64", "--width", "64"],
    "export": ["{}/base"],
}
# A folder of predictions, of a review, of a converted model, of weights: made of a trained model, or fetched.
UNTRIED = {"predict", "review", "convert", "weights fetch"}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A function that makes the output of a command once, and returns its folder."""
    root = tmp_path_factory.mktemp("whole")
    write_months(root / "months")
    (root / "months/first/cat/00.jpg").write_bytes(b"\xff\xd8\xff")
    raw = {**raw_of(root / "months/first"), "rejects": {"max_fraction": 0.5}, "transform": {"size": [16, 16]}}
    # With a file in origins/.
    raw |= {"images": {"verify": "full"}}
    (root / "flowers.yaml").write_text(yaml.safe_dump(raw))
    assert main(["ingest", str(root / "flowers.yaml"), "--out", str(root / "base"), "-q"]) == 0
    keys = [json.loads(line)["key"] for file in sorted((root / "base/index").rglob("*.jsonl")) for line in file.open()]
    (root / "keys").write_text(f"{keys[0]}\n")
    (root / "new.csv").write_text("image,label\n" + "".join(f"{key},{key.split('/')[0]}\n" for key in keys))

    def make(command):
        out = root / command
        if not out.exists():
            arguments = [text.format(root) for text in {**DATASETS, **OTHERS}[command]]
            assert main([command, *arguments, "--out", str(out), "-q"]) == 0
        return out / EXAMPLES if command == "transform" else out

    return make


def makers(parser=None, above=""):
    """The commands that make a folder."""
    for name, one in (parser or build_parser()).below.items():
        if one.below:
            yield from makers(one, f"{above}{name} ")
        for action in one.actions:
            if "--out" in action.option_strings and action.metavar in ("DIR", "PATH"):
                yield f"{above}{name}"


def test_every_command_that_makes_a_folder_is_known():
    assert set(makers()) == {*DATASETS, *OTHERS, *UNTRIED}


KINDS = [pytest.param(name, marks=pytest.mark.slow if name == "transform" else ()) for name in sorted(DATASETS)]


def files_of(root):
    return sorted(path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file())


def findings(root, deep):
    return {(finding.file, finding.problem) for finding in verify(root, deep=deep).findings}


@pytest.mark.parametrize("kind", KINDS)
def test_each_file_is_covered(made, tmp_path, kind):
    root = tmp_path / "copy"
    shutil.copytree(made(kind), root)
    deep = False
    assert findings(root, deep) == set()
    names = files_of(root)
    assert {MANIFEST_FILE, BUILD_FILE} < set(names)
    assert kind != "transform" or "statistics.json" in names
    for name in names:
        file = root / name
        data = file.read_bytes()
        for place in {0, len(data) // 2, len(data) - 1} if data else ():
            file.write_bytes(data[:place] + bytes([data[place] ^ 4]) + data[place + 1 :])
            assert name in {found for found, _ in findings(root, deep)}, (name, place)
        file.unlink()
        if name == MANIFEST_FILE:
            assert main(["verify", str(root)]) == 2
        else:
            assert name in {found for found, _ in findings(root, deep)}, name
        file.write_bytes(data)
    assert findings(root, deep) == set()


@pytest.mark.parametrize("kind", KINDS)
def test_the_manifest_has_checksum_and_size_of_all_that_is_the_same_in_equal_datasets(made, kind):
    root = made(kind)
    manifest = json.loads((root / MANIFEST_FILE).read_text())
    sizes = {**manifest["sizes"], **{shard["path"]: shard["bytes"] for shard in manifest["shards"]}}
    varying = set(json.loads((root / BUILD_FILE).read_text())["files"])
    assert {*sizes, *varying, MANIFEST_FILE, BUILD_FILE} == set(files_of(root))
    assert all((root / name).stat().st_size == size for name, size in sizes.items())
    assert all(name == "lineage.json" or name.startswith("origins/") for name in varying)


def pipe(path):
    os.mkfifo(path)


def unix_socket(path):
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(os.path.relpath(path))


ADDED = {
    "file": lambda path: path.write_bytes(b"x"),
    "empty file": lambda path: path.write_bytes(b""),
    "folder": lambda path: path.mkdir(),
    "link": lambda path: path.symlink_to("manifest.json"),
    "link to a folder": lambda path: path.symlink_to("."),
    "dangling link": lambda path: path.symlink_to("nowhere"),
    "pipe": pipe,
    "socket": unix_socket,
}


@pytest.mark.parametrize("what", ADDED)
def test_each_addition_is_found_in_every_folder(made, tmp_path, what, monkeypatch):
    root = tmp_path / "copy"
    shutil.copytree(made("ingest"), root)
    monkeypatch.chdir(root)
    folders = {"", *(str(Path(name).parent) for name in files_of(root))} - {"."}
    for folder in sorted(folders):
        for name in ("more", ".more", os.fsdecode(b"\xff")):
            path = root / folder / name
            ADDED[what](path)
            assert [found for found, _ in findings(root, False)] == [f"{folder}/{name}" if folder else name]
            assert main(["verify", str(root), "--json"]) == 1
            path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
    assert findings(root, True) == set()


def test_what_is_no_file_is_found_in_the_place_of_each_and_never_waited_for(made, tmp_path):
    root = tmp_path / "copy"
    shutil.copytree(made("ingest"), root)
    for name in files_of(root):
        data = (root / name).read_bytes()
        for put in (pipe, Path.mkdir, lambda path: path.symlink_to("/dev/zero")):
            (root / name).unlink()
            put(root / name)
            if name == MANIFEST_FILE:
                assert main(["verify", str(root)]) == 2
            else:
                assert name in {found for found, _ in findings(root, False)}, name
            (root / name).rmdir() if put is Path.mkdir else (root / name).unlink()
            (root / name).write_bytes(data)
    assert findings(root, False) == set()


@pytest.mark.parametrize("command", sorted(OTHERS))
def test_other_folders_are_no_datasets(made, command, capsys):
    assert main(["verify", str(made(command))]) == 2
    assert "has no manifest.json, so it is not a dataset" in capsys.readouterr().err


@pytest.mark.parametrize("form", sorted(WRITERS))
def test_no_export_is_taken_for_a_dataset(made, tmp_path, form, capsys):
    if main(["export", str(made("ingest")), "--to", form, "--out", str(tmp_path / "out"), "-q"]) == 0:
        assert main(["verify", str(tmp_path / "out")]) == 2
    assert "--to" in capsys.readouterr().err or (tmp_path / "out").exists()
