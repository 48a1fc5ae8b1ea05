"""`blessed` in a compiled pipeline: the dataset of the blessed model, resolved where the pipeline runs."""

import json
import shutil
from dataclasses import replace

import pytest
from ingesting import config as parsed
from ingesting import run as ingest
from object_stores import SCHEMES

from shardwright.dataset.reader import ImageDataset
from shardwright.errors import ConfigError, DatasetError
from shardwright.ingest import IngestRecipe, identify_input, locate, survey_input
from shardwright.ingest.baseline import BaselineRequest, baseline_source, resolve_baseline_at_run, without_baseline
from shardwright.lineage.blessing import Blessing, read_blessing, write_blessing
from shardwright.storage.fingerprint import canonical_json, checksummed_json

WORDS = {"reuse_from": "blessed", "split": {"keep_from": "blessed"}, "gate": {"drift": {"reference": "blessed"}}}


class Months:
    """Two deliveries and their datasets; the second one's splits were kept from the first one's, as a pipeline does."""

    def __init__(self, folder, image_input):
        self.folder = folder
        self.raw = {
            month: image_input(folder / str(month), layout="class_folders", images=images)
            for month, images in ((1, 10), (2, 14))
        }
        self.datasets = {1: folder / "first", 2: folder / "second"}
        ingest(self.raw[1], self.datasets[1], workers=1)
        first = str(self.datasets[1])
        raw = {**self.raw[2], "reuse_from": first, "split": {"keep_from": first}}
        made = parsed(raw)
        ingest(raw, self.datasets[2], workers=1)
        build = self.datasets[2] / "build.json"
        build_info = {name: value for name, value in json.loads(build.read_text()).items() if name != "digest"}
        build.write_text(checksummed_json({**build_info, **baseline_source(locate(made), self.datasets[2])}))

    def digest(self, month):
        return ImageDataset.open(self.datasets[month]).manifest.digest

    def push(self, folder, month, **changes):
        """Blesses a model that was evaluated on a month's dataset."""
        (folder / "1").mkdir(parents=True, exist_ok=True)
        (folder / "1" / "saved_model.pb").write_text("model")
        examples = {"place": str(self.datasets[month]), "digest": self.digest(month), **changes}
        write_blessing(folder, Blessing("1", "d" * 64, examples=examples))
        return str(folder)

    def settled(self, push, month, words=WORDS):
        """Returns the result of the first task of a pipeline for a month's delivery."""
        config = parsed({**self.raw[month], **words})
        asked = BaselineRequest.from_json(BaselineRequest.of(config, push).to_json())
        without = without_baseline(config)
        recipe, location = IngestRecipe.of(without, ["Fish", "Sugar"]), locate(without)
        found = asked.find()
        copied = None if found is None else asked.copied_from(found)
        data = identify_input(survey_input(recipe, replace(location, earlier=copied))).fingerprint
        return resolve_baseline_at_run(asked, found, recipe, location, data)


@pytest.fixture(scope="module")
def months(tmp_path_factory, image_input):
    return Months(tmp_path_factory.mktemp("months"), image_input)


def kept(settled):
    """Returns the digests of the datasets that an ingest keeps splits from and is compared with."""
    drift = json.loads(settled.drift or "{}").get("drift", {})
    return (
        settled.recipe.split.keep_from,
        settled.location.previous,
        settled.location.earlier,
        drift.get("location"),
        drift.get("digest"),
    )


def test_it_is_the_dataset_of_the_model_in_force(months, tmp_path):
    settled = months.settled(months.push(tmp_path, 1), 2)
    place, digest = str(months.datasets[1]), months.digest(1)
    assert kept(settled) == (digest, place, place, place, digest)
    assert json.loads(settled.drift)["drift"]["images"] == 2000
    # Cached by what it is.
    assert json.loads(settled.recipe.to_json())["options"]["split"]["keep_from"] == digest
    assert kept(months.settled(str(tmp_path), 2, {"reuse_from": "blessed"})) == (None, None, place, None, None)
    assert kept(months.settled(str(tmp_path), 2, {"split": WORDS["split"]})) == (digest, place, None, None, None)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_on_a_bucket_as_on_a_disk(months, tmp_path, stores, scheme):
    bucket = stores.bucket(scheme)
    stores.copy_of(months.datasets[1], f"{bucket}/runs/7/ImageExampleGen/examples")
    place = f"{bucket}/runs/7/ImageExampleGen/examples"
    months.push(tmp_path, 1, place=place)
    assert read_blessing(f"{bucket}/pushed") is None
    stores.copy_of(tmp_path, f"{bucket}/pushed")
    settled = months.settled(f"{bucket}/pushed", 2)
    assert kept(settled) == (months.digest(1), place, place, place, months.digest(1))


def test_without_a_blessed_model_there_is_none(months, tmp_path):
    assert kept(months.settled(str(tmp_path / "none"), 2)) == (None, None, None, None, None)
    assert months.settled(str(tmp_path / "none"), 2).drift == ""


def test_splits_are_compared_with_each_other_all_the_same(months, tmp_path):
    words = {"gate": {"drift": {"reference": "blessed"}, "skew": {"images": 30}}}
    first = months.settled(str(tmp_path / "none"), 2, words)
    assert json.loads(first.drift) == {"skew": {"images": 30, "alpha": 0.006, "ignore": []}}
    later = json.loads(months.settled(months.push(tmp_path, 1), 2, words).drift)
    assert later["skew"]["images"] == 30
    assert later["drift"]["digest"] == months.digest(1)


def test_the_same_run_again_is_kept_from_what_it_was_kept_from(months, tmp_path):
    """Else no run would be cached: a recipe names the dataset that the baseline was kept from, never the baseline."""
    first = months.settled(months.push(tmp_path / "a", 1), 1)
    assert kept(first) == (None, None, None, None, None)
    second = months.settled(months.push(tmp_path / "b", 2), 2)
    place, digest = str(months.datasets[1]), months.digest(1)
    assert kept(second) == (digest, place, place, place, digest)
    assert second.recipe.options() == ImageDataset.open(months.datasets[2]).manifest.recipe
    # Another salt is another run.
    salted = months.settled(str(tmp_path / "b"), 2, {"split": {"keep_from": "blessed", "salt": "x"}})
    assert salted.recipe.split.keep_from == months.digest(2)


def test_what_the_dataset_in_force_was_kept_from_is_gone(months, tmp_path):
    moved = months.folder / "moved"
    shutil.copytree(months.datasets[2], moved)
    build_info = json.loads((moved / "build.json").read_text())
    # A path in there is relative to the dataset.
    assert build_info["kept_from"]["split.keep_from"] == "../first"
    build_info["kept_from"]["split.keep_from"] = "../gone"
    (moved / "build.json").write_text(canonical_json(build_info))
    push = months.push(tmp_path / "pushed", 2, place=str(moved))
    with pytest.raises(
        ConfigError, match=r"split\.keep_from: .*gone is no longer the dataset .* Restore it\. Name a dataset"
    ):
        months.settled(push, 2)
    # Copying changes nothing of what is made, so nothing has to be there.
    assert months.settled(push, 2, {"reuse_from": "blessed"}).location.earlier == str(months.datasets[1])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"place": ""}, r"reuse_from: .*BLESSED\.json does not contain the location of the blessed model's dataset"),
        ({"place": "/nowhere/at/all"}, r"reuse_from: /nowhere/at/all: .*It is the dataset of the blessed model"),
        ({"digest": "0" * 64}, r"reuse_from: .*first is no longer the dataset 000000000000"),
    ],
)
def test_a_dataset_that_is_not_there_is_reported_with_the_fix(months, tmp_path, changes, message):
    with pytest.raises(ConfigError, match=message + r".* Name a dataset by its path"):
        months.settled(months.push(tmp_path, 1, **changes), 2)


def test_a_damaged_blessing_is_reported(months, tmp_path):
    push = months.push(tmp_path, 1)
    (tmp_path / "BLESSED.json").write_text("{")
    with pytest.raises(DatasetError, match="not a readable blessing"):
        months.settled(push, 2)


def test_a_blessing_on_one_machine_has_no_location(tmp_path):
    (tmp_path / "1").mkdir()
    write_blessing(tmp_path, Blessing("1", "d" * 64, {"mean_dice": 0.5}, {"training": "t"}))
    assert set(json.loads((tmp_path / "BLESSED.json").read_text())) == {"model", "digest", "metrics", "fingerprints"}


def test_where_every_dataset_has_a_path_nothing_is_looked_up(months):
    assert BaselineRequest.of(parsed({**months.raw[1], "reuse_from": "ds"}), "/push") is None
    assert baseline_source(locate(parsed(months.raw[1])), "out") == {}
