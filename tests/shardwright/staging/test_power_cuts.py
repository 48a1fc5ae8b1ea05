"""A power cut leaves no dataset or the whole one, nothing that was not flushed is trusted, and a new run ends well."""

import json

import pytest
from ingesting import run, tree
from power_cuts import LOST, restore, simulated_disk

from shardwright.dataset.reader import ImageDataset
from shardwright.dataset.shard_names import index_path, shard_path
from shardwright.edit.derive import Derived, derive
from shardwright.edit.export_dataset import ExportOptions, export
from shardwright.errors import DatasetError
from shardwright.evaluation.thresholds import Thresholds, write_thresholds
from shardwright.ingest.tasks import new_tasks
from shardwright.lineage.blessing import Blessing, write_blessing
from shardwright.lineage.record import write_lineage
from shardwright.report.page import write_page
from shardwright.sample import write_sample
from shardwright.staging import ranges
from shardwright.staging.staging import PlannedShard, RecordResult, Staging
from shardwright.storage.checksum import checksum_file
from shardwright.storage.fingerprint import checksum_matches
from shardwright.storage.mirror import put_folder

pytestmark = pytest.mark.one_stack
_EVERY = 12


@pytest.fixture(scope="module")
def raw(tmp_path_factory, image_input):
    return {**image_input(tmp_path_factory.mktemp("in"), images=12), "shards": {"records": 8}}


@pytest.fixture(scope="module", params=["shards", "ranges"])
def cut(request, tmp_path_factory, raw):
    """The whole dataset's files, and all that power cuts in an ingest may leave."""
    root = tmp_path_factory.mktemp("disk")
    with simulated_disk(root) as disk, pytest.MonkeyPatch.context() as patch:
        if request.param == "ranges":
            patch.setattr(ranges, "_MOST_IMAGES", 3)
            patch.setattr(ranges, "_SMALL", 0)
        run(raw, root / "made" / "out")
        after = disk.after_cut(LOST)
    return tree(root / "made" / "out"), disk.states, after


def sound_staged(folder):
    """How many shards a resumed run would take over; each matches its row."""
    count = 0
    for file in sorted(folder.glob("made/.out.staging/*/done/[!.]*")):
        try:
            row = json.loads(file.read_bytes())
        except ValueError:
            continue
        planned = PlannedShard(row["split"], row["number"], row["total"])
        staging = Staging(str(file.parents[1]), file.parents[1].name, tools=row["tools"])
        result = staging.result(planned)
        if result is not None:
            count += 1
            shard = shard_path(*planned)
            assert checksum_file(staging.path(shard)) == result.info.checksum
            assert checksum_file(staging.path(index_path(shard))) == result.files[index_path(shard)][1]
    return count


def test_a_power_cut_leaves_no_dataset_or_a_whole_one(tmp_path, cut):
    whole, states, _ = cut
    assert len(states) > 2 * _EVERY
    there, kept = 0, 0
    for number, state in enumerate(states):
        folder = tmp_path / "cuts" / str(number)
        restore(state, folder)
        out = folder / "made" / "out"
        if out.exists():
            there += 1
            assert tree(out) == whole
            assert all(checksum_matches((out / name).read_text()) for name in ("build.json", "lineage.json"))
        else:
            with pytest.raises(DatasetError):
                ImageDataset.open(out)
        kept += sound_staged(folder) > 0
    assert there
    assert kept


def test_a_shard_that_is_written_again_is_not_vouched_for_by_its_old_row(tmp_path):
    planned = PlannedShard("train", 0, 1)
    made = tmp_path / "made" / ".out.staging"
    made.mkdir(parents=True)
    before = Staging.open(made, "f" * 64, "encoder 1")
    before.write_shard(planned, [RecordResult("a", b"1111")])
    with simulated_disk(tmp_path) as disk:
        Staging.open(made, "f" * 64, "encoder 2").write_shard(planned, [RecordResult("a", b"2222")])
    for number, state in enumerate(disk.states):
        restore(state, tmp_path / "cuts" / str(number))
        sound_staged(tmp_path / "cuts" / str(number))
    assert disk.states


def test_a_run_after_a_power_cut_makes_the_dataset(tmp_path, raw, cut, monkeypatch):
    whole, states, _ = cut
    # A version that cuts other ranges takes no task files of this one.
    monkeypatch.setattr(ranges, "_MOST_IMAGES", 3)
    if any("/parts/" in path for state in states for path in state):
        monkeypatch.setattr(ranges, "_SMALL", 0)
    for number, state in list(enumerate(states))[::_EVERY]:
        folder = tmp_path / "cuts" / str(number)
        restore(state, folder)
        run(raw, folder / "made" / "out")
        assert tree(folder / "made" / "out") == whole
        assert [place.name for place in (folder / "made").iterdir()] == ["out"], "leftovers"


def test_what_was_reported_as_written_survives(tmp_path, cut):
    whole, _, after = cut
    restore(after, tmp_path / "after")
    assert tree(tmp_path / "after" / "made" / "out") == whole


def blessing(folder):
    write_blessing(folder, Blessing("1", "digest", {"dice": 0.5}))


def lineage(folder):
    write_lineage(folder, kind="model", fingerprint="f", parents={}, recipe={})


def page(folder):
    write_page(folder / "report" / "report.html", "<html>")


def chosen(folder):
    write_thresholds(folder / "thresholds.json", Thresholds.fixed(2), ["a", "b"])


def samples(folder):
    write_sample(folder / "sample", images=1, height=64, width=64)


def task_files(folder):
    with new_tasks(str(folder), "tasks") as made:
        (made / "one").write_text("text")


def copied_folder(folder):
    (folder / "from").mkdir()
    (folder / "from" / "one").write_text("text")
    put_folder(folder / "from", str(folder / "to"))
    (folder / "from" / "one").unlink()


@pytest.mark.parametrize("write", [blessing, lineage, page, chosen, samples, task_files, copied_folder])
def test_other_files_survive_or_are_not_there(tmp_path, write):
    with simulated_disk(tmp_path) as disk:
        write(tmp_path)
        after = disk.after_cut(LOST)
    written = {p.relative_to(tmp_path).as_posix(): p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
    assert written
    assert {path: data for path, data in after.items() if data is not None} == written
    if write is copied_folder:  # Its caller publishes it.
        return
    for state in disk.states:
        assert all(state[path] == data for path, data in written.items() if path in state)


def test_a_subset_and_an_export_survive(tmp_path, small_dataset):
    source = ImageDataset.open(small_dataset(tmp_path / "source"))
    (tmp_path / "disk").mkdir()
    with simulated_disk(tmp_path / "disk") as disk:
        derive([source], tmp_path / "disk" / "subset", Derived("subset", {}), quiet=True)
        export(source, str(tmp_path / "disk" / "export"), ExportOptions(masks="png"))
        after = disk.after_cut(LOST)
    whole = {name: tree(tmp_path / "disk" / name) for name in ("subset", "export")}
    assert all(whole.values())
    for number, state in enumerate([after, *disk.states]):
        restore(state, tmp_path / str(number))
        for name, files in whole.items():
            there = tmp_path / str(number) / name
            assert tree(there) == files if there.exists() or state is after else True
