import csv

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from property_tests import tries

from shardwright.images.geometry import POLICIES, plan_geometry, source_columns, source_rows
from shardwright.masks import rle

shapes = st.tuples(st.integers(1, 24), st.integers(1, 24))
# Random bits alone give runs of one or two pixels; rows that repeat give long ones and whole columns.
repeated_rows = shapes.flatmap(
    lambda shape: hnp.arrays(bool, (1, shape[1])).map(lambda row: np.repeat(row, shape[0], axis=0))
)
masks = hnp.arrays(bool, shapes) | repeated_rows


def drawn_slowly(pairs, height, width):
    """The truth: pixel by pixel, as the sets' own authors describe the code."""
    mask = np.zeros((height, width), np.uint8)
    for start, length in pairs:
        for position in range(start - 1, start - 1 + length):
            mask[position % height, position // height] = 1
    return mask


def resampled_slowly(mask, plan):
    """The truth: the drawn mask, sampled with numpy, with nothing in the border."""
    rows, columns = source_rows(plan), source_columns(plan)
    inside = (rows >= 0)[:, None] & (columns >= 0)[None, :]
    return np.where(inside, mask[np.maximum(rows, 0)][:, np.maximum(columns, 0)], 0)


@st.composite
def codes(draw):
    height, width = draw(shapes)
    size = height * width
    starts = draw(st.lists(st.integers(1, size), max_size=12))
    return height, width, [(start, draw(st.integers(1, size - start + 1))) for start in starts]


def check_invariants(runs, size):
    assert runs.dtype == np.int64
    assert runs.ndim == 2
    assert runs.shape[1] == 2
    assert (runs[:, 1] > 0).all()
    ends = runs[:, 0] + runs[:, 1]
    assert (runs[1:, 0] > ends[:-1]).all()
    assert not len(runs) or (runs[0, 0] >= 0 and ends[-1] <= size)


@given(codes(), st.sampled_from([" ", "  ", "\t", "\r\n"]))
def test_parsing_means_the_union_of_the_pixels(code, space):
    height, width, pairs = code
    text = space.join(str(number) for pair in pairs for number in pair)
    runs = rle.parse_pairs(text, height=height, width=width)
    check_invariants(runs, height * width)
    truth = drawn_slowly(pairs, height, width)
    assert np.array_equal(rle.draw(runs, height, width), truth)
    assert np.array_equal(rle.encode(truth), runs)
    assert rle.area(runs) == truth.sum()
    assert np.array_equal(rle.parse_pairs(rle.to_pairs(runs), height=height, width=width), runs)
    assert np.array_equal(rle.from_flat(runs.reshape(-1)), runs)
    assert np.array_equal(rle.from_flat(runs.reshape(-1).tolist()), runs)


@given(masks)
def test_a_drawn_mask_comes_back(mask):
    runs = rle.encode(mask)
    check_invariants(runs, mask.size)
    again = rle.draw(runs, *mask.shape)
    assert again.dtype == np.uint8
    assert np.array_equal(again, mask)


@given(st.lists(hnp.arrays(bool, (7, 9)), min_size=1, max_size=3))
def test_subtract_is_and_not(masks_of_one_frame):
    first, *others = masks_of_one_frame
    cut = rle.union([rle.encode(mask) for mask in others])
    runs = rle.subtract(rle.encode(first), cut)
    wanted = first.astype(bool) & ~rle.draw(cut, *first.shape).astype(bool)
    np.testing.assert_array_equal(rle.draw(runs, *first.shape), wanted)
    np.testing.assert_array_equal(runs, rle.normalize(runs))


@given(st.lists(hnp.arrays(bool, (7, 9)), max_size=4))
def test_union_is_or(masks_of_one_frame):
    runs = rle.union([rle.encode(mask) for mask in masks_of_one_frame])
    assert np.array_equal(rle.draw(runs, 7, 9), np.any([np.zeros((7, 9), bool), *masks_of_one_frame], axis=0))


@given(codes())
def test_normalize_sorts_and_merges(code):
    height, width, pairs = code
    loose = np.array([(start - 1, length) for start, length in pairs], np.int64).reshape(-1, 2)
    with_empty = np.concatenate([loose, loose * [1, 0]])
    assert np.array_equal(rle.normalize(with_empty), rle.encode(drawn_slowly(pairs, height, width)))


def test_normalize_refuses_what_is_no_run():
    with pytest.raises(rle.RleError, match="negative"):
        rle.normalize(np.array([[3, -1]]))


@given(masks, st.sampled_from(POLICIES), st.integers(1, 40), st.integers(1, 40))
def test_resampling_in_run_space_is_drawing_sampling_and_encoding(mask, policy, height, width):
    plan = plan_geometry(policy, *mask.shape, height, width)
    runs = rle.resample(rle.encode(mask), plan)
    check_invariants(runs, height * width)
    assert np.array_equal(runs, rle.encode(resampled_slowly(mask, plan)))


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("size", [(350, 525), (352, 544), (512, 512), (1400, 2100), (1500, 2000)])
def test_resampling_at_the_size_of_the_real_sets(policy, size):
    rng = np.random.default_rng(7)
    mask = np.zeros((1400, 2100), bool)
    for _ in range(6):
        top, left = rng.integers(0, 1000), rng.integers(0, 1700)
        for column in range(left, left + 300):
            mask[top + rng.integers(0, 30) : top + rng.integers(100, 400), column] = True
    plan = plan_geometry(policy, 1400, 2100, *size)
    assert np.array_equal(rle.resample(rle.encode(mask), plan), rle.encode(resampled_slowly(mask, plan)))


def test_resampling_a_mask_of_another_frame_is_refused():
    with pytest.raises(rle.RleError, match="ends at 12, past the 10 pixels of the source, 2x5"):
        rle.resample(np.array([[8, 4]]), plan_geometry("stretch", 2, 5, 4, 4))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("7", "an odd count of 1 numbers: the last start, 7, has no length"),
        ("1 2 3", "an odd count of 3 numbers: the last start, 3, has no length"),
        ("0 1", r"number 1 of 2 \(a start\) is 0; starts and lengths count from 1"),
        ("1 0", r"number 2 of 2 \(a length\) is 0; starts"),
        ("-4 1", r"number 1 of 2 \(a start\) is -4; starts"),
        ("1 2 3 -1", r"number 4 of 4 \(a length\) is -1; starts"),
        ("21 1", r"number 1 of 2 \(a start\) is 21, past the 20 pixels of 5x4"),
        ("1 1 18 4", r"number 4 of 4 \(a length\) is 4: the run from 18 ends at 21, past the 20 pixels of 5x4"),
        ("1.5 2", "number 1 of 2 .* is not a whole number: '1.5'"),
        ("1 2e0", "number 2 of 2 .* is not a whole number: '2e0'"),
        ("+1 2", "is not a whole number: '\\+1'"),
        ("Fish 2", "number 1 of 2 .* is not a number: 'Fish'"),
        ("1_0 2", "is not a number: '1_0'"),
        ("1,2", "number 1 of 1 .* is not a number: '1,2'"),
        ("-1", "number 1 of 1 .* is -1"),
        ("nan nan", "is not a number: 'nan'"),
        ("١ 1", "is not a number: '١'"),
        ("99999999999999999999 1", "number 1 of 2 .* is beyond 64 bits: '99999999999999999999'"),
        ("9223372036854775808 1", "is beyond 64 bits"),
        ("9223372036854775807 9223372036854775807", "is 9223372036854775807, past the 20 pixels"),
        ("1 9223372036854775807", "the run from 1 ends at 9223372036854775807, past"),
        ("-99999999999999999999 1", "is beyond 64 bits"),
        ("x" * 5000 + " 1", r"is not a number: 'x{40}\.\.\.'"),
    ],
)
def test_what_is_no_code_is_refused_by_name(text, message):
    with pytest.raises(rle.RleError, match=message):
        rle.parse_pairs(text, height=5, width=4)


@given(st.text(alphabet="0123456789 -+.eE_,x\t\n", max_size=30) | st.text(max_size=30))
def test_any_text_gives_runs_or_an_rle_error(text):
    try:
        runs = rle.parse_pairs(text, height=6, width=5)
    except rle.RleError:
        return
    numbers = [int(token) for token in text.split()]
    pairs = list(zip(numbers[::2], numbers[1::2], strict=True))
    assert np.array_equal(rle.draw(runs, 6, 5), drawn_slowly(pairs, 6, 5))


def test_nothing_is_an_empty_mask():
    for text in ("", " ", "\r\n"):
        assert rle.parse_pairs(text, height=3, width=3).shape == (0, 2)
    assert rle.to_pairs(rle.encode(np.zeros((3, 3)))) == ""
    assert rle.union([]).shape == (0, 2)
    assert rle.from_flat([]).shape == (0, 2)
    assert not rle.draw(rle.from_flat([]), 3, 2).any()


@pytest.mark.parametrize("size", [(0, 5), (5, 0), (-1, -1)])
def test_a_frame_without_pixels_is_refused(size):
    with pytest.raises(rle.RleError, match="both sides must be at least 1"):
        rle.parse_pairs("1 1", height=size[0], width=size[1])


def test_drawing_past_the_frame_is_refused():
    with pytest.raises(rle.RleError, match="ends at 7, past the 6 pixels of 2x3"):
        rle.draw(np.array([[4, 3]]), 2, 3)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1, 2, 3], "3 numbers: an odd count"),
        ([-1, 2], "stored run 0 is start -1, length 2"),
        ([1, 0], "stored run 0 is start 1, length 0"),
        ([5, 2, 1, 2], "stored run 1 starts at 1, but the one before it ends at 7"),
        ([1, 2, 3, 2], "stored run 1 starts at 3, but the one before it ends at 3"),
        ([1.0, 2.0], "whole numbers, not float64"),
        ([[1, 2]], "shape"),
        ([2**63 - 1, 1], "out of range"),
        (np.array([2**63, 1], np.uint64), "beyond int64"),
    ],
)
def test_damaged_stored_runs_are_refused(values, message):
    with pytest.raises(rle.RleError, match=message):
        rle.from_flat(values)


def test_encode_wants_two_dimensions():
    with pytest.raises(rle.RleError, match="two dimensions"):
        rle.encode(np.zeros((2, 2, 1)))


@pytest.mark.slow
@pytest.mark.shared_data
def test_every_row_of_the_steel_set_equals_its_drawn_mask(shared_data):
    tf = pytest.importorskip("tensorflow")
    folder = shared_data / "steel_defects"
    rows = list(csv.DictReader((folder / "image_class.csv").open(newline="")))
    by_image = {}
    for row in rows:
        by_image.setdefault(row["ImageId"], []).append((int(row["ClassId"]), row["EncodedPixels"]))
    for image, parts in by_image.items():
        truth = tf.io.decode_png((folder / "masks" / image).with_suffix(".png").read_bytes(), channels=1).numpy()[
            ..., 0
        ]
        for number, text in parts:
            runs = rle.parse_pairs(text, height=200, width=200)
            assert np.array_equal(runs, rle.encode(truth == number)), (image, number)
    assert len(rows) >= 1077


@tries(60)
@given(
    st.lists(st.integers(0, 99), max_size=4), st.sampled_from(POLICIES),
    st.integers(1, 12), st.integers(1, 12), st.integers(1, 12), st.integers(1, 12),
)  # fmt: skip
def test_several_masks_are_resampled_as_each_alone(seeds, policy, h, w, height, width):
    """Full and empty masks among them: what ends with one frame never runs into the next."""
    plan = plan_geometry(policy, h, w, height, width)
    drawn = [np.random.default_rng(seed).random((h, w)) < (seed % 3) / 2 for seed in seeds]
    masks = [rle.encode(mask) for mask in drawn]
    found = rle.resample_all(masks, plan)
    assert len(found) == len(masks)
    for runs, mask in zip(found, drawn, strict=True):
        assert np.array_equal(runs, rle.encode(resampled_slowly(mask, plan)))


def test_a_run_without_pixels_is_refused_whatever_the_base():
    for base, text in ((0, "3 0"), (1, "3 0")):
        with pytest.raises(rle.RleError, match="a length"):
            rle.parse_pairs(text, height=4, width=4, base=base)


def test_what_is_not_0_belongs_to_a_mask():
    assert rle.encode(np.array([[0, 255], [2, 0]], np.uint8)).tolist() == [[1, 2]]
