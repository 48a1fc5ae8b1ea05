"""Power cuts on a real ext4 and a real xfs: a training's checkpoints, a run with its blessing, clean. Needs root."""

import os
import shutil
import subprocess
from pathlib import Path

import own_models
import pytest
import yaml
from any_model import BLESSES_ANY
from descent import Months, record_months
from real_disks import KINDS, SAID, real_disk
from recipes import changed
from running import SHARDWRIGHT, run
from training import COUNTS, RECIPE, SIZE, spec_of, start, trained

from shardwright.components.image_trainer.training.checkpoints import CheckpointFolder
from shardwright.components.image_trainer.training.history import read_history, read_summary
from shardwright.lineage.blessing import model_digest, read_blessing
from shardwright.sample import write_sample
from shardwright.storage.checksum import checksum_file

pytestmark = pytest.mark.soak

_CUTS = int(os.environ.get("SHARDWRIGHT_CUTS", "50"))
_QUIET = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}


@pytest.fixture(scope="module", params=KINDS)
def disk(request):
    with real_disk(request.param) as made:
        yield made


def test_a_training_continues_from_a_whole_checkpoint_to_the_same_weights(disk, small_dataset, capsys):
    recipe = changed(RECIPE, order="exact", epochs=4)
    place = disk.folder / "training"
    counts = {split: [number] for split, number in COUNTS.items()}
    base = disk.prepared(lambda folder: small_dataset(folder, counts=counts, size=lambda number: SIZE))
    with disk.mounted(base) as folder:
        spec = spec_of(place, folder / "dataset", recipe, every=1)
        shutil.rmtree(place)

    def begin():
        place.mkdir()
        return start(spec)

    def ready():
        return any(place.glob("checkpoints/step-*"))

    ((finished,), seconds) = disk.run(base, begin, ready=ready)
    with disk.mounted(finished.image):
        whole = read_summary(place).weights, read_history(place)
    counts = {"checkpoint": 0, "none": 0, "ended": 0}
    for cut in disk.cuts(base, begin, seconds, _CUTS, ready=ready):
        with disk.mounted(cut.image):
            notes = []
            found = CheckpointFolder(spec.checkpoints, note=notes.append).latest()
            assert notes == [], "a checkpoint under its name is damaged"
            if cut.ended:
                assert read_summary(place).weights == whole[0]
            else:
                ended = (place / "model.keras").exists()
                counts["checkpoint" if found else "ended" if ended else "none"] += 1
            summary = trained(spec)
            assert (summary.weights, read_history(place)) == whole
            assert summary.resumed[-1:] == ([found.step] if found else [])
    with capsys.disabled():
        print(f"\n{disk.kind}, training: {_CUTS} cuts: {counts}, all recovered")


def files(root):
    found = (place for place in Path(root).rglob("*") if place.is_file() and place.name != ".lock")
    return {str(place.relative_to(root)): checksum_file(place) for place in found}


def artifact_of(name):
    return tuple(name.split("/")[:4])


def test_clean_leaves_a_folder_whole_or_deletes_it(disk, small_dataset, tmp_path, capsys):
    months = Months(tmp_path / "run", small_dataset)
    record_months(months)
    base = disk.prepared(lambda folder: shutil.copytree(tmp_path / "run", folder / "run"))
    root, command = disk.folder / "run", ["clean", "run", "--keep", "1"]

    def begin():
        return subprocess.Popen([SHARDWRIGHT, *command], cwd=disk.folder, **_QUIET)

    ((finished,), seconds) = disk.run(base, begin)
    with disk.mounted(base):
        before = files(root)
    with disk.mounted(finished.image):
        after = files(root)
    assert after.items() < before.items()
    counts = {"before": 0, "between": 0, "after": 0}
    for cut in disk.cuts(base, begin, seconds, _CUTS):
        with disk.mounted(cut.image) as folder:
            found = files(root)
            assert after.items() <= found.items()
            for place in {artifact_of(name) for name in before.keys() - after.keys()}:
                mine = {name: value for name, value in before.items() if artifact_of(name) == place}
                there = {name: value for name, value in found.items() if artifact_of(name) == place}
                assert there in ({}, mine), "half a folder under its name"
            assert run(folder, "lineage", "run").code == 0
            if cut.ended:
                assert found == after
            else:
                counts["before" if found == before else "after" if found == after else "between"] += 1
            assert run(folder, *command).code == 0
            assert files(root) == after
    with capsys.disabled():
        print(f"\n{disk.kind}, clean: {_CUTS} cuts: {counts}, all recovered")


_CONFIG = {
    "name": "small",
    "input": {"images": "data/train_images", "labels": {"path": "data/train.csv"}},
    "split": {"ratios": {"train": 0.6, "eval": 0.2, "test": 0.2}},
    "transform": {"size": [32, 48]},
    "loader": {"order": "exact"},
    "gate": {"allow_anomalies": ["INT_TYPE_SMALL_INT"]},
    "trainer": {"model": "own_models:normed", "epochs": 2, "batch_size": 4, "checkpoint": {"every": 1}},
    "evaluator": BLESSES_ANY,
    "run": {"root": "root"},
}


def write_config(folder, **trainer):
    config = {**_CONFIG, "trainer": {**_CONFIG["trainer"], **trainer}}
    (folder / "small.yaml").write_text(yaml.safe_dump(config))


def write_project(folder):
    write_sample(str(folder / "data"), images=24, height=64, width=96, seed=4, quiet=True)
    shutil.copy(own_models.__file__, folder)
    write_config(folder)


def begin_run(folder):
    # Next to the disk, so that the cuts do not contain it.
    with folder.with_name(SAID).open("w") as said:
        return subprocess.Popen([SHARDWRIGHT, "run", "small.yaml"], cwd=folder, stdout=said, stderr=said)


def blessed(folder):
    """The digest of the blessed model, which is whole, as are all its ancestors; empty if there is none."""
    pushed = folder / "root/pushed"
    blessing = read_blessing(pushed)
    if blessing is None:
        return ""
    assert model_digest(pushed / blessing.model) == blessing.digest
    lineage = run(folder, "lineage", "root")
    assert lineage.code == 0, lineage.err
    return blessing.digest


@pytest.mark.parametrize("again", [True, False], ids=["a second model", "the first run"])
def test_a_run_has_the_old_blessing_or_the_new_one_and_a_second_call_ends_it(disk, again, capsys):
    base = disk.prepared(write_project)
    old = ""
    if again:
        ((first,), _) = disk.run(base, lambda: begin_run(disk.folder))
        with disk.mounted(first.image) as folder:
            old = blessed(folder)
            assert old
        base = disk.prepared(lambda folder: write_config(folder, epochs=4), first.image)
    ((finished,), seconds) = disk.run(base, lambda: begin_run(disk.folder))
    with disk.mounted(finished.image) as folder:
        new = blessed(folder)
        assert new not in ("", old)
    counts, cuts, seen = {"old": 0, "new": 0}, _CUTS if again else _CUTS // 5, set()
    for cut in disk.cuts(base, lambda: begin_run(disk.folder), seconds, cuts):
        with disk.mounted(cut.image) as folder:
            found = blessed(folder)
            assert found != old if cut.ended else True, "what was reported as pushed is not blessed"
            if not cut.ended:
                counts["old" if found == old else "new"] += 1
            # A second call takes long, and many cuts find the same files.
            state = frozenset(files(folder / "root").items())
            if state in seen:
                continue
            seen.add(state)
            ended = run(folder, "run", "small.yaml")
            assert ended.code == 0, ended.err
            assert "Traceback" not in ended.err
            assert blessed(folder) not in ("", old)
            assert not list((folder / "root/staging/training").glob("*"))
            assert not list((folder / "root/staging").glob("[0-9a-f]*"))
    with capsys.disabled():
        print(f"\n{disk.kind}, run: {cuts} cuts: blessing {counts}, {len(seen)} different states, all recovered")
