"""Augmentation: masks follow, each change is its own, and the same seed and place give the same one."""

import numpy as np
import pytest
import tensorflow as tf

from shardwright.config.loader import AUGMENTATIONS, MIXING, read_augmentations
from shardwright.loader.augment import apply_augmentations, cutmix, mixup
from shardwright.masks.regions import IGNORE_VALUE

SIDE = 32
MOVING = ("flip_left_right", "flip_up_down", "rotate90", "crop=0.3")
COLORS = ("brightness", "contrast", "saturation", "hue")


def places():
    """An image whose red is the column and whose green the row, and the same two numbers as eight masks each."""
    rows, columns = np.mgrid[:SIDE, :SIDE].astype(np.uint8)
    image = np.stack([columns, rows, np.full_like(rows, 200)], axis=-1)
    return {"image": tf.constant(image), "bits": tf.constant(image[..., :2])}


def many(example, names, count, seed=5):
    """The example, changed for each of so many places in a stream."""
    changes = read_augmentations(names)

    @tf.function(autograph=False)
    def one(place):
        found = apply_augmentations(example, changes, seed, place)
        return found["image"], found["bits"]

    return [tuple(part.numpy() for part in one(tf.constant(place, tf.int64))) for place in range(count)]


@pytest.mark.parametrize("names", [*([name] for name in MOVING), list(MOVING)])
def test_masks_go_where_the_image_goes(names):
    found = many(places(), names, 24)
    assert len({bits.tobytes() for _, bits in found}) > 1
    for image, bits in found:
        # A mask is taken from the pixel under the center, an image between two of them.
        assert np.abs(image[..., :2].astype(int) - bits).max() <= 1
        if "crop=0.3" not in names:
            np.testing.assert_array_equal(image[..., :2], bits)


def test_a_crop_is_at_least_so_large_and_reaches_every_corner():
    seen = [bits for _, bits in many(places(), ["crop=0.5"], 60)]
    sides = [int(bits[-1, -1, 0]) - int(bits[0, 0, 0]) for bits in seen]
    assert min(sides) >= SIDE // 2 - 2
    assert max(sides) > SIDE * 3 // 4
    assert min(int(bits[0, 0, 1]) for bits in seen) == 0
    assert max(int(bits[-1, -1, 1]) for bits in seen) == SIDE - 1


@pytest.mark.parametrize("name", COLORS)
def test_colors_leave_masks_alone(name):
    random = np.random.default_rng(1)
    plain = places() | {"image": tf.constant(random.integers(40, 200, (SIDE, SIDE, 3)), tf.uint8)}
    found = many(plain, [name], 8)
    assert len({image.tobytes() for image, _ in found}) == 8
    for image, bits in found:
        np.testing.assert_array_equal(bits, plain["bits"])
        gray, before = image.mean(-1), plain["image"].numpy().mean(-1)
        assert np.corrcoef(gray.ravel(), before.ravel())[0, 1] > 0.9


def test_what_is_cut_out_is_of_no_class():
    plain = places()
    mean = np.floor(plain["image"].numpy().mean(axis=(0, 1)) + 0.5)
    areas = set()
    for image, bits in many(plain, ["cutout=0.5"], 20):
        changed = (image != plain["image"].numpy()).any(-1)
        rows, columns = (np.flatnonzero(changed.any(axis)) for axis in (1, 0))
        box = np.s_[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
        assert max(len(rows), len(columns)) <= SIDE // 2
        assert (image[box] == mean).all()
        assert not bits[box].any()
        outside = np.ones((SIDE, SIDE), bool)
        outside[box] = False
        np.testing.assert_array_equal(bits[outside], plain["bits"].numpy()[outside])
        areas.add(changed.sum())
    assert len(areas) > 5


def test_a_change_does_not_depend_on_the_others():
    flips = [bits.tobytes() for _, bits in many(places(), ["flip_left_right"], 16)]
    assert flips == [bits.tobytes() for _, bits in many(places(), ["flip_left_right", "brightness", "hue"], 16)]


def test_seed_and_place_fix_a_change():
    names = [name for name in AUGMENTATIONS if name not in (*MIXING, "randaugment")]
    first, again, other = (many(places(), names, 6, seed) for seed in (5, 5, 6))
    assert [image.tobytes() for image, _ in first] == [image.tobytes() for image, _ in again]
    assert [image.tobytes() for image, _ in first] != [image.tobytes() for image, _ in other]
    assert len({image.tobytes() for image, _ in first}) == 6


def test_mixed_images_have_mixed_targets():
    numbers = np.arange(1, 9, dtype=np.float32)
    images = numbers[:, None, None, None] * np.ones((8, 2, 3, 3), np.float32)
    labels = np.eye(8, dtype=np.float32)
    masks = np.zeros((8, 2, 3, 1), np.float32)
    masks[::2] = 1
    masks[3, 0, 0] = IGNORE_VALUE
    count = tf.constant(40, tf.int64)
    mixed, target = mixup(images, {"labels": labels, "masks": masks}, 0.4, 7, count)
    before = np.roll(numbers, 1)
    share = (mixed.numpy()[:, 0, 0, 0] - before) / (numbers - before)
    assert ((share >= 0.5 - 1e-5) & (share <= 1 + 1e-5)).all()
    assert len(set(share.round(4))) > 4
    soft = share[:, None] * labels + (1 - share[:, None]) * np.roll(labels, 1, 0)
    np.testing.assert_allclose(target["labels"], soft, atol=1e-5)
    # The fourth image has a pixel that is not counted; it is mixed into the fifth.
    left_out = target["masks"].numpy()[:, 0, 0, 0] == IGNORE_VALUE
    assert left_out.tolist() == [False, False, False, True, True, False, False, False]
    rest = target["masks"].numpy()[:, 1, 1, 0]
    np.testing.assert_allclose(rest, np.where(np.arange(8) % 2 == 0, share, 1 - share), atol=1e-5)
    again = mixup(images, {"labels": labels, "masks": masks}, 0.4, 7, count)[0]
    np.testing.assert_array_equal(mixed, again)


AFFINE = ("rotate=40", "scale=0.5", "shift=0.3")


@pytest.mark.parametrize("names", [*([name] for name in AFFINE), list(AFFINE)], ids=str)
def test_masks_follow_a_warp(names):
    found = many(places(), names, 24)
    assert len({bits.tobytes() for _, bits in found}) > 6
    mean = np.floor(places()["image"].numpy().mean(axis=(0, 1)) + 0.5)
    compared = 0
    for image, bits in found:
        # Outside, masks are 0 and the image has its mean color; at the border, it is mixed with that.
        inside = (bits > 1).all(-1) & (bits < SIDE - 2).all(-1)
        compared += inside.sum()
        assert np.abs(image[..., :2].astype(int) - bits)[inside].max(initial=0) <= 1
        outside = ~bits.any(-1)
        assert (np.abs(image - mean)[outside].max(-1, initial=0) > 1).sum() <= 6 * SIDE
    assert compared > 1000


def test_rand_augment_draws_changes_of_color_and_place():
    found = many(places(), ["randaugment=1"], 24)
    assert [image.tobytes() for image, _ in found[:4]] == [
        image.tobytes() for image, _ in many(places(), ["randaugment=1"], 4)
    ]
    moved = [not np.array_equal(bits, places()["bits"]) for _, bits in found]
    colored = [abs(float(np.median(image[..., 2])) - 200) > 1 for image, _ in found]
    assert 4 < sum(moved) < 24
    assert 2 < sum(colored) < 24


def test_a_rotation_turns_by_so_many_degrees():
    """Two pixels of the source, found again by their masks, are at an angle of at most the strength."""
    angles = []
    for _, bits in many(places(), ["rotate=30"], 40):
        points = [np.argwhere((bits == [16, row]).all(-1)) for row in (8, 24)]
        if all(len(found) for found in points):
            down, across = points[1][0] - points[0][0]
            angles.append(np.degrees(np.arctan2(across, down)))
    assert len(angles) > 10
    assert max(map(abs, angles)) <= 30 + 5
    assert min(angles) < -8 < 8 < max(angles)


def test_a_shift_goes_so_far_and_keeps_pixels():
    shifts = set()
    for image, bits in many(places(), ["shift=0.25"], 30):
        row, column = np.argwhere(bits.any(-1))[len(np.argwhere(bits.any(-1))) // 2]
        shifts.add((int(bits[row, column, 0]) - column, int(bits[row, column, 1]) - row))
        assert image.shape == (SIDE, SIDE, 3)
    assert max(max(map(abs, shift)) for shift in shifts) in range(5, 10)
    assert len(shifts) > 15


@pytest.mark.parametrize("name", ["blur=3", "jpeg=0.9"])
def test_details_are_lost_and_masks_stay(name):
    random = np.random.default_rng(1)
    plain = places() | {"image": tf.constant(random.integers(0, 256, (SIDE, SIDE, 3)), tf.uint8)}
    before = plain["image"].numpy().astype(float)
    found = many(plain, [name], 8)
    assert len({image.tobytes() for image, _ in found}) > 5
    for image, bits in found:
        np.testing.assert_array_equal(bits, plain["bits"])
        assert abs(image.mean() - before.mean()) < 4
    details = [np.abs(np.diff(image.astype(float), axis=1)).mean() for image, _ in found]
    assert min(details) < 0.8 * np.abs(np.diff(before, axis=1)).mean()


def test_the_first_augmentations_keep_their_random_numbers():
    """A change of the list must not change the images of earlier runs."""
    for names in (["crop=0.5"], ["crop=0.5", "jpeg", "blur"]):
        sides = [int(bits[-1, -1, 0]) - int(bits[0, 0, 0]) for _, bits in many(places(), names, 6)]
        assert sides == [27, 15, 24, 31, 26, 29]


def test_pasted_images_have_pasted_masks_and_labels_by_area():
    numbers = np.arange(1, 9, dtype=np.float32)
    images = numbers[:, None, None, None] * np.ones((8, 12, 10, 3), np.float32)
    labels, masks = np.eye(8, dtype=np.float32), images[..., :1].copy()
    masks[3] = IGNORE_VALUE
    count = tf.constant(40, tf.int64)
    pasted, target = cutmix(images, {"labels": labels, "masks": masks}, 1.0, 7, count)
    foreign = pasted.numpy()[..., 0] != images[..., 0]
    assert (pasted.numpy()[foreign][:, 0] == np.roll(images, 1, 0)[foreign][:, 0]).all()
    for number, inside in enumerate(foreign):
        rows, columns = inside.any(1), inside.any(0)
        assert inside.sum() == rows.sum() * columns.sum(), "not a rectangle"
        own = labels[number] * (1 - inside.mean()) + np.roll(labels, 1, 0)[number] * inside.mean()
        np.testing.assert_allclose(target["labels"][number], own, atol=1e-6)
    expected = np.where(foreign[..., None], np.roll(masks, 1, 0), masks)
    np.testing.assert_array_equal(target["masks"], expected)
    assert len({round(float(inside.mean()), 2) for inside in foreign}) > 4
    np.testing.assert_array_equal(pasted, cutmix(images, labels, 1.0, 7, count)[0])
    assert not np.array_equal(pasted, cutmix(images, labels, 1.0, 8, count)[0])
