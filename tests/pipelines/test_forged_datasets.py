"""A forged dataset: commands refuse it by a message, or take it, and nothing is written outside of the output."""

import json
import os
import shutil
from collections import Counter
from contextlib import suppress

import pytest

from shardwright.dataset.manifest import Manifest
from shardwright.dataset.reader import ImageDataset
from shardwright.errors import DatasetError
from shardwright.pipelines.cli import main
from shardwright.storage.fingerprint import fingerprint

# Values that anyone may put in place of another.
HOSTILE = [
    None, True, -1, 1.5, 10**15, 10**40, "", "..", "../../evil", "/tmp/evil", "a/b", ".", "a\0b", "\x1b[2J", "\ud800",
    "x" * 300, [], [1], ["../evil"], {}, {"a": 1}, {"../evil": "../evil"}, [[]], float("nan"),
]  # fmt: skip


@pytest.fixture(scope="module")
def source(tmp_path_factory, small_dataset):
    return small_dataset(tmp_path_factory.mktemp("source"), counts={"train": [2], "eval": [1]})


@pytest.fixture
def forged(tmp_path, source, monkeypatch):
    """Makes a dataset with another manifest, in a separate folder; its digest is right."""
    inside = tmp_path / "a" / "b" / "c"
    inside.mkdir(parents=True)
    monkeypatch.chdir(inside)
    shutil.copytree(source, inside / "forged")

    def forge(manifest):
        seal(manifest)
        (inside / "forged" / "manifest.json").write_text(json.dumps(manifest))

    return forge


def seal(manifest):
    with suppress(ValueError, TypeError):  # Some can have no digest.
        manifest["digest"] = fingerprint({name: value for name, value in manifest.items() if name != "digest"})


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
        "images": {"encoding": "png", "size": [24, 36], "quality": 90, "optimize": True},
        "features": {"preset": "tf_vision", "map": {"a": "b"}},
        "split": {"method": "hash"},
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
    """Returns the forgeries that the parser takes; its errors for others have one line without control characters."""
    for path, value, forgery in forgeries(manifest):
        seal(forgery)
        problem = problem_of(forgery)
        assert problem.isprintable(), (path, value)
        assert len(problem) < 300, (path, value)
        if not problem:
            yield path, value, forgery


def problem_of(manifest):
    try:
        Manifest.from_json(json.dumps(manifest))
    except DatasetError as error:
        return str(error)
    return ""


def test_the_parser_takes_no_value_that_leads_elsewhere(source):
    manifest = sound(json.loads((source / "manifest.json").read_text()))
    seal(manifest)
    assert Manifest.from_json(json.dumps(manifest))
    taken = {path for path, value, _ in accepted(manifest) if value != []}
    assert {path[-1] for path in taken if path[0] in ("shards", "parts")} == {"bytes", "first_key", "last_key"}
    free = {"classes", "digest", "features", "names", "parent", "recipe", "shards", "sizes", "totals"}
    assert {path[0] for path in taken} == free


def ends_well(command, tmp_path, capsys):
    """Runs a command; returns whether it ended with a message or its result, and checks that all else is unchanged."""
    before = around(tmp_path)
    code = main(command)
    output = capsys.readouterr()
    assert code in (0, 1, 2), command
    assert "Traceback" not in output.err
    assert around(tmp_path) == before, command
    return code


@pytest.fixture
def there(tmp_path, source, forged):
    """The commands' other inputs."""
    (tmp_path / "a/b/c/keys").write_text("train/0000\n")
    (tmp_path / "a/b/c/labels.csv").write_text("Image_Label,EncodedPixels\ntrain/0000.png_Fish,1 3\n")
    shutil.copytree(source, "sound")
    return sound(json.loads((source / "manifest.json").read_text()))


def remove_outputs():
    for made in ("out", ".out.staging"):
        shutil.rmtree(made, ignore_errors=True)
    if os.path.exists("out.html"):
        os.unlink("out.html")


@pytest.mark.parametrize("name", ["../../evil", "..", "/tmp/evil", "a/b", 7, None, [], "a\0b"])
def test_a_split_that_leads_elsewhere_is_refused(tmp_path, forged, there, capsys, name):
    for shard in there["shards"]:
        if shard["split"] == "train":
            shard["split"] = name
    forged(there)
    # The first one is tried with all of them, the others with those that write.
    for command in list(commands("keys"))[: None if name == "../../evil" else 4]:
        assert ends_well(command, tmp_path, capsys) in (1, 2), command
        assert not os.path.exists("out")


def test_commands_end_well_with_what_the_parser_takes(tmp_path, forged, there, capsys):
    """Every third forgery meets one command: the slow test below tries them all."""
    seen, some = set(), list(commands("keys"))
    for path, _, forgery in accepted(there):
        if path not in seen:
            seen.add(path)
            if len(seen) % 3 == 0:
                forged(forgery)
                ends_well(some[len(seen) // 3 % len(some)], tmp_path, capsys)
                remove_outputs()
    assert len(seen) > 3 * len(some)


@pytest.mark.soak
def test_every_command_ends_well_with_what_the_parser_takes(tmp_path, forged, there, capsys):
    seen = Counter()
    for path, _, forgery in accepted(there):
        seen[path] += 1
        if seen[path] <= 2:
            forged(forgery)
            for command in commands("keys"):
                ends_well(command, tmp_path, capsys)
                remove_outputs()
    assert len(seen) > 50


@pytest.mark.parametrize(
    "path",
    ["Split-train", "Split-train/data-00000-of-00001.tfrecord", "index", "index/Split-train/data-00000-of-00001.jsonl"],
)
def test_a_link_is_no_part_of_a_dataset(tmp_path, forged, there, capsys, path):
    forged(there)
    place = tmp_path / "a/b/c/forged" / path
    place.rename(tmp_path / "elsewhere")
    place.symlink_to(tmp_path / "elsewhere")
    assert ends_well(["stats", "forged"], tmp_path, capsys) == 1
    assert ends_well(["verify", "forged"], tmp_path, capsys) == 1
    assert ends_well(["reshard", "forged", "--out", "out"], tmp_path, capsys) == 1


def test_a_dataset_with_unusual_names_is_none_that_is_forged(tmp_path, small_dataset):
    names = ("Fish & chips", "..", "a\\b", "/etc", "é", "x" * 200, " ")
    keys = {"train": [2], "eval": [1]}
    made = small_dataset(tmp_path, classes=names, counts=keys, key_of=lambda split, n: f"../{split}\x1b/{n} é")
    dataset = ImageDataset.open(made)
    assert dataset.manifest.classes == names
    assert [len(dataset.keys(split)) for split in dataset.splits] == [1, 2]
    assert len(list(dataset.ledger())) == 3
