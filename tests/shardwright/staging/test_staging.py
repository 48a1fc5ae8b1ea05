"""Staging and commit: what is finished is reused, what is not never shows, and the ledger must add up."""

import errno
import json
import os
import pickle
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import killing
import pytest

from shardwright.dataset.ledger import LedgerRow
from shardwright.dataset.reader import ImageDataset
from shardwright.dataset.shard_names import ShardNames
from shardwright.errors import CheckFailed, DatasetError, UsageError
from shardwright.staging.commit import DatasetPlan, commit, open_if_committed, remove_staged
from shardwright.staging.shard_writer import Part
from shardwright.staging.staging import PlannedShard, RecordResult, Staging
from shardwright.storage.locks import lock_file, lock_folder
from shardwright.storage.whole_files import WholeFile
from shardwright.tfrecords.encode import encode_example, ints

SHARDS = (PlannedShard("eval", 0, 1), PlannedShard("train", 0, 2), PlannedShard("train", 1, 2))


def plan(*, inputs=7, shards=SHARDS, rows=(), max_rejects=0.5, recipe=None):
    return DatasetPlan(
        kind="ingest",
        task="classification",
        classes=("a", "b"),
        recipe=recipe or {"salt": ""},
        parent="0" * 64,
        features={"image/key": "bytes"},
        inputs=inputs,
        shards=shards,
        rows=rows,
        max_rejects=max_rejects,
    )


def outcomes(shard):
    keys = {"eval": ["z", "y"], "train": [f"k{shard.number}{i}" for i in range(2)]}[shard.split]
    for key in keys:
        yield RecordResult(key, key.encode() * 3)
    if shard == SHARDS[1]:
        yield RecordResult("bad", None, "rejected", "truncated", "ends at byte 3")


def staged(root, the_plan):
    staging = Staging.open(root, the_plan.fingerprint)
    for shard in the_plan.shards:
        staging.write_shard(shard, outcomes(shard))
    return staging


def tree(root):
    return {
        str(p.relative_to(root)): p.read_bytes()
        for p in sorted(Path(root).rglob("*"))
        if p.is_file() and p.name not in ("build.json", "lineage.json")
    }


def test_a_dataset_reads_back_what_was_staged(tmp_path):
    the_plan = plan()
    out = tmp_path / "out"
    manifest = commit(staged(tmp_path / "staging", the_plan), the_plan, out, {"runner": "test"})
    dataset = ImageDataset.open(out)
    assert dataset.manifest == manifest
    assert dataset.splits == ("eval", "train")
    assert list(dataset.records("eval")) == [("z", b"zzz"), ("y", b"yyy")]
    assert [key for key, _ in dataset.records("train")] == ["k00", "k01", "k10", "k11"]
    assert dataset.num_records("train") == 4
    rows = list(dataset.ledger())
    assert [row.key for row in rows] == ["bad", "k00", "k01", "k10", "k11", "y", "z"]
    assert (rows[0].status, rows[0].code, rows[0].split, rows[0].index) == ("rejected", "truncated", "train", None)
    assert (rows[4].split, rows[4].shard, rows[4].index) == ("train", 1, 1)
    assert manifest.totals["rejected/truncated"] == 1
    assert manifest.totals["records/train"] == 4
    assert json.loads((out / "build.json").read_text())["runner"] == "test"
    assert not (tmp_path / "staging" / the_plan.fingerprint).exists()
    assert {p.name for p in tmp_path.iterdir()} == {"out", "staging"}


def test_only_shards_are_in_the_split_folders(tmp_path):
    the_plan = plan()
    commit(staged(tmp_path / "staging", the_plan), the_plan, tmp_path / "out", {})
    assert {p.name for p in (tmp_path / "out").glob("Split-*/*")} == {
        "data-00000-of-00001.tfrecord",
        "data-00000-of-00002.tfrecord",
        "data-00001-of-00002.tfrecord",
    }


def test_finished_shards_are_not_written_again(tmp_path):
    the_plan = plan()
    staging = Staging.open(tmp_path, the_plan.fingerprint)
    first = staging.write_shard(SHARDS[0], outcomes(SHARDS[0]))

    def never():
        raise AssertionError("the finished shard was written again")
        yield

    assert staging.write_shard(SHARDS[0], never()) == first


@pytest.mark.parametrize("damage", ["shard", "done", "index", "rows"])
def test_a_shard_with_a_damaged_part_is_written_again(tmp_path, damage):
    the_plan = plan()
    staging = Staging.open(tmp_path, the_plan.fingerprint)
    first = staging.write_shard(SHARDS[0], outcomes(SHARDS[0]))
    name = "data-00000-of-00001"
    files = {
        "shard": f"Split-eval/{name}.tfrecord",
        "done": f"done/Split-eval-{name}.json",
        "index": f"index/Split-eval/{name}.jsonl",
        "rows": f"rows/Split-eval-{name}.jsonl",
    }
    file = staging.path(files[damage])
    if damage in ("index", "rows"):
        file.unlink()
    else:
        file.write_bytes(file.read_bytes()[:-1])
    assert staging.result(SHARDS[0]) is None
    assert staging.write_shard(SHARDS[0], outcomes(SHARDS[0])) == first
    assert staging.result(SHARDS[0]) == first


def test_a_failing_writer_leaves_no_file(tmp_path):
    the_plan = plan()
    staging = Staging.open(tmp_path, the_plan.fingerprint)

    def broken():
        yield RecordResult("a", b"a")
        raise RuntimeError("disk on fire")

    with pytest.raises(RuntimeError, match="disk on fire"):
        staging.write_shard(SHARDS[0], broken())
    assert [p.name for p in Path(staging.root).rglob("*") if p.is_file()] == [".lock"]


def test_the_rest_of_a_lost_run_is_written_by_the_next(tmp_path):
    the_plan = plan()
    whole, resumed = tmp_path / "whole", tmp_path / "resumed"
    commit(staged(tmp_path / "s1", the_plan), the_plan, whole, {})
    Staging.open(tmp_path / "s2", the_plan.fingerprint).write_shard(SHARDS[1], outcomes(SHARDS[1]))
    commit(staged(tmp_path / "s2", the_plan), the_plan, resumed, {})
    assert tree(whole) == tree(resumed)


def test_an_unfinished_shard_is_not_published(tmp_path):
    the_plan = plan()
    staging = Staging.open(tmp_path / "s", the_plan.fingerprint)
    for missing in (2, 1):
        shard = SHARDS[2 - missing]
        staging.write_shard(shard, outcomes(shard))
        with pytest.raises(CheckFailed, match=f"{missing} of 3 shards are not written"):
            commit(staging, the_plan, tmp_path / "out", {})
        assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("inputs", [6, 8])
def test_a_ledger_that_does_not_add_up_is_not_published(tmp_path, inputs):
    the_plan = plan(inputs=inputs)
    with pytest.raises(CheckFailed, match=f"does not add up: 7 rows for {inputs} inputs"):
        commit(staged(tmp_path / "s", the_plan), the_plan, tmp_path / "out", {})
    assert [p.name for p in tmp_path.iterdir()] == ["s"]


def rejecting(count, inputs):
    for i in range(inputs):
        if i < count:
            yield RecordResult(f"k{i:03d}", None, "rejected", "truncated", f"reason {i}")
        else:
            yield RecordResult(f"k{i:03d}", b"x")


@pytest.mark.parametrize(
    ("rejected", "inputs", "share", "fails"),
    [
        (0, 20, 0.0, False),
        (1, 2, 0.0, True),
        (1, 2, 0.5, False),
        (1, 99, 0.01, True),
        (1, 100, 0.01, False),
        (7, 10, 0.69, True),
        (7, 10, 0.7, False),
        (3, 5, 0.01, True),
        (11, 1100, 0.01, False),
        (12, 1100, 0.01, True),
        (3, 3, 1.0, True),
        (13, 1290, 0.01, True),
        (29, 100, 0.29, False),
        (30, 100, 0.29, True),
    ],
)
def test_the_share_of_the_inputs_and_not_one_more_may_be_rejected(tmp_path, rejected, inputs, share, fails):
    the_plan = plan(inputs=inputs, shards=SHARDS[:1], max_rejects=share)
    staging = Staging.open(tmp_path / "s", the_plan.fingerprint)
    staging.write_shard(SHARDS[0], rejecting(rejected, inputs))
    if not fails:
        assert commit(staging, the_plan, tmp_path / "out", {}).totals["rejected"] == rejected
        return
    with pytest.raises(CheckFailed) as error:
        commit(staging, the_plan, tmp_path / "out", {})
    assert f"truncated {rejected}" in str(error.value)
    assert all(f"k{i:03d}: truncated: reason {i}" in str(error.value) for i in range(min(3, rejected)))
    assert "reason 3" not in str(error.value)
    assert not (tmp_path / "out").exists()


def test_rows_without_a_shard_take_their_place_in_the_ledger(tmp_path):
    the_plan = plan(inputs=8, rows=("plan",))
    staging = staged(tmp_path / "s", the_plan)
    staging.write_rows("plan", [rejected_row("k01a")])
    commit(staging, the_plan, tmp_path / "out", {})
    assert [row.key for row in ImageDataset.open(tmp_path / "out").ledger()].index("k01a") == 3


def rejected_row(key):
    return LedgerRow(key, "rejected", "missing_image", "not there")


def test_an_empty_folder_as_tfx_makes_it_is_filled(tmp_path):
    the_plan = plan()
    out = tmp_path / "examples" / "7"
    out.mkdir(parents=True)
    commit(staged(tmp_path / "s", the_plan), the_plan, out, {})
    assert ImageDataset.open(out).num_records("train") == 4


def test_the_same_dataset_again_is_nothing_to_do_and_another_is_refused(tmp_path):
    the_plan, out = plan(), tmp_path / "out"
    first = commit(staged(tmp_path / "s", the_plan), the_plan, out, {})
    before = tree(out)
    assert open_if_committed(out, the_plan.fingerprint) == first
    assert commit(Staging.open(tmp_path / "s", the_plan.fingerprint), the_plan, out, {}) == first
    other = plan(recipe={"salt": "x"})
    with pytest.raises(UsageError, match="contains another dataset"):
        commit(staged(tmp_path / "s", other), other, out, {})
    assert tree(out) == before


def test_a_folder_of_something_else_is_left_alone(tmp_path):
    the_plan = plan()
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.txt").write_text("x")
    with pytest.raises(UsageError, match=r"not empty \(thesis.txt\)"):
        commit(staged(tmp_path / "s", the_plan), the_plan, tmp_path / "out", {})
    (tmp_path / "file").write_text("x")
    with pytest.raises(UsageError, match="is not a folder"):
        open_if_committed(tmp_path / "file", "f")


def test_one_run_at_a_time_writes_a_dataset(tmp_path):
    staging = Staging.open(tmp_path, "f" * 64)
    again = pickle.loads(pickle.dumps(staging))
    with staging.locked(), pytest.raises(UsageError, match="another run"), again.locked():
        pass
    with again.locked():
        again.remove()
    with again.locked():
        assert Path(again.root, ".lock").exists()


def test_a_file_system_without_locks_is_reported(tmp_path, monkeypatch):
    def no_locks(file, how):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("shardwright.storage.locks.fcntl.flock", no_locks)
    with pytest.raises(UsageError, match=r"cannot be locked \(No locks available\)"):
        lock_folder(tmp_path, waiting=lambda: None)


def test_many_row_files_are_merged_in_order_with_few_open_files(tmp_path, monkeypatch):
    monkeypatch.setattr("shardwright.dataset.ledger._MERGE_WIDTH", 3)
    shards = tuple(PlannedShard("train", i, 11) for i in range(11))
    staging = Staging.open(tmp_path, "f" * 64)
    for shard in shards:
        staging.write_shard(shard, [RecordResult(f"{(i * 7 + shard.number * 13) % 101:03d}", b"") for i in range(5)])
    keys = [json.loads(line)["key"] for line in staging.ledger_lines(shards)]
    assert len(keys) == 55
    assert keys == sorted(keys)
    assert not list(tmp_path.rglob("merge-*"))


def test_long_ledgers_are_split_into_equal_parts(tmp_path, monkeypatch):
    monkeypatch.setattr("shardwright.staging.commit._ROWS_PER_PART", 3)
    the_plan = plan()
    commit(staged(tmp_path / "s", the_plan), the_plan, tmp_path / "out", {})
    parts = sorted((tmp_path / "out" / "ledger").iterdir())
    assert [len(p.read_text().splitlines()) for p in parts] == [2, 2, 3]
    keys = [row.key for row in ImageDataset.open(tmp_path / "out").ledger()]
    assert keys == sorted(keys)


KILLED = (
    killing.KILL_AT_STEP
    + """
sys.path[:0] = sys.argv[1].split(os.pathsep)
import test_staging
root = Path(sys.argv[2])
plan = test_staging.plan()
test_staging.commit(test_staging.staged(root / "s", plan), plan, root / "out", {})
print("done")
"""
)


@pytest.mark.slow
def test_a_kill_at_any_moment_shows_no_dataset_or_the_whole_one(tmp_path):
    the_plan = plan()
    commit(staged(tmp_path / "ws", the_plan), the_plan, tmp_path / "whole", {})
    whole = tree(tmp_path / "whole")
    modules = [str(Path(__file__).parent), str(Path(killing.__file__).parent)]
    survived = False
    for moment in range(1, 600, 17):
        root = tmp_path / str(moment)
        root.mkdir()
        run = subprocess.run(
            [sys.executable, "-c", KILLED, os.pathsep.join(modules), str(root), str(moment)],
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        )
        survived = "done" in run.stdout
        assert survived or run.returncode == -9, run.stderr
        if (root / "out").exists():
            assert tree(root / "out") == whole
        else:
            with pytest.raises(DatasetError):
                ImageDataset.open(root / "out")
            commit(staged(root / "s", the_plan), the_plan, root / "out", {})
            assert tree(root / "out") == whole
            assert not list(root.glob(".partial-*"))
        if survived:
            break
    assert survived


def test_further_files_are_part_of_a_finished_shard(tmp_path):
    staging = Staging.open(tmp_path, "f" * 64)

    def written(data):
        def all_outcomes():
            yield RecordResult("a", b"a")
            staging.write_file("figures/a", data)

        return staging.write_shard(SHARDS[0], all_outcomes(), further=["figures/a"])

    assert written(b"123").files["figures/a"] == (3, "")
    assert written(b"12345").files["figures/a"] == (3, "")
    assert staging.unfinished(SHARDS) == list(SHARDS[1:])
    assert Path(staging.location("figures/a")).read_bytes() == b"123"
    # As a power failure may leave it.
    staging.path("figures/a").write_bytes(b"1")
    assert staging.unfinished(SHARDS) == list(SHARDS)
    assert written(b"1234").files["figures/a"] == (4, "")
    staging.path("figures/a").unlink()
    assert not staging.is_shared("figures/a")
    assert staging.result(SHARDS[0]) is None


def test_a_shard_that_was_finished_without_further_files_is_rewritten(tmp_path):
    """As an earlier version left it, which kept other files or none."""
    staging = Staging.open(tmp_path, "f" * 64)
    staging.write_shard(SHARDS[0], [RecordResult("a", b"a")])

    def all_outcomes():
        yield RecordResult("a", b"a")
        staging.write_file("figures/a", b"123")

    assert staging.write_shard(SHARDS[0], all_outcomes(), further=["figures/a"]).files["figures/a"] == (3, "")
    assert staging.result(SHARDS[0]).files["figures/a"] == (3, "")


def test_two_attempts_at_one_file_do_not_write_into_each_other(tmp_path):
    with WholeFile(tmp_path / "f") as one:
        one.write(b"o")
        with WholeFile(tmp_path / "f") as other:
            other.write(b"other")
        assert (tmp_path / "f").read_bytes() == b"other"
        one.write(b"ne")
    assert (tmp_path / "f").read_bytes() == b"one"
    assert [path.name for path in tmp_path.iterdir()] == ["f"]


@pytest.mark.parametrize("group", ["", "tensorflow-2.16.2", "training"])
def test_nothing_stays_of_a_staging_folder_whose_dataset_is_published(tmp_path, group):
    the_plan, out = plan(max_rejects=0.5), tmp_path / "out"
    root = tmp_path / ".out.staging"
    commit(staged(root / group, the_plan), the_plan, out, {"runner": "test"})
    remove_staged(str(root), out)
    assert [place.name for place in tmp_path.iterdir()] == ["out"]


BOUNDS = (0, 2, 3, 7)


def results(begin, end):
    for number in range(begin, end):
        key = f"{(number * 5) % 7}ü"
        if number == 4:
            yield RecordResult(key, None, "rejected", "truncated", "ends", input_line=f'{{"key":"{key}"}}\n')
        else:
            label = {"image/class/label": ints([number % 2]), "image/encoded": bytes(number)}
            line, origin = f'{{"key":"{key}","row":[{number}]}}\n', f'["{number}"]' if number % 2 else ""
            yield RecordResult(key, encode_example(label), marks=("located",), origin=origin, input_line=line)


def parted(staging, the_plan, *numbers):
    ends = list(pairwise(BOUNDS))
    for number in numbers:
        staging.write_part(SHARDS[0], *ends[number], results(*ends[number]), the_plan.facts(SHARDS[0]))
    return staging.join_parts(SHARDS[0], BOUNDS, ShardNames(), the_plan.facts(SHARDS[0]), "inputs/z.jsonl")


def damage_nothing(records, noted):
    del records, noted


def cut_records(records, noted):
    records.write_bytes(records.read_bytes()[:-1])


def empty_records(records, noted):
    records.write_bytes(bytes(records.stat().st_size))


def lose_records(records, noted):
    records.unlink()


def empty_note(records, noted):
    noted.write_bytes(b"")


def change_note(records, noted):
    noted.write_bytes(noted.read_bytes().replace(b"located", b"Located"))


def of_another_encoder(records, noted):
    part = Part.decode(noted.read_bytes())
    part.tools = "encoder 2"
    noted.write_bytes(part.encode())


@pytest.mark.parametrize(
    "damage",
    [damage_nothing, cut_records, empty_records, lose_records, empty_note, change_note, of_another_encoder],
)
def test_a_shard_is_made_of_parts_and_a_damaged_one_is_written_again(tmp_path, damage):
    the_plan = plan()
    whole = Staging.open(tmp_path / "whole", the_plan.fingerprint)
    expected = whole.write_shard(SHARDS[0], results(0, 7), facts=the_plan.facts(SHARDS[0]), inputs="inputs/z.jsonl")
    staging = Staging.open(tmp_path / "parts", the_plan.fingerprint)
    assert staging.missing_parts(SHARDS[0], BOUNDS) == [0, 1, 2]
    assert parted(staging, the_plan, 2, 0) is None
    assert staging.missing_parts(SHARDS[0], BOUNDS) == [1]
    assert staging.result(SHARDS[0]) is None
    (noted,) = staging.path("parts").rglob("000000000-*.json")
    damage(noted.with_suffix(""), noted)
    if damage is not damage_nothing:
        assert parted(staging, the_plan, 1) == 0
        assert staging.missing_parts(SHARDS[0], BOUNDS) == [0]
        assert staging.result(SHARDS[0]) is None
    assert parted(staging, the_plan, 0, 1) is None
    assert staging.result(SHARDS[0]) == expected
    assert tree(staging.root) == tree(whole.root)
    # Its parts are gone, and a process that comes late changes nothing.
    assert not list(staging.path("parts").iterdir())
    assert parted(staging, the_plan) is None


def test_a_shard_is_left_to_the_process_that_makes_it(tmp_path):
    the_plan = plan()
    staging = Staging.open(tmp_path, the_plan.fingerprint)
    place = staging.path("parts/Split-eval-data-00000-of-00001")
    place.mkdir(parents=True)
    folder = os.open(place, os.O_RDONLY)
    assert lock_file(folder)
    assert parted(staging, the_plan, 0, 1, 2) is None
    assert staging.result(SHARDS[0]) is None
    os.close(folder)
    assert parted(staging, the_plan) is None
    assert staging.result(SHARDS[0]).info.records == 6
