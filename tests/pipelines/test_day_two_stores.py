"""Every day-two command on object stores, on what others wrote, and on what is half-written or damaged."""

import json
import os
import re
import shutil
from pathlib import Path

import pytest
from ingesting import run
from object_stores import SCHEMES, running_stores

from shardwright.dataset.reader import ImageDataset
from shardwright.edit import derive
from shardwright.pipelines.cli import main
from shardwright.staging.staging import Staging
from shardwright.storage import buckets

# Commands that read a dataset: all but its name. The output of a command that makes something is OUT.
READ = {
    "verify": ["verify", "DS"],
    "inspect": ["inspect", "DS"],
    "get": ["get", "DS", "KEY"],
    "stats": ["stats", "DS"],
    "report": ["report", "DS", "--out", "LOCAL/report.html", "--force"],
    "drift": ["drift", "DS"],
    "lineage": ["lineage", "DS"],
    "diff": ["diff", "DS", "DS"],
    "export": ["export", "DS", "--out", "LOCAL/files"],
}
MAKE = {
    "relabel": ["relabel", "DS", "LOCAL/new.csv", "--out", "OUT", "--confirmed", "other_classes"],
    "reshard": ["reshard", "DS", "--out", "OUT", "--shard-records", "3"],
    "merge": ["merge", "DS", "--out", "OUT"],
    "subset": ["subset", "DS", "--share", "0.5", "--out", "OUT"],
    "forget": ["forget", "DS", "--keys", "LOCAL/keys", "--out", "OUT"],
}
ALL = READ | MAKE


@pytest.fixture(scope="module")
def local(image_input, tmp_path_factory):
    """A dataset, and further inputs of some commands."""
    root = tmp_path_factory.mktemp("local")
    raw = image_input(root / "in", layout="label_csv", images=24)
    raw["shards"] = {"records": 6}
    run(raw, root / "ds", workers=1)
    dataset = ImageDataset.open(root / "ds")
    (root / "keys").write_text(next(dataset.entries(dataset.shards("train")[0]))[0] + "\n")
    (root / "new.csv").write_text((root / "in/labels.csv").read_text().replace("Fish", "Shark"))
    return root


@pytest.fixture(scope="module")
def stores():
    with running_stores() as running:
        yield running


def call(command, ds, local, out, scratch):
    """Command line with its places filled in."""
    (scratch / "keys").write_bytes((local / "keys").read_bytes())
    (scratch / "new.csv").write_bytes((local / "new.csv").read_bytes())
    places = {"DS": ds, "OUT": out, "LOCAL": scratch, "KEY": (local / "keys").read_text().strip()}
    parts = list(ALL[command])
    for name, place in places.items():
        parts = [part.replace(name, str(place)) for part in parts]
    return [*parts, "--json"]


def answer(arguments, capsys, code=0):
    capsys.readouterr()
    assert main(arguments) == code
    return json.loads(capsys.readouterr().out)


def without_places(value):
    """Returns the output without locations."""
    return json.loads(re.sub(r'"[^"]*(/ds|/made|/report\.html|://)[^"]*"', '"here"', json.dumps(value)))


@pytest.mark.slow
@pytest.mark.parametrize("scheme", SCHEMES[:1])
def test_on_a_store_every_command_prints_the_same_as_here(local, stores, tmp_path, scheme, capsys):
    url = stores.bucket(scheme)
    stores.copy_of(local / "ds", f"{url}/data/ds")
    for command in ALL:
        here, there = tmp_path / f"{command}-here", tmp_path / f"{command}-there"
        here.mkdir()
        there.mkdir()
        first = call(command, local / "ds", local, here / "made", here)
        other = call(command, f"{url}/data/ds", local, f"{url}/{command}/made", there)
        found = answer(other, capsys)
        assert without_places(found) == without_places(answer(first, capsys)), command
        again = answer(other, capsys)
        if command in MAKE:
            assert ImageDataset.open(f"{url}/{command}/made").manifest == ImageDataset.open(here / "made").manifest
            assert (found.pop("existed"), again.pop("existed")) == (False, True), command
        if command == "export":
            assert (found.pop("existed"), again.pop("existed")) == (False, True)
        assert again == found, command
    stores.copy_of(local / "ds", f"{url}/data/other")
    stores.requests.clear()
    assert main(["diff", f"{url}/data/ds", f"{url}/data/other"]) == 0
    asked = [path for _, path in stores.requests if ".tfrecord" in path]
    # Adjacent records need only one request.
    assert len(asked) <= 4 * len(ImageDataset.open(local / "ds").manifest.shards)
    shard_of = ImageDataset.open(local / "ds").shards("train")[0]
    for command in ("inspect", "verify"):
        there = answer([command, f"{url}/data/ds/{shard_of.path}", "--json"], capsys)
        assert there["records"] == shard_of.records
    stores.write(f"{url}/new.csv", (local / "new.csv").read_bytes())
    by_url = ["relabel", f"{url}/data/ds", f"{url}/new.csv", "--out", str(tmp_path / "by-url")]
    assert main([*by_url, "--confirmed", "other_classes"]) == 0
    assert ImageDataset.open(tmp_path / "by-url").manifest == ImageDataset.open(f"{url}/relabel/made").manifest


def test_shards_of_a_bucket_are_fetched_once_and_no_more_are_kept_here_than_are_needed(
    local, stores, tmp_path, monkeypatch, capsys
):
    url, compare, kept = stores.bucket("s3"), derive._check_hash, []

    def compared(shard, *copy):
        kept.extend(len(os.listdir(os.path.dirname(file))) for file in copy)
        compare(shard, *copy)

    monkeypatch.setattr(derive, "_check_hash", compared)
    stores.copy_of(local / "ds", f"{url}/ds")
    shards = [shard.path for shard in ImageDataset.open(local / "ds").manifest.shards]
    stores.requests.clear()
    assert main(["reshard", f"{url}/ds", "--shard-records", "4", "--out", str(tmp_path / "there")]) == 0
    fetched = [path for method, path in stores.requests if method == "GET" and ".tfrecord" in path]
    assert sorted(path.partition("/ds/")[2].partition("?")[0] for path in fetched) == sorted(shards)
    # A new shard has records of two old ones.
    assert len(kept) == len(shards)
    assert max(kept) == 1
    assert main(["reshard", str(local / "ds"), "--shard-records", "4", "--out", str(tmp_path / "here")]) == 0
    assert len(kept) == len(shards)
    here, there = (ImageDataset.open(tmp_path / place).manifest.shards for place in ("here", "there"))
    assert here == there
    data = (local / "ds" / shards[-1]).read_bytes()
    stores.write(f"{url}/ds/{shards[-1]}", data[:-1] + bytes([data[-1] ^ 1]))
    capsys.readouterr()
    assert main(["reshard", f"{url}/ds", "--shard-records", "5", "--out", str(tmp_path / "other")]) == 1
    assert f"{url}/ds/{shards[-1]}: does not match its hash in the manifest" in capsys.readouterr().err
    assert not (tmp_path / "other").exists()


DAMAGES = {
    "no manifest": lambda root: (root / "manifest.json").unlink(),
    "cut manifest": lambda root: (root / "manifest.json").write_bytes((root / "manifest.json").read_bytes()[:200]),
    "no shard": lambda root: shard(root).unlink(),
    "cut shard": lambda root: shard(root).write_bytes(shard(root).read_bytes()[:-9]),
    "flipped bit": lambda root: flip(shard(root)),
    "no index": lambda root: index(root).unlink(),
    "foreign index": lambda root: index(root).write_text('{"key": 1}\n'),
    "an empty folder": lambda root: [file.unlink() for file in root.rglob("*") if file.is_file()],
}
# Commands that the damage does not concern: they read no record, no index or no manifest.
UNTOUCHED = {
    "flipped bit": {"inspect", "lineage", "get"},
    "no index": {"inspect", "lineage"},
    "foreign index": {"inspect", "lineage"},
    "no shard": {"lineage"},
    "cut shard": {"lineage"},
}


def shard(root):
    return min((root / "Split-train").iterdir())


def index(root):
    return min((root / "index/Split-train").iterdir())


def flip(file):
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)


@pytest.mark.slow
@pytest.mark.parametrize("damage", DAMAGES)
def test_what_is_damaged_ends_in_one_message(local, tmp_path, damage, capsys):
    root = tmp_path / "ds"
    shutil.copytree(local / "ds", root)
    DAMAGES[damage](root)
    for command in ALL:
        scratch = tmp_path / command
        scratch.mkdir()
        capsys.readouterr()
        code = main(call(command, root, local, scratch / "made", scratch))
        output = capsys.readouterr()
        assert "Traceback" not in output.err
        if command in UNTOUCHED.get(damage, ()):
            continue
        assert code in (1, 2), (command, output)
        if command not in ("verify", "lineage"):
            assert output.err.startswith("shardwright: "), (command, output.err)
            assert str(root) in output.err, (command, output.err)
        # Staged shards are used again when the dataset has been fixed.
        assert {path.name for path in scratch.iterdir()} <= {"keys", "new.csv", ".made.staging"}


@pytest.mark.slow
def test_what_is_staged_on_a_bucket_is_forgotten_unless_a_run_is_at_work(local, stores, tmp_path, capsys):
    staging = f"{stores.bucket('gs')}/staging"
    name, training = "f" * 64, f"training/{'a' * 32}"
    stores.fill(staging, {f"{name}/rows/a": b"x", f"{training}/step": b"x", "mine/file": b"x"})
    command = ["forget", str(local / "ds"), "--keys", str(local / "keys"), "--out", str(tmp_path / "rest")]
    command += ["--staging", staging]
    staged = Staging.open(staging, name)
    with staged.locked():
        assert main(command) == 2
    assert f"{staging}/{name}: another run is active there" in capsys.readouterr().err
    assert len(stores.tree(staging)) == 3
    later = []

    def write_meanwhile(method, path):
        # One that has no lease, while what was listed goes.
        if method == "DELETE" and "step" in path and not later:
            later.append(path)
            stores.write(f"{staging}/{training}/later", b"x")

    stores.meddle = write_meanwhile
    assert main(command) == 2
    stores.meddle = None
    assert later
    assert f"{training}: a run on another machine wrote it while" in capsys.readouterr().err
    assert main(command) == 0
    assert set(stores.tree(staging)) == {"mine/file"}
    assert not Path(staged.root).exists()


@pytest.mark.slow
@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_half_written_dataset_on_a_store_ends_in_one_message(local, stores, tmp_path, scheme, capsys):
    url = stores.bucket(scheme)
    stores.copy_of(local / "ds", f"{url}/ds")
    buckets.delete(f"{url}/ds/manifest.json")
    buckets.delete(f"{url}/ds/lineage.json")
    for command in ALL:
        scratch = tmp_path / command
        scratch.mkdir()
        assert main(call(command, f"{url}/ds", local, f"{url}/made", scratch)) in (1, 2)
        output = capsys.readouterr().err
        assert output.startswith("shardwright: "), (command, output)
        assert f"{url}/ds" in output
    assert not stores.tree(f"{url}/made")


def test_what_is_not_there_is_a_wrong_call(tmp_path, capsys):
    """The exit code is 1 for a folder that exists without a complete dataset."""
    for name, text in {
        "keys": "a.jpg\n",
        "new.csv": "image,label\na.jpg,Fish\n",
        "c.yaml": "task: classification\ninput: {images: images}\n",
    }.items():
        (tmp_path / name).write_text(text)
    further = [
        ["clean", "DS", "--keep", "1"],
        ["preflight", "LOCAL/c.yaml", "--tpu", "v5e-2x4", "--dataset", "DS"],
        ["retry-rejects", "LOCAL/c.yaml", "DS", "--out", "OUT"],
    ]
    places = {"DS": tmp_path / "absent", "OUT": tmp_path / "out", "LOCAL": tmp_path, "KEY": "a.jpg"}
    for parts in [*ALL.values(), *further]:
        filled = list(parts)
        for name, place in places.items():
            filled = [part.replace(name, str(place)) for part in filled]
        assert main(filled) == 2, filled
        output = capsys.readouterr().err
        assert output.startswith("shardwright: ")
        assert str(tmp_path / "absent") in output, output
        assert not (tmp_path / "out").exists()


@pytest.mark.shared_data
def test_records_of_others(shared_data, local, tmp_path, capsys):
    """`inspect` shows them, `verify` reads them; commands that need a dataset report it, and how to make one."""
    records = shared_data / "golden/object_detection.record"
    for command in ("inspect", "verify"):
        assert answer([command, str(records), "--json"], capsys)["records"] == 40
    for command in ALL:
        if command not in ("inspect", "verify"):
            scratch = tmp_path / command
            scratch.mkdir()
            assert main(call(command, records, local, scratch / "made", scratch)) in (1, 2)
            output = capsys.readouterr().err
            assert output.startswith(f"shardwright: {records}: ")
            assert "inspect" in output or command == "lineage"


@pytest.mark.slow
@pytest.mark.shared_data
def test_a_dataset_of_records_of_others_takes_every_command(shared_data, tmp_path, capsys):
    raw = {
        "task": "classification",
        "input": {"images": str(Path(shared_data, "golden", "*.record")), "unlisted_images": "unlabeled"},
    }
    run(raw, tmp_path / "ds", workers=1)
    first = min(
        key
        for split in ImageDataset.open(tmp_path / "ds").splits
        for key in ImageDataset.open(tmp_path / "ds").keys(split)
    )
    (tmp_path / "keys").write_text(f"{first}\n")
    (tmp_path / "new.csv").write_text(f"image,label\n{first},Raccoon\n")
    for command in ALL:
        scratch = tmp_path / command
        scratch.mkdir()
        arguments = call(command, tmp_path / "ds", tmp_path, scratch / "made", scratch)
        unlisted = ["--unlisted-images", "empty"] if command == "relabel" else []
        assert main([*arguments, *unlisted]) == 0, command
        json.loads(capsys.readouterr().out)
