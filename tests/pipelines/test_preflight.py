"""Every rule of the preflight finds its problem, names the place and the fix, and is silent otherwise."""

import copy
import dataclasses
import re
from pathlib import Path

import build
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardwright.config.kubeflow import KubeflowTrainer
from shardwright.loader.memory import loader_memory
from shardwright.pipelines.preflight.feeding_rules import fits_memory, memory_estimate
from shardwright.pipelines.preflight.rule_report import ERROR, WARNING, check
from shardwright.pipelines.preflight.rules import RULES
from shardwright.pipelines.preflight.run_facts import DatasetFacts, Facts, LoaderTensor, SplitFacts, dataset_facts
from shardwright.pipelines.tpu import TpuSlice
from shardwright.tfrecords.encode import ints

MB, GB = 1 << 20, 1 << 30
BY_ID = {rule.id: rule for rule in RULES}


def config(**changes):
    """Returns a configuration that passes; `section__option=value` changes an option without checking the value."""
    made = build.config(source="images", task="segmentation")
    good = {
        "trainer__accelerator": "tpu",
        "trainer__hosts": 2,
        "trainer__batch_size": 64,
        "trainer__precision": "bfloat16",
        "loader__order": "exact",
        "shards__hosts": 2,
        "transform__size": (352, 544),
    }
    for place, value in {**good, **changes}.items():
        section, _, option = place.rpartition("__")
        target = copy.copy(getattr(made, section)) if section else made
        object.__setattr__(target, option, value)
        if section:
            object.__setattr__(made, section, target)
    return made


def split(records=4000, shards=20, size=100 * MB):
    return SplitFacts((records // shards,) * shards, (size,) * shards)


def dataset(**changes):
    fed = (
        LoaderTensor("image", (32, 352, 544, 3), "float32"),
        LoaderTensor("target", (32, 352, 544, 4), "uint8"),
        LoaderTensor("weight", (32,), "float32"),
    )
    good = {
        "root": "/data",
        "kind": "transform",
        "task": "segmentation",
        "classes": ("Fish", "Flower", "Gravel", "Sugar"),
        "labels": "masks",
        "ignores": False,
        "splits": {"train": split(), "eval": split(640, 2), "test": split(640, 2)},
        "sizes": ((352, 544),),
        "sampled": 100,
        "unlabeled": 0,
        "statistics": True,
        "fed": fed,
    }
    return DatasetFacts(**{**good, **changes})


def facts(*, cfg=None, data=None, **changes):
    good = {
        "slice": TpuSlice("ct5lp-hightpu-4t", "2x4"),
        "hosts": 2,
        "host_processors": 112,
        "host_memory": 192 * GB,
        "needed": 4000.0,
        "measured": 500.0,
        "processors": 2,
    }
    return Facts(config=config(**(cfg or {})), dataset=dataset(**(data or {})), **{**good, **changes})


def fast(**cfg):
    return {"loader__order": "fast", **cfg}


def slices(machine="ct5lp-hightpu-4t", topology="4x4", count=2, **cfg):
    """Facts of several slices that train together."""
    trainer = KubeflowTrainer(machine=machine, topology=topology, slices=count)
    good = {"kubeflow__trainer": trainer, "trainer__hosts": 4 * count, "trainer__batch_size": 128 * count}
    found = TpuSlice("ct5lp-hightpu-4t", "4x4")
    return facts(cfg={**good, **cfg}, slice=found, slices=count, hosts=4 * count, needed=1000.0)


# Rule -> what makes it speak, where it points, what it must name.
FAILING = {
    "slice-hosts": (facts(hosts=3), "--hosts", "1 or 2 hosts, not 3"),
    "node-pools": (
        slices(topology="4x8"),
        "kubeflow.trainer",
        "its 2 node pools are slices v5e-4x8, and v5e-4x4 is to be checked. Use --tpu v5e-4x8",
    ),
    "trainer-hosts": (facts(cfg={"trainer__hosts": 1}), "trainer.hosts", "1, and 2 hosts"),
    "accelerator": (facts(cfg={"trainer__accelerator": "cpu"}), "trainer.accelerator", "'cpu'"),
    "batch-devices": (facts(cfg={"trainer__batch_size": 60}), "trainer.batch_size", "60 images .* 8 chips"),
    "batch-hosts": (facts(cfg={"trainer__batch_size": 63}), "trainer.batch_size", "63 images .* 2 hosts"),
    "batch-lanes": (facts(cfg={"trainer__batch_size": 16}), "trainer.batch_size", "2 per chip, .* 64"),
    "precision": (facts(cfg={"trainer__precision": "float32"}), "trainer.precision", "'float32'"),
    "steps-per-epoch": (
        facts(data={"splits": {"train": split(40, 2)}}),
        "trainer.batch_size",
        "32 images per step, and one of them has only 20 of the 40",
    ),
    "batch-share": (
        facts(data={"splits": {"train": split(400, 2)}}),
        "trainer.batch_size",
        "6 steps .* at most 40",
    ),
    "loads": (facts(data={"refusal": "key 3: has no label."}), "loader", "key 3: has no label. Fix"),
    "fixed-shapes": (
        facts(data={"fed": (LoaderTensor("image", (None, 352, 544, 3), "uint8"),)}),
        "loader",
        r"\[\?, 352",
    ),
    "no-strings": (facts(data={"fed": (LoaderTensor("target", (32,), "string"),)}), "loader", "target is text"),
    "device-types": (facts(data={"fed": (LoaderTensor("target", (32,), "int64"),)}), "loader", "target is int64"),
    "one-size": (facts(data={"sizes": ((352, 544), (350, 525))}), "transform.size", "2 sizes .* 350 x 525"),
    "size": (facts(data={"sizes": ((350, 525),)}), "transform.size", r"\[352, 544\].*\[350, 525\]"),
    "stride": (facts(data={"sizes": ((350, 525),)}), "transform.size", r"padded to \[352, 528\].* 1.1% more"),
    "stride-least": (facts(data={"sizes": ((12, 64),)}), "transform.size", "12, 64.* stride 16"),
    "square-turns": (facts(cfg={"loader__augment": ("rotate90",)}), "loader.augment", "352 x 544 into 544 x 352"),
    "task": (facts(data={"task": "classification"}), "task", "segmentation, and /data was made for classification"),
    "splits-present": (facts(data={"splits": {"train": split(), "eval": split()}}), "split.test", "no split test"),
    "classes": (
        facts(cfg={"input__classes": {"Fish": None}}),
        "input.classes",
        r"1 class \('Fish'\), and /data has 4 classes",
    ),
    "labels": (
        facts(data={"labels": "single", "unlabeled": 3}),
        "input.unlisted_images",
        "3 of 100 examples of /data have no label",
    ),
    "ignored-pixels": (
        facts(cfg={"trainer__model": "mine.models:build"}, data={"ignores": True}),
        "trainer.model",
        "'mine.models:build' is a custom model",
    ),
    "statistics": (
        facts(cfg={"loader__normalize": "dataset"}, data={"statistics": False}),
        "loader.normalize",
        "no statistics.json in /data",
    ),
    "features": (facts(cfg={"features__preset": "tfds"}), "features", "'tfds'"),
    "shards-hosts": (
        facts(cfg=fast(), data={"splits": {"train": split(shards=5)}}),
        "shards",
        r"the 5 shards of train .* 2 hosts, which read 2 parts .* multiple of 2 shards .* better 20",
    ),
    "shards-enough": (
        facts(cfg=fast(), data={"splits": {"train": split(shards=4)}}),
        "shards",
        "4 shards of 105 MB for 2 hosts.* {count: 20}",
    ),
    "shard-size": (facts(data={"splits": {"train": split(size=900 * MB)}}), "shards.target_size", "943.7 MB"),
    "record-size": (
        facts(data={"splits": {"train": split(20, 20, 40 * MB)}}),
        "shards.target_size",
        "150,000,000 bytes per shard, and a record has 41.9 MB",
    ),
    "equal-steps": (
        facts(cfg=fast(), data={"splits": {"train": SplitFacts((1, 2, 1, 2), (MB,) * 4)}}),
        "shards",
        r"2 to 4 records.* 2 of 6 \(33%\)",
    ),
    "eval-padding": (
        facts(data={"splits": {"eval": split(70, 2)}}),
        "trainer.batch_size",
        "70 examples: padded to 128, 45%",
    ),
    "host-memory": (
        facts(cfg={"loader__shuffle_buffer": 1_000_000}),
        "loader.shuffle_buffer",
        "of a host's 206 GB.*smaller shuffle buffer",
    ),
    "images-per-second": (facts(needed=60_000.0), "trainer.batch_size", "60,000 images/s are needed; 500 .* 56,000"),
    "resume": (facts(cfg=fast()), "loader.order", "'fast'"),
    "shuffle": (facts(cfg={"loader__shuffle_buffer": 32}), "loader.shuffle_buffer", "32 records .* has 32"),
}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_a_rule_is_silent_where_all_is_well(rule):
    assert list(rule.find(facts())) == []
    assert list(rule.find(slices())) == []


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_a_rule_reports_what_is_wrong_where_and_what_to_do(rule):
    wrong, where, message = FAILING[rule.id]
    report = check([rule], wrong)
    assert report.findings, "nothing found"
    assert report.failed == (rule.severity == ERROR)
    found = report.findings[0]
    assert (found.rule, found.severity, found.where) == (rule.id, rule.severity, where)
    assert re.search(message, f"{found.problem}. {found.fix}")
    assert len(found.fix) > 5
    assert not found.problem.endswith(".")
    assert found.fix.endswith(".")


@pytest.mark.parametrize(
    ("wrong", "rule", "problem", "fix"),
    [
        (
            slices(trainer__batch_size=48),
            "batch-devices",
            "48 images cannot be shared equally by the 32 chips of 2 x v5e-4x4",
            "Use a multiple of 32: 32 or 64.",
        ),
        (slices(trainer__hosts=4), "trainer-hosts", "4, and 8 hosts are requested", "Set trainer.hosts: 8"),
        (slices(count=3, trainer__batch_size=384, trainer__hosts=4), "trainer-hosts", "4, and 12 hosts", "hosts: 12"),
        (
            dataclasses.replace(slices(), hosts=4),
            "slice-hosts",
            "2 x v5e-4x4 has 8 hosts, not 4",
            "Use --hosts 8, or another topology.",
        ),
        (slices(topology="2x2"), "node-pools", "2, and a slice 2x2 .* has one host", "Use a larger topology"),
        (slices(topology="3x3"), "node-pools", "'3x3' is not a topology", "Use 2x2"),
        (slices(topology=None), "node-pools", "missing for ct5lp-hightpu-4t", "Use one of: 2x2"),
        (slices(trainer__batch_size=64), "batch-lanes", "64 images are 2 per chip", "8 x 32 = 256"),
    ],
)
def test_the_rules_are_of_all_slices_together(wrong, rule, problem, fix):
    found = {one.rule: one for one in check(RULES, wrong).findings}[rule]
    assert re.search(problem, found.problem), found
    assert fix in found.fix


def test_the_page_has_a_row_for_every_rule():
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "preflight.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([a-z-]+)` \| (\w+) \| (.+?) \|", page, re.MULTILINE)
    assert rows == [(rule.id, rule.severity, rule.about) for rule in RULES]


def test_rules_have_names_of_their_own_and_known_severities():
    assert len(BY_ID) == len(RULES) >= 15
    assert {rule.severity for rule in RULES} == {ERROR, WARNING}


def test_a_larger_batch_than_buffer_is_named_as_what_fills_the_memory():
    wrong = facts(cfg={"trainer__batch_size": 6400, "loader__shuffle_buffer": 1}, host_memory=48 * GB)
    (found,) = check([BY_ID["host-memory"]], wrong).findings
    assert found.where == "trainer.batch_size"


def test_without_a_dataset_the_configuration_alone_is_asked():
    alone = dataclasses.replace(facts(), dataset=None, measured=None, needed=None)
    report = check(RULES, alone)
    assert report.findings == ()
    assert len(report.passed) >= 10
    assert report.unchecked["loads"] == "give --dataset DIR"
    assert report.unchecked["images-per-second"] == "give --needed IMAGES_PER_SECOND"
    assert set(report.passed) | set(report.unchecked) == set(BY_ID)
    wrong = {"shards__count": 3, "shards__target_size": None, "loader__order": "fast", "shards__hosts": None}
    found = check(RULES, dataclasses.replace(alone, config=config(**wrong))).findings
    assert [one.rule for one in found] == ["shards-hosts", "resume"]
    found = check(RULES, dataclasses.replace(alone, config=config(loader__order="fast", shards__hosts=None))).findings
    assert [one.rule for one in found] == ["shards-enough", "resume"]
    unlabeled = config(task="classification", input__unlisted_images="unlabeled")
    assert [one.rule for one in check(RULES, dataclasses.replace(alone, config=unlabeled)).findings] == ["labels"]


def test_errors_come_before_warnings():
    found = check(RULES, facts(cfg={"trainer__batch_size": 63})).findings
    assert [one.severity for one in found] == sorted((one.severity for one in found), key=lambda one: one == WARNING)


def test_a_loader_that_refuses_leaves_its_rules_unasked():
    report = check(RULES, facts(data={"fed": (), "refusal": "no"}, measured=None))
    assert [one.rule for one in report.findings] == ["loads"]
    assert {"fixed-shapes", "no-strings", "device-types", "images-per-second"} <= set(report.unchecked)


@given(
    batch=st.integers(1, 512),
    machine=st.sampled_from([("1t", "1x1"), ("4t", "2x2"), ("4t", "2x4"), ("8t", "2x4"), ("4t", "4x4")]),
    shards=st.lists(st.integers(0, 300), max_size=12),
    order=st.sampled_from(["fast", "exact"]),
    buffer=st.integers(1, 5000),
)
def test_no_facts_break_a_rule(batch, machine, shards, order, buffer):
    found = TpuSlice(f"ct5lp-hightpu-{machine[0]}", machine[1])
    cfg = {"trainer__batch_size": batch, "loader__order": order, "loader__shuffle_buffer": buffer}
    splits = {"train": SplitFacts(tuple(shards), tuple(count * 1000 for count in shards))} if shards else {}
    report = check(RULES, facts(cfg=cfg, data={"splits": splits}, slice=found, hosts=found.hosts))
    assert report.unchecked == {}
    result = {one.rule for one in report.findings}
    assert ("batch-devices" in result) == (batch % found.chips != 0)
    assert {one.id for one in RULES} == result | set(report.passed)


@given(
    record=st.floats(1, 1e7),
    buffer=st.integers(1, 10_000),
    batch=st.integers(1, 256),
    processors=st.integers(1, 256),
    channels=st.integers(0, 8),
)
def test_more_of_anything_takes_more_memory(record, buffer, batch, processors, channels):
    def estimate(**changes):
        given = {"record": record, "shuffle_buffer": buffer, "batch": batch, "processors": processors}
        return loader_memory(**{**given, "channels": channels, "size": (35, 52), "shards": 4, **changes}).total

    least = estimate()
    assert estimate(record=2 * record, shuffle_buffer=2 * buffer) > least
    assert estimate(batch=batch + 1) > least
    assert estimate(processors=processors + 1) > least
    assert estimate(channels=channels + 1) > least
    assert estimate(shards=8) > least


def test_the_estimate_follows_the_dataset():
    one = memory_estimate(facts(cfg={"trainer__batch_size": 2}, host_processors=1, host_memory=GB))
    # Records that are mixed, on the way to a decoder, or read ahead: four batches.
    assert one.shuffle == int((1024 + 64 + 4) * dataset().mean_record)
    assert one.batches == 352 * 544 * (5 * (3 * 4 + 3 + 4) + 4 * (3 + 4))


def test_what_the_trainer_keeps_decoded_is_counted():
    def estimate(records=(100,), **changes):
        splits = {"train": SplitFacts(records, tuple(1000 * each for each in records))}
        given = {"cfg": fast(), "hosts": 1, "data": {"splits": splits, "root": changes.pop("root", "/data")}}
        return memory_estimate(facts(**{**given, **changes}))

    # A byte for each channel, and one for the bits of four classes and of what is ignored.
    one = estimate()
    assert one.kept == 100 * 352 * 544 * 4
    assert one.total - dataclasses.replace(one, kept=0).total == one.kept
    assert estimate((100, 0)).kept == one.kept
    most = (1 << 30) // (352 * 544 * 4)
    assert estimate((most,)).kept > 0
    assert [estimate((most + 1,)).kept, estimate((50, 50)).kept, estimate(hosts=2).kept] == [0, 0, 0]
    assert [estimate(root="gs://bucket/data").kept, estimate(cfg={"loader__order": "exact"}).kept] == [0, 0]
    small = {"hosts": 1, "host_processors": 1, "host_memory": GB, "data": {"splits": {"train": split(100, 1)}}}
    (problem,) = fits_memory(facts(cfg=fast(), **small))
    assert "0.1 GB of decoded images that stay" in problem.problem
    # On a host with little memory the Trainer decodes them again.
    assert [estimate(host_processors=1, host_memory=4 * one.kept - less).kept for less in (0, 4)] == [one.kept, 0]


def test_what_is_under_way_follows_batch_and_processors():
    given = {"record": 1e4, "shuffle_buffer": 1, "size": (8, 8), "channels": 0, "shards": 1}
    found = [loader_memory(batch=b, processors=p, **given).shuffle for b, p in ((4, 1), (4096, 1), (4, 100))]
    assert found == [10_000 * records for records in (1 + 64 + 16, 1 + 64 + 4 * 4096, 1 + 200 + 16)]
    # From eight processors on, four batches are finished at the same time, and four may wait.
    batches = [loader_memory(batch=10, processors=p, **given).batches // (64 * 15) for p in (7, 8)]
    assert batches == [5 * 10 + 4 * 7 * 3 // 15, 9 * 10 + 4 * 8 * 3 // 15]


def test_facts_are_those_of_the_manifest_and_the_records(tmp_path, small_dataset):
    def second_without_label(number, example):
        return {**example, **({"image/class/label": ints([])} if number == 1 else {})}

    def size(number):
        return 24, 36 + number % 2

    root = small_dataset(tmp_path, task="classification", size=size, change=second_without_label)
    found = dataset_facts(str(root))
    assert (found.root, found.kind, found.task, found.classes) == (
        str(root),
        "ingest",
        "classification",
        ("Fish", "Sugar"),
    )
    assert found.sizes == ((24, 36), (24, 37))
    assert (found.sampled, found.unlabeled) == (7, 1)
    assert found.splits["train"].records == (3, 2)
    assert found.splits["train"].total == 5
    assert found.mean_record > 100


@pytest.mark.parametrize(
    ("rule", "speaks", "silent"),
    [
        ("batch-share", {"train": split(64 * 10 - 2, 1)}, {"train": split(64 * 10, 1)}),
        ("splits-present", {"train": split(), "eval": split(), "test": SplitFacts((0,), (0,))}, None),
    ],
)
def test_rules_begin_to_speak_at_their_limit(rule, speaks, silent):
    assert check([BY_ID[rule]], facts(data={"splits": speaks})).findings
    if silent:
        assert not check([BY_ID[rule]], facts(data={"splits": silent})).findings


@pytest.mark.parametrize(
    ("images", "advice"),
    [
        (630, "at most 56, a multiple of 8,"),
        (6300, "at most 576, a multiple of 64,"),
        (70, r"The 8 chips need a multiple of 8\. Use a smaller slice or more images:"),
    ],
)
def test_a_smaller_batch_that_is_advised_can_be_shared(images, advice):
    batch = 640 if images > 640 else 64
    checked = facts(cfg={"trainer__batch_size": batch}, data={"splits": {"train": split(images, 1)}})
    (finding,) = check([BY_ID["batch-share"]], checked).findings
    assert re.search(advice, str(finding))


def test_one_image_without_a_label_and_one_host_short_of_a_step_are_enough():
    assert check([BY_ID["labels"]], facts(data={"labels": "single", "unlabeled": 1})).findings
    uneven = {"train": SplitFacts((63,), (MB,))}
    assert check([BY_ID["steps-per-epoch"]], facts(cfg=fast(), data={"splits": uneven})).findings
