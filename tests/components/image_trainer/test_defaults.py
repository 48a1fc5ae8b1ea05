"""What the data decides where a recipe leaves it open, and what is said about it."""

import pytest
from recipes import changed

from shardwright.components.image_trainer.defaults import with_defaults
from shardwright.components.image_trainer.spec import TrainRecipe
from shardwright.config import EvaluatorConfig, LoaderConfig, TrainerConfig

OPEN = TrainRecipe(TrainerConfig(model="cnn"), LoaderConfig(), EvaluatorConfig())


def chosen(recipe=OPEN, *, task="classification", classes=("cat", "dog"), images=1600, shares=(0.5, 0.5)):
    statistics = {"class_frequency": dict(zip(classes, shares, strict=False))}
    statistics["pixel_frequency"] = statistics["class_frequency"]
    return with_defaults(recipe, task=task, classes=classes, images=images, statistics=statistics)


@pytest.mark.parametrize(
    ("images", "options", "epochs", "updates"),
    [
        (16 * 150, {}, 10, "1,500"), (16 * 75, {}, 20, "1,500"), (208, {}, 100, "1,300"), (3, {}, 100, "100"),
        (10**6, {}, 10, "625,000"), (16 * 150, {"accumulate": 2}, 20, "1,500"),
    ],
)  # fmt: skip
def test_few_images_are_read_more_often(images, options, epochs, updates):
    recipe, notes = chosen(changed(OPEN, **options), images=images)
    assert recipe.trainer.epochs == epochs
    assert notes[0] == f"{epochs} epochs of {images:,} images, {updates} updates (trainer.epochs)"


def test_epochs_of_so_many_steps_have_as_many_updates():
    recipe, notes = chosen(changed(OPEN, steps_per_epoch=100), images=10**6)
    assert recipe.trainer.epochs == 15
    assert notes[0] == "15 epochs of 100 steps, 1,500 updates (trainer.epochs)"


@pytest.mark.parametrize(
    ("classes", "flips", "why"),
    [
        (("cat", "dog"), True, ""),
        (tuple("0123456789"), False, "characters"),
        (("left_lung", "right_lung"), False, "left_lung has a side"),
        (("Nodule L", "none"), False, "Nodule L has a side"),
        # Words that contain such letters.
        (("bright", "cleft"), True, ""),
    ],
)
def test_images_are_mirrored_unless_their_classes_would_change(classes, flips, why):
    recipe, notes = chosen(classes=classes)
    assert ("flip_left_right" in recipe.loader.augment) == flips
    assert why in notes[1]
    assert "brightness=0.1" in recipe.loader.augment


def test_masks_of_numbered_classes_are_mirrored():
    recipe, _ = chosen(classes=tuple("1234"), task="segmentation")
    assert "flip_left_right" in recipe.loader.augment


def test_what_is_written_stays():
    given = changed(OPEN, epochs=3, augment=(), class_weights="none", learning_rate=0.5)
    recipe, notes = chosen(given, shares=(0.9, 0.01))
    assert (recipe, notes) == (given, ())


def test_rare_classes_weigh_more_and_others_do_not():
    for task, shares, weights in (
        ("classification", (0.6, 0.4), "none"), ("classification", (0.9, 0.1), "balanced"),
        ("segmentation", (0.3, 0.03), "none"), ("segmentation", (0.3, 0.003), "balanced"),
        # A class without any example has none to be weighed.
        ("classification", (0.9, 0.0), "none"),
    ):  # fmt: skip
        recipe, notes = chosen(task=task, shares=shares)
        assert recipe.trainer.class_weights == weights
        assert (notes[-1].startswith("weights the classes, since cat is ")) == (weights == "balanced")


def test_weights_that_are_not_random_get_a_lower_rate():
    assert chosen()[0].trainer.learning_rate == 3e-3
    assert chosen(changed(OPEN, encoder="efficientnetv2-b0"))[0].trainer.learning_rate == 1e-3
    assert chosen(changed(OPEN, model="mine:build"))[0].trainer.learning_rate == 1e-3
