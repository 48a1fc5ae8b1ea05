"""Sums of an evaluation: counted within a step as NumPy counts them, and over several hosts as on one."""

import keras
import numpy as np
import pytest
from recipes import train_recipe

from shardwright.components.image_trainer.spec import TrainSpec
from shardwright.components.image_trainer.training.evaluate_split import Counting, _over_hosts, evaluate
from shardwright.evaluation.metrics import ClassSums, LabelCounts, MaskSums, better
from shardwright.evaluation.thresholds import LEVELS

CLASSES = ("a", "b")


def masks(seed):
    drawn = np.random.default_rng(seed).integers(0, 2, (2, 3, 4, 5, 2))
    return MaskSums.of_masks(drawn[0], drawn[1])


def test_one_host_has_its_own_sums():
    own = masks(0)
    sums, others = _over_hosts(own, (1.5, 3.0), lambda values: values)
    assert sums.report(CLASSES) == own.report(CLASSES)
    assert others == [1.5, 3.0]


def test_two_hosts_have_the_sums_of_both():
    ones = masks(1), masks(2)
    seen = []
    _over_hosts(ones[1], (2.0,), lambda values: (seen.append(values), values)[1])
    sums, others = _over_hosts(ones[0], (1.0,), lambda values: values + seen[0])
    expected = (ones[0] + ones[1]).report(CLASSES)
    assert sums.images == 6
    assert others == [3.0]
    np.testing.assert_allclose([sums.report(CLASSES)[name] for name in expected], list(expected.values()), rtol=1e-12)


def test_labels_are_whole_numbers():
    own = LabelCounts.of_labels(np.array([0, 1, 1]), np.array([0, 1, 0]), 2)
    sums, _ = _over_hosts(own, (), lambda values: values)
    assert sums.report(CLASSES) == own.report(CLASSES)


def spec_of(task, *, multi=False, ignore=False, threshold="tuned"):
    recipe = train_recipe("unet", 4, 2, 4, 1e-2, 3, "eval", threshold=threshold)
    return TrainSpec(
        recipe, "", "d", task, CLASSES, 6, 5, "stretch", None, None, "", "", ignore=ignore, multi=multi
    )  # fmt: skip


def drawn(spec, images=7):
    """Probabilities, some of which are a level exactly or just below it, targets, and which images count."""
    random = np.random.default_rng(5)
    shape = (images, 6, 5, 2) if spec.task == "segmentation" else (images, 2)
    probabilities = random.choice(np.concatenate([LEVELS, np.nextafter(LEVELS, np.float32(0))]), shape)
    targets = (random.random(shape) < 0.5).astype(np.uint8)
    if spec.ignore:
        targets[random.random(shape[:-1]) < 0.2] = 255
    if spec.task == "classification" and not spec.multi:
        targets = targets[:, 0]
    return probabilities.astype(np.float32), targets, np.arange(images) % 3 > 0


def evaluated(spec, probabilities, targets, counted):
    counting = Counting.of(spec)

    def launch(images, true, kept):
        return lambda: (np.asarray(counting(keras.ops.convert_to_tensor(images), true)), float(kept.sum()))

    batches = [(probabilities[at : at + 3], targets[at : at + 3], counted[at : at + 3] * 1.0) for at in (0, 3, 6)]
    return evaluate(launch, batches, spec)


@pytest.mark.parametrize(
    "spec",
    [
        spec_of("segmentation"), spec_of("segmentation", ignore=True), spec_of("segmentation", threshold=0.4),
        spec_of("classification"), spec_of("classification", multi=True),
    ],
)  # fmt: skip
def test_a_step_counts_as_numpy_does(spec):
    probabilities, targets, counted = drawn(spec)
    found = evaluated(spec, probabilities, targets, counted)
    p, t, threshold = probabilities[counted], targets[counted], np.float32(spec.recipe.threshold)
    if spec.task == "segmentation":
        wanted = MaskSums.of_masks(p >= threshold, t, ignore=spec.ignore)
    elif spec.multi:
        wanted = ClassSums.of_labels(p >= threshold, t)
    else:
        wanted = LabelCounts.of_labels(p.argmax(-1), t, 2)
    report = wanted.report(CLASSES)
    # The hosts exchange float64, in which Kaggle's sum of fractions is not exact.
    assert found.pop("kaggle_dice", 0) == pytest.approx(report.pop("kaggle_dice", 0), rel=1e-12)
    assert {name: found[name] for name in report} == report
    # Of the losses 2, 2 and 0 of three batches with so many images that count.
    assert found["loss"] == 2.0


@pytest.mark.parametrize(("task", "multi", "name"), [("segmentation", False, "dice"), ("classification", True, "f1")])
def test_the_tuned_metric_has_the_best_of_five_thresholds_for_each_class(task, multi, name):
    spec = spec_of(task, multi=multi)
    probabilities, targets, counted = drawn(spec)
    found = evaluated(spec, probabilities, targets, counted)
    best = [
        max(
            MaskSums.of_masks(*(a[counted][..., c].reshape(1, -1, 1, 1) for a in (probabilities >= level, targets)))
            .dice()[0]
            for level in LEVELS[9::20]
        )
        for c in range(2)
    ]  # fmt: skip
    assert found[f"tuned_mean_{name}"] == pytest.approx(np.mean(best))
    assert found[f"tuned_mean_{name}"] > found[f"mean_{name}"]
    assert not any("tuned" in key for key in evaluated(spec_of("classification"), *drawn(spec_of("classification"))))
    assert f"tuned_mean_{name}" not in evaluated(spec_of(task, multi=multi, threshold=0.5), *drawn(spec))


def test_the_best_epoch_is_the_best_at_the_thresholds_of_the_export():
    before = {"mean_dice": 0.6, "tuned_mean_dice": 0.61, "loss": 1.0}
    after = {"mean_dice": 0.4, "tuned_mean_dice": 0.7, "loss": 1.0}
    assert better("segmentation", after, before)
    assert not better("segmentation", before, after)
