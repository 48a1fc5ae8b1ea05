"""A blessing is deserved: every condition alone refuses a model, by its answers to single images."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from property_tests import tries

from shardwright.config import EvaluatorConfig
from shardwright.evaluation.metrics import ClassSums, LabelCounts, MaskSums
from shardwright.evaluation.verdict import Answers, Limits, judge

CLASSES = ("ant", "bee", "cat")
DEFAULTS = {name: getattr(EvaluatorConfig(), name) for name in Limits.__dataclass_fields__}


def limits(**changes):
    return Limits(**{**DEFAULTS, **changes})


def labels(pairs, classes=CLASSES):
    """Answers of a classifier: (predicted, true, how many)."""
    rows = [[p, t] for p, t, count in pairs for _ in range(count)]
    return Answers("classification", classes, rows)


def masks(rows, pixels=100):
    """Answers of a segmenter: for each image and class pixels hit, predicted and true."""
    flat = [[*(c[0] for c in image), *(c[1] for c in image), *(c[2] for c in image)] for image in rows]
    return Answers("segmentation", CLASSES[: len(rows[0])], flat, pixels=pixels)


# Key -> a value of it under which it refuses nothing of what the tests below show.
WAIVED = {
    "evaluator.min_images": {"min_images": 1, "min_per_class": 0},
    "evaluator.min_per_class": {"min_per_class": 0},
    "evaluator.allow_missing_classes": {"allow_missing_classes": True},
    "evaluator.beat_trivial": {"beat_trivial": False},
}
GOOD = [(0, 0, 30), (1, 1, 30), (2, 2, 30), (0, 1, 5), (1, 2, 5), (2, 0, 5)]


def test_a_class_that_another_split_lacks_is_not_judged() -> None:
    found = judge(limits(), "test", labels(GOOD), lacking={"train": ["b"], "eval": []})
    assert found.reasons == ("no image of train shows b",)
    assert found.keys == ("evaluator.allow_missing_classes",)
    allowed = judge(limits(allow_missing_classes=True), "test", labels(GOOD), lacking={"train": ["b"]})
    assert allowed.reasons == ()
    assert allowed.notes == ("not judged on b in train, which has no image of them",)


def test_a_good_model_on_enough_images_has_nothing_against_it():
    found = judge(limits(), "test", labels(GOOD))
    assert (found.reasons, found.keys, found.notes, found.change) == ((), (), (), None)
    assert found.interval.low < 90 / 105 < found.interval.high


@pytest.mark.parametrize(
    ("answers", "changes", "reason", "key"),
    [
        (labels([(0, 0, 1), (1, 1, 1)], CLASSES[:2]), {}, "test has 2 images, fewer than evaluator.min_images 50",
         "evaluator.min_images"),
        (labels([(0, 0, 30), (1, 1, 30), (0, 1, 10), (1, 0, 10)], CLASSES[:2]), {"min_images": 81},
         "test has 80 images, fewer than evaluator.min_images 81", "evaluator.min_images"),
        (labels([(0, 0, 17), (1, 1, 17), (0, 1, 8), (1, 0, 8)], CLASSES[:2]), {},
         "50 images of test say too little: accuracy is 0.6800, and with 95 % confidence 0.5419 to 0.7924, which is "
         "wider than ±0.1; about 79 images would be enough", "evaluator.min_images"),
        (labels([(0, 0, 60), (1, 1, 60)]), {}, "no image of test shows cat", "evaluator.allow_missing_classes"),
        (labels([(0, 0, 60), (1, 1, 60), (2, 2, 4)]), {},
         "fewer images of test than evaluator.min_per_class 5 show cat (4)", "evaluator.min_per_class"),
        (labels([(0, 0, 900), (0, 1, 50), (0, 2, 50)]), {},
         "f1/bee 0.0000 is not above 0.0952, that of a model that answers so to every image", "evaluator.beat_trivial"),
        # It hits one of fifty bees: better than never, worse than always.
        (labels([(0, 0, 900), (0, 1, 49), (1, 1, 1), (2, 2, 50)]), {}, "f1/bee 0.0392 is not above 0.0952",
         "evaluator.beat_trivial"),
        (masks([[(0, 0, 50), (50, 50, 50)]] * 60), {}, "dice/ant 0.0000 is not above 0.6667, that of a",
         "evaluator.beat_trivial"),
        (masks([[(50, 100, 50), (50, 50, 50)]] * 60), {}, "dice/ant 0.6667 is not above 0.6667",
         "evaluator.beat_trivial"),
    ],
)  # fmt: skip
def test_every_condition_alone_refuses(answers, changes, reason, key):
    found = judge(limits(**changes), "test", answers)
    assert any(reason in one for one in found.reasons), found.reasons
    assert key in found.keys
    assert judge(limits(**{**changes, **WAIVED[key]}), "test", answers).keys == ()


def test_the_split_that_the_model_learned_from_blesses_nothing():
    found = judge(limits(), "train", labels(GOOD))
    assert found.keys == ("evaluator.split",)


def test_allowed_missing_classes_are_named_all_the_same():
    found = judge(limits(allow_missing_classes=True), "test", labels([(0, 0, 60), (1, 1, 60)]))
    assert found.reasons == ()
    assert found.notes == ("not judged on cat, of which test has no image",)


def test_a_class_that_covers_everything_can_be_judged():
    assert judge(limits(), "test", masks([[(100, 100, 100), (9, 10, 10)]] * 60)).reasons == ()


def test_figures_that_any_constant_answer_reaches_say_nothing():
    found = judge(limits(), "test", masks([[(100, 100, 100)]] * 60))
    assert found.reasons == ("the figures say nothing: a model that marks every pixel is always right",)
    assert found.keys == ("evaluator.beat_trivial",)


@pytest.mark.parametrize(("classes", "least"), [(2, 0.75), (5, 0.6), (10, 0.55), (1000, 0.5005)])
def test_the_least_accuracy_follows_from_the_number_of_classes(classes, least):
    assert limits().least("accuracy", classes) == least
    assert limits(min_accuracy=0.3).least("accuracy", classes) == 0.3


def flipped(right, wrong_only_before, wrong_only_after, both_wrong=0):
    """Two classifiers on the same images: those that both get right, and those that one of them gets wrong."""
    counts = (right, wrong_only_before, wrong_only_after, both_wrong)
    truth = [i % 2 for i in range(sum(counts))]
    kinds = list(itertools.chain.from_iterable(itertools.repeat(k, n) for k, n in enumerate(counts)))
    after = [[t if k in (0, 1) else 1 - t, t] for k, t in zip(kinds, truth, strict=True)]
    before = [[t if k in (0, 2) else 1 - t, t] for k, t in zip(kinds, truth, strict=True)]
    return [Answers("classification", CLASSES[:2], rows) for rows in (after, before)]


@pytest.mark.parametrize(
    ("counts", "least", "says"),
    [
        ((150, 30, 10), 0.0, None),
        ((150, 12, 10), 0.0, "may be by chance"),
        ((150, 10, 30), 0.0, "is not above min_improvement +0.0000"),
        ((150, 10, 10), 0.0, "a change of +0.0000"),
        # It may be worse by so much, or by anything.
        ((150, 10, 10), -0.1, None),
        ((150, 10, 30), -0.05, "min_improvement -0.0500"),
        ((150, 0, 90), -1.0, None),
        ((150, 30, 10), 0.1, "may be by chance (min_improvement +0.1000)"),
        # Each of five images moved the same way: no spread, and still by chance in one of 16 cases.
        ((0, 5, 0), 0.0, "the two differ on 5 images only"),
    ],
)
def test_a_model_must_beat_the_last_one_by_more_than_chance(counts, least, says):
    after, before = flipped(*counts)
    found = judge(limits(min_improvement=least, min_images=1, min_per_class=0), "test", after, before)
    reasons = [reason for reason in found.reasons if "last blessed model" in reason]
    assert bool(reasons) == bool(says)
    assert not says or says in reasons[0]


def test_the_interval_of_a_change_is_that_of_the_paired_t_test():
    after, before = flipped(100, 20, 10, 5)
    moved, _ = after.change_from(before)
    differences = np.array([1.0] * 20 + [-1.0] * 10 + [0.0] * 105)
    error = differences.std(ddof=1) / np.sqrt(135)
    # The 97.5 % quantile of Student's t with 134 degrees of freedom.
    assert moved.value == pytest.approx(differences.mean())
    assert (moved.high - moved.low) / 2 == pytest.approx(1.97783 * error, rel=1e-5)


counts = st.lists(st.lists(st.integers(0, 50), min_size=9, max_size=9), min_size=2, max_size=12)


@tries(60)
@given(counts, st.randoms())
def test_figures_are_those_of_the_metrics_and_the_order_of_images_does_not_matter(rows, random):
    # No more can be hit than is predicted or true.
    rows = [[min(r[i], r[3 + i], r[6 + i]) for i in range(3)] + r[3:] for r in rows]
    answers = Answers("segmentation", CLASSES, rows, pixels=100)
    parts = np.array(rows, np.float64).reshape(-1, 3, 3).transpose(1, 0, 2)
    report = MaskSums.of_images(*parts).report(CLASSES)
    value, without = answers.without_each()
    assert value == pytest.approx(report["mean_dice"])
    for place in range(len(rows)):
        rest = np.delete(parts, place, axis=1)
        assert without[place] == pytest.approx(MaskSums.of_images(*rest).report(CLASSES)["mean_dice"])
    for index, name in enumerate(CLASSES):
        assert answers.against_trivial(index)[0] == pytest.approx(report.get(f"dice/{name}", 0))
    random.shuffle(rows)
    again = judge(limits(), "test", Answers("segmentation", CLASSES, rows, pixels=100))
    assert again.interval.low == pytest.approx(answers.interval().low)


@tries(60)
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=2, max_size=40))
def test_labels_are_counted_as_the_metrics_count_them(pairs):
    predicted, true = zip(*pairs, strict=True)
    report = LabelCounts.of_labels(predicted, true, 3).report(CLASSES)
    answers = Answers("classification", CLASSES, pairs)
    assert answers.interval().value == pytest.approx(report["accuracy"])
    several = np.eye(3)[list(predicted)], np.eye(3)[list(true)]
    rows = np.concatenate([several[0] * several[1], *several], axis=1)
    multi = Answers("classification", CLASSES, rows, multi=True)
    assert multi.interval().value == pytest.approx(ClassSums.of_labels(*several).report(CLASSES)["mean_f1"])
    for index, name in enumerate(CLASSES):
        for one in (answers, multi):
            assert one.against_trivial(index)[0] == pytest.approx(report.get(f"f1/{name}", 0))
