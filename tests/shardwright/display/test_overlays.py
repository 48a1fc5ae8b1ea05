"""Overlays and the picture of a confusion matrix."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from shardwright.display.overlays import confusion_picture, overlay, side_by_side
from shardwright.images.colors import PALETTE

IMAGE = np.random.default_rng(0).integers(0, 256, (9, 14, 3), dtype=np.uint8)


@given(st.integers(0, 2**32 - 1), st.integers(1, 9))
def test_only_masks_are_tinted(seed, classes):
    masks = np.random.default_rng(seed).random((9, 14, classes)) < 0.2
    drawn = overlay(IMAGE, masks)
    np.testing.assert_array_equal(drawn[~masks.any(-1)], IMAGE[~masks.any(-1)])
    top = masks.shape[-1] - 1 - masks[..., ::-1].argmax(-1)
    alone = np.pad(masks[..., 0], 1)
    lonely = masks[..., 0] & ~(alone[2:, 1:-1] | alone[:-2, 1:-1]) & (top == 0)
    assert (drawn[lonely & masks.any(-1)] == PALETTE[0]).all()


def test_the_inside_is_tinted_and_the_edge_is_full():
    mask = np.zeros((9, 14, 1), bool)
    mask[2:7, 3:9] = True
    drawn = overlay(IMAGE, mask)
    assert (drawn[2, 3:9] == PALETTE[0]).all()
    wanted = np.floor(0.55 * IMAGE[4, 5].astype(float) + 0.45 * np.array(PALETTE[0]) + 0.5)
    np.testing.assert_array_equal(drawn[4, 5], wanted)


def test_images_are_joined_horizontally():
    both = side_by_side([IMAGE, 255 - IMAGE])
    assert both.shape == (9, 32, 3)
    np.testing.assert_array_equal(both[:, :14], IMAGE)
    np.testing.assert_array_equal(both[:, 18:], 255 - IMAGE)


def test_a_confusion_matrix_is_darker_where_more_is():
    names = ["cat", "Öre" * 9]
    picture = confusion_picture([[9, 1], [0, 0]], names)
    margin = picture.shape[0] - 2 * 44 - 8
    corners = [[picture[margin + 44 * r + 2, margin + 44 * c + 38].sum() for c in range(2)] for r in range(2)]
    assert corners[0][0] < corners[0][1] < corners[1][0] == corners[1][1] == 765
