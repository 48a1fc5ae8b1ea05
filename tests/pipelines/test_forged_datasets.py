"""A dataset that someone has forged: every command refuses it by a message, and writes nothing outside of its output."""

import json
import os
import shutil
import sys

import pytest

from shardwright.dataset import Dataset
from shardwright.errors import DatasetError
from shardwright.fingerprint import fingerprint
from shardwright.manifest import Manifest
from shardwright_pipelines.cli import main

# What anyone may put in the place of any value.
HOSTILE = [
    None, True, -1, 1.5, 10**15, 10**40, "", "..", "../../evil", "/tmp/evil", "a/b", ".", "a\0b", "\x1b[2J", "\ud800",
    "x" * 300, [], [1], ["../evil"], {}, {"a": 1}, {"../evil": "../evil"}, [[]], float("nan"),
]  # fmt: skip


@pytest.fixture(scope="module")
def source(tmp_path_factory, small_dataset):
    return small_dataset(tmp_path_factory.mktemp("source"), counts={"train": [2], "eval": [1]})


@pytest.fixture
def forged(tmp_path, source, monkeypatch):
    """Makes a dataset with another manifest, in a folder of its own; its digest is right."""
    inside = tmp_path / "a" / "b" / "c"
    inside.mkdir(parents=True)
    monkeypatch.chdir(inside)
    shutil.copytree(source, inside / "forged")

    def forge(manifest):
        seal(manifest)
        (inside / "forged" / "manifest.json").write_text(json.dumps(manifest))

    return forge


def seal(manifest):
    try:
        manifest["digest"] = fingerprint({name: value for name, value in manifest.items() if name != "digest"})
    except (ValueError, TypeError):
        pass  # No such manifest can have a digest.


def places(value, path=()):
    """The places of all values in a manifest, but only the first item of each list."""
    yield path
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from places(inner, (*path, name))
    elif isinstance(value, list) and value:
        yield from places(value[0], (*path, 0))


def changed(manifest, path, value, *, name=False):
    """A manifest with another value at a place, or with another name for it."""
    manifest = json.loads(json.dumps(manifest))
    inner = manifest
    for step in path[:-1]:
        inner = inner[step]
    if name:
        inner[value] = inner.pop(path[-1])
    else:
        inner[path[-1]] = value
    return manifest


def forgeries(manifest):
    for path in places(manifest):
        for value in HOSTILE if path else []:
            yield path, value, changed(manifest, path, value)
            if isinstance(value, str) and isinstance(path[-1], str):
                yield (*path, "name"), value, changed(manifest, path, value, name=True)
        if path and isinstance(path[-1], str):
            inner = json.loads(json.dumps(manifest))
            parent = inner
            for step in path[:-1]:
                parent = parent[step]
            del parent[path[-1]]
            yield (*path, "missing"), None, inner


def sound(manifest):
    """A manifest as an ingest with many options has it."""
    recipe = {
        "images": {"reencode": "png", "size": [24, 36], "quality": 90, "optimize": True},
        "features": {"preset": "tf_vision", "map": {"a": "b"}},
        "split": {"by": "hash"},
    }
    return {**manifest, "recipe": recipe, "recipe_fingerprint": fingerprint(recipe)}


def commands(keys):
    yield ["subset", "forged", "--count", "2", "--out", "out"]
    yield ["subset", "forged", "--splits", "train", "--classes", "Fish", "--out", "out"]
    yield ["reshard", "forged", "--shard-records", "1", "--out", "out"]
    yield ["merge", "forged", "--out", "out"]
    yield ["forget", "forged", "--keys", keys, "--out", "out"]
    yield ["relabel", "forged", "labels.csv", "--out", "out"]
    yield ["export", "forged", "--out", "out"]
    yield ["export", "forged", "--layout", "classes", "--masks", "png", "--out", "out"]
    yield ["verify", "forged"]
    yield ["verify", "forged", "--deep"]
    yield ["stats", "forged"]
    yield ["diff", "forged", "sound"]
    yield ["diff", "sound", "forged"]
    yield ["get", "forged", "train/0001"]
    yield ["inspect", "forged"]
    yield ["report", "forged", "--out", "out.html"]
    yield ["lineage", "forged"]


def around(folder):
    """All that is in a folder, but below `out`."""
    return sorted(
        os.path.relpath(os.path.join(here, name), folder)
        for here, folders, files in os.walk(folder)
        for name in (*folders, *files)
        if not os.path.relpath(os.path.join(here, name), folder).startswith("a/b/c/out")
    )


def accepted(manifest):
    """The forgeries that the parser takes; what it says of the others is one short line without control characters."""
    for path, value, forgery in forgeries(manifest):
        seal(forgery)
        try:
            Manifest.from_json(json.dumps(forgery))
        except DatasetError as error:
            assert str(error).isprintable(), (path, value)
            assert len(str(error)) < 300, (path, value)
        else:
            yield path, value, forgery


def test_the_parser_takes_no_value_that_leads_elsewhere(source):
    manifest = sound(json.loads((source / "manifest.json").read_text()))
    seal(manifest)
    assert Manifest.from_json(json.dumps(manifest))
    taken = {path for path, value, _ in accepted(manifest) if value != []}
    assert {path[-1] for path in taken if path[0] in ("shards", "parts")} == {"bytes", "first_key", "last_key"}
    assert {path[0] for path in taken} == {
        "classes", "digest", "features", "kind", "names", "labels", "parent", "recipe", "shards", "task", "totals"
    }  # fmt: skip


def ends_well(command, tmp_path, capsys):
    """Runs a command; says whether it ended with a message or its result, and that it changed nothing elsewhere."""
    before = around(tmp_path)
    code = main(command)
    said = capsys.readouterr()
    assert code in (0, 1, 2), command
    assert "Traceback" not in said.err
    assert around(tmp_path) == before, command
    return code


def test_every_command_ends_well_all(tmp_path, forged, source, capsys):
    manifest = sound(json.loads((source / "manifest.json").read_text()))
    (tmp_path / "a/b/c/keys").write_text("train/0000\n")
    (tmp_path / "a/b/c/labels.csv").write_text("Image_Label,EncodedPixels\ntrain/0000.png_Fish,1 3\n")
    shutil.copytree(source, "sound")
    import collections, traceback
    failed = collections.Counter()
    for path, value, forgery in accepted(manifest):
        forged(forgery)
        for command in commands("keys"):
            try:
                code = ends_well(command, tmp_path, capsys)
            except BaseException as error:
                last = traceback.extract_tb(error.__traceback__)[-1]
                key = (type(error).__name__, str(error)[:80], command[0], last.filename[-40:], last.lineno)
                if not failed[key]:
                    print("FAIL", path, repr(value)[:50], command, key, file=sys.__stderr__)
                failed[key] += 1
            for made in ("out", ".out.staging"):
                shutil.rmtree(made, ignore_errors=True)
            for made in ("out.html",):
                if os.path.exists(made): os.unlink(made)
    print(failed)
