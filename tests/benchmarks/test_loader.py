"""The benchmark of the loader: turns, shares, advice and data are right; no test checks a speed."""

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.loader import many_records
from shardwright.dataset.reader import ImageDataset
from shardwright.loader.advice import Loaded, advise, shuffle_buffer
from shardwright.loader.profile import STEPS, Rate, shares, take_turns
from shardwright.tfrecords.records import find_feature

FOUND = Loaded(
    records=20_000,
    shards=40,
    record_bytes=60_000.0,
    size=(350, 525),
    channels=4,
    batch=32,
    processors=2,
    exact_share=0.95,
)


def test_methods_take_turns_and_only_their_own_batches_are_timed():
    now, taken = [0.0], []

    def method(name, seconds):
        for _ in itertools.count():
            now[0] += seconds
            taken.append(name)
            yield None

    methods = {"slow": lambda: method("slow", 4.0), "quick": lambda: method("quick", 1.0)}
    rates = take_turns(methods, 8, 2, rounds=3, ready=1, clock=lambda: now[0], work_clock=lambda: 2 * now[0])
    assert taken == [*["slow"] * 3, *["quick"] * 3] * 3
    assert rates["slow"] == Rate((2.0,) * 3, (1.0,) * 3)
    assert rates["quick"].images == 8
    assert rates["quick"].seconds == 0.25
    assert rates["slow"].share_of(rates["quick"]) == 0.25


def test_a_ceiling_has_a_turn_before_and_after_each():
    now, taken = [0.0], []

    def method(name, seconds):
        taken.append(name)
        while True:
            now[0] += seconds
            yield None

    # Each of its turns is slower than the one before, as on a machine that gets busy.
    slower = itertools.count(1)
    methods = {name: lambda name=name: method(name, 4.0) for name in ("one", "other")}
    rates = take_turns(
        methods,
        8,
        2,
        ceiling=lambda: method("ceiling", float(next(slower))),
        rounds=2,
        ready=1,
        clock=lambda: now[0],
        work_clock=lambda: 3 * now[0],
    )
    assert taken == ["ceiling", "one", "ceiling", "other", "ceiling"] * 2
    # 8 / 1 and 8 / 2 images a second, then 8 / 4 and 8 / 5; the method has 8 / 4.
    assert rates["one"] == Rate((2.0, 2.0), (1.5, 1.5), (6.0, 1.8), (4.5 / 8, 13.5 / 8))
    assert rates["one"].share == pytest.approx((2 / 6 + 2 / 1.8) / 2)
    assert rates["one"].added == pytest.approx(((1.5 - 4.5 / 8) + (1.5 - 13.5 / 8)) / 2)
    assert rates["one"].work_share == pytest.approx((4.5 / 12 + 13.5 / 12) / 2)
    assert rates["other"].ceiling == pytest.approx(((8 / 2 + 8 / 3) / 2, (8 / 5 + 8 / 6) / 2))


def test_a_share_is_the_median_of_rounds_that_met_the_same_trouble():
    ceiling, ours = Rate((100.0, 10.0, 100.0), (1.0,) * 3), Rate((80.0, 8.0, 50.0), (1.0,) * 3)
    assert ours.share_of(ceiling) == 0.8
    assert ours.images == 50.0


@given(
    work=st.dictionaries(st.sampled_from(STEPS[:-1]), st.floats(-1e-3, 1e-2)),
    total=st.floats(0, 1e-1),
)
def test_shares_are_parts_of_a_whole(work, total):
    found = shares(work, total)
    assert tuple(share.step for share in found) == STEPS
    assert all(share.seconds >= 0 for share in found)
    assert sum(share.share for share in found) == pytest.approx(1.0 if any(share.seconds for share in found) else 0.0)
    assert sum(share.seconds for share in found) >= total - 1e-12


def test_what_no_step_accounts_for_is_batching():
    found = {share.step: share for share in shares({"decode": 0.6, "mask": 0.1, "augment": -0.2}, 1.0)}
    assert found["batch"].seconds == pytest.approx(0.3)
    assert found["augment"].seconds == 0.0
    assert found["decode"].share == pytest.approx(0.6)


def test_advice_has_a_value_and_a_reason():
    result = {advice.setting: advice for advice in advise(FOUND)}
    assert result["cycle length"].value == "16"
    assert result["loader.shuffle_buffer"].value == "2048"
    assert "64 batches of 32, 123 MB" in result["loader.shuffle_buffer"].reason
    assert result["loader.order"].value == "exact"
    assert result["memory"].value.endswith(" GB")
    assert all(advice.reason for advice in result.values())


@pytest.mark.parametrize(
    ("changes", "setting", "value", "message"),
    [
        ({"shards": 3}, "cycle length", "3", "3 of 3 shards concurrently; more shards would mix better"),
        ({"records": 500}, "loader.shuffle_buffer", "500", "all there are"),
        ({"record_bytes": 5e6}, "loader.shuffle_buffer", "64", "no more than 256 MB, or two batches"),
        ({"exact_share": 0.5}, "loader.order", "fast", "50% of the images/s"),
    ],
)
def test_advice_follows_the_data(changes, setting, value, message):
    result = {advice.setting: advice for advice in advise(Loaded(**{**vars(FOUND), **changes}))}
    assert result[setting].value == value
    assert message in result[setting].reason


@given(records=st.integers(1, 10**7), record_bytes=st.floats(1, 1e8), batch=st.integers(1, 4096))
def test_a_buffer_is_bounded_and_mixes_at_least_two_batches(records, record_bytes, batch):
    buffer = shuffle_buffer(Loaded(**{**vars(FOUND), "records": records, "record_bytes": record_bytes, "batch": batch}))
    assert buffer >= 2 * batch
    assert buffer <= max(2 * batch, records)
    assert buffer * record_bytes <= max(256 << 20, 2 * batch * record_bytes)


def test_many_records_are_a_whole_dataset_that_a_second_call_finds(tmp_path):
    dataset = ImageDataset.open(many_records(tmp_path, 50))
    keys = dataset.keys("train")
    assert sorted(keys) == [f"{number:07d}" for number in range(50)]
    assert len(dataset.shards("train")) == 16
    labels = {key: int(find_feature(record, "image/class/label")[0]) for key, record in dataset.records("train")}
    assert labels == {key: int(key) % 2 for key in keys}
    before = json.loads((tmp_path / "records-50" / "manifest.json").read_text())["digest"]
    assert ImageDataset.open(many_records(tmp_path, 50)).manifest.digest == before
    assert [path.name for path in tmp_path.iterdir()] == ["records-50"]
