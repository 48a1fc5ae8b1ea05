"""`blessed` in place of a dataset's path: the dataset of the blessed model, also after later runs."""

import shutil

import pytest
from descent import Months
from ingesting import run as ingest

from shardwright.config import parse_config
from shardwright.dataset.reader import ImageDataset
from shardwright.errors import ConfigError, DatasetError
from shardwright.ingest import IngestRecipe
from shardwright.ingest import ingest as run_ingest
from shardwright.ingest.baseline import resolve_baseline, without_baseline
from shardwright.lineage.blessing import BLESSING_FILE
from shardwright.lineage.record import read_lineage, write_lineage


@pytest.fixture(scope="module")
def months(small_dataset, tmp_path_factory):
    return Months(tmp_path_factory.mktemp("months") / "run", small_dataset)


def config(root, **changes):
    raw = {
        "task": "classification",
        "input": {"images": "images"},
        "reuse_from": "blessed",
        "split": {"keep_from": "blessed"},
        "gate": {"drift": {"reference": "blessed"}},
        "run": {"root": str(root)},
    }
    return parse_config({**raw, **changes}, base="/base")


def test_it_is_the_dataset_of_the_model_in_force(months):
    settled = resolve_baseline(config(months.root))
    assert settled.split.keep_from == settled.gate.drift.reference == settled.reuse_from == str(months.datasets[3])
    recipe = IngestRecipe.of(settled)
    assert recipe.split.keep_from == ImageDataset.open(months.datasets[3]).manifest.digest


def test_without_a_blessed_model_there_is_none(tmp_path):
    settled = resolve_baseline(config(tmp_path / "new"))
    assert settled.split.keep_from is settled.reuse_from is None
    assert settled.gate.drift is None
    assert IngestRecipe.of(settled).options()["split"] == {}


def test_paths_stay_as_they_are(months):
    plain = config(months.root, reuse_from="ds", split={"keep_from": "ds"}, gate={})
    assert resolve_baseline(plain) is plain


def test_the_same_run_again_keeps_from_the_dataset_that_it_kept_from(months, tmp_path):
    """The baseline is not its own earlier dataset, or no run would ever be cached."""
    root = tmp_path / "run"
    shutil.copytree(months.root, root)
    place = root / months.datasets[3].relative_to(months.root)
    asked = config(root)
    recipe = IngestRecipe.of(resolve_baseline(config(root, split={}, gate={})), ["a", "b"]).options()
    recipe["split"] = {"keep_from": months.digest(1)}
    lineage = read_lineage(place)
    parents = {"input": "0" * 64, "previous": months.digest(1)}
    write_lineage(place, kind="ingest", fingerprint=lineage["fingerprint"], parents=parents, recipe=recipe)
    first = str(root / months.datasets[1].relative_to(months.root))
    assert resolve_baseline(asked, "0" * 64, ["a", "b"]).split.keep_from == first
    assert resolve_baseline(asked, "0" * 64, ["a", "b"]).reuse_from == str(place)
    for data, classes in (("1" * 64, ["a", "b"]), ("0" * 64, ["a", "c"])):
        assert resolve_baseline(asked, data, classes).split.keep_from == str(place)
    changed = config(root, split={"keep_from": "blessed", "salt": "x"})
    assert resolve_baseline(changed, "0" * 64, ["a", "b"]).split.keep_from == str(place)
    shutil.rmtree(first)
    with pytest.raises(ConfigError, match=r"split\.keep_from: the dataset .* which the baseline kept its splits from"):
        resolve_baseline(asked, "0" * 64, ["a", "b"])


def test_a_dataset_that_is_gone_is_reported(months, tmp_path):
    root = tmp_path / "run"
    shutil.copytree(months.root, root)
    shutil.rmtree(root / months.datasets[3].relative_to(months.root))
    with pytest.raises(ConfigError, match=r"reuse_from: the dataset of the blessed model .* is not in .*run"):
        resolve_baseline(config(root))
    (root / "pushed" / BLESSING_FILE).write_text("{")
    with pytest.raises(DatasetError, match="not a readable blessing"):
        resolve_baseline(config(root))


def test_a_compiled_pipeline_is_made_as_if_no_model_was_ever_blessed(months):
    without = without_baseline(config(months.root))
    assert without.reuse_from is without.split.keep_from is without.gate.drift is None
    plain = config(months.root, reuse_from="ds", split={"keep_from": "ds"}, gate={})
    assert without_baseline(plain) is plain


def test_old_images_stay_where_they_were(image_input, small_dataset, tmp_path):
    """A stratified split of other images divides all of them again, except with `previous`."""
    raw = image_input(tmp_path / "in", layout="label_csv", images=30)
    raw["split"] = {"ratios": {"train": 0.5, "eval": 0.25, "test": 0.25}, "method": "stratified"}
    months = Months(tmp_path / "run", small_dataset)
    shutil.rmtree(months.datasets[3])
    first = ingest(raw, months.datasets[3], workers=1)
    transformed = months.root / "artifacts/ImageTransform/transformed_examples/3"
    fingerprint = read_lineage(transformed)["fingerprint"]
    write_lineage(
        transformed, kind="transform_graph", fingerprint=fingerprint, parents={"input": first.digest}, recipe={}
    )
    more = image_input(tmp_path / "more", layout="label_csv", images=50)
    more["split"] = {**raw["split"], "keep_from": "blessed"}
    more["run"] = {"root": str(months.root)}
    made = run_ingest(resolve_baseline(parse_config(more, base=str(tmp_path))), tmp_path / "ds", workers=1, quiet=True)
    old, new = (
        {row.key: row.split for row in ImageDataset.open(place).ledger()}
        for place in (months.datasets[3], tmp_path / "ds")
    )
    assert len(new) == 50
    assert {key: new[key] for key in old} == old
    assert made.recipe["split"]["keep_from"] == first.digest
