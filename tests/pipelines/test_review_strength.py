"""What a review says of its model: how good it is by the annotations, and that a weak one finds little."""

import numpy as np
import pytest

from shardwright.dataset.manifest import MASKS, MULTI, SINGLE
from shardwright.pipelines.reviewing.answers import Annotated, Answer
from shardwright.pipelines.reviewing.strength import Strength
from shardwright.review.mask_doubts import MaskDifference

CLASSES = ("cat", "dog")


def labeled(kind, pairs):
    """The strength by pairs of predicted and annotated classes, in two splits."""
    answers = [Answer(str(k), np.zeros(2), tuple(told), (), 0.0) for k, (told, _) in enumerate(pairs)]
    rows = {str(k): Annotated(("eval", "test")[k % 2], tuple(own), (8, 8), ()) for k, (_, own) in enumerate(pairs)}
    return Strength.of(kind, answers, rows, CLASSES)


def test_a_weak_model_is_named_with_what_an_oracle_would_find():
    found = labeled(SINGLE, [([0], [0])] * 80 + [([0], [1])] * 120)
    assert (found.metric, found.value, found.images, found.splits) == ("accuracy", 0.4, 200, ("eval", "test"))
    words = found.words(151)
    assert words.startswith("Accuracy 0.40 on 200 images of eval, test: a ranking by so weak a model finds little, ")
    assert "45% of the errors in the first tenth, and most of the 151 suspected are its own mistakes" in words
    assert found.to_dict()["weak"] is True


def test_a_good_model_is_named_by_its_figure_alone():
    found = labeled(SINGLE, [([0], [0])] * 90 + [([0], [1])] * 10)
    assert found.words(7) == "Accuracy 0.90 on 100 images of eval, test"
    assert found.to_dict() == {
        "metric": "accuracy",
        "value": 0.9,
        "images": 100,
        "splits": ["eval", "test"],
        "weak": False,
        "findable": 0.9058,
    }


@pytest.mark.parametrize("accuracy", [0.2, 0.4, 0.7, 0.95])
def test_the_share_of_the_oracle_is_that_of_one_that_is_tried(accuracy):
    """A twentieth of 20,000 annotations is wrong; the oracle knows which answers are right, and looks at a tenth."""
    random, images = np.random.default_rng(1), 20_000
    wrong = np.arange(images) < images // 20
    right = random.random(images) < accuracy
    score = np.where(right, np.where(wrong, 2.0, -1.0), random.random(images))
    # Of images that the model is right about, and whose annotation is right, none is looked at before the others.
    score = np.where(right & ~wrong, random.random(images), score)
    first = np.argsort(-score, kind="stable")[: images // 10]
    found = Strength("accuracy", accuracy, images, ("eval",)).findable
    assert wrong[first].sum() / wrong.sum() == pytest.approx(found, abs=0.03)


def test_several_classes_and_masks_have_their_own_figure():
    found = labeled(MULTI, [([0, 1], [0, 1]), ([], []), ([0], [0, 1])])
    assert found.metric == "mean_f1"
    assert found.value == pytest.approx((1 + 2 / 3) / 2)
    assert not found.is_weak
    weak = labeled(MULTI, [([0], [1])] * 3)
    assert weak.words(2).startswith("Mean F1 0.00 on 3 images of eval, test: a ranking by so weak a model finds little")

    def masked(shared):
        differences = (MaskDifference(10, 10, shared, 0, 0, 0.0), MaskDifference(0, 0, 0, 0, 0, 0.0))
        answers = [Answer("a", np.zeros(2), (), (), 0.0, differences=differences)]
        return Strength.of(MASKS, answers, {"a": Annotated("train", (), (8, 8), ())}, CLASSES)

    # The class that is nowhere does not count.
    assert masked(5).words() == "Mean Dice 0.50 on 1 image of train"
    assert "none below 0.37 was seen to find errors" in masked(3).words()
