"""Run-length dialects: each reads what it writes, equals its set's description, and refuses anything else by name."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from shardwright.masks import dialects, rle
from shardwright.masks.dialects import COCO, COLUMN_PAIRS, ROW_PAIRS, SIIM, Dialect, compress_counts, to_counts

DIALECTS = {
    "column": COLUMN_PAIRS,
    "row": ROW_PAIRS,
    "siim": SIIM,
    "coco": COCO,
    "column0": Dialect(base=0),
    "row0": Dialect(order="row", base=0),
    "relative row": Dialect("relative", order="row"),
}

shapes = st.tuples(st.integers(1, 24), st.integers(1, 24))
repeated_rows = shapes.flatmap(
    lambda shape: hnp.arrays(bool, (1, shape[1])).map(lambda row: np.repeat(row, shape[0], axis=0))
)
masks = hnp.arrays(bool, shapes) | repeated_rows | repeated_rows.map(np.transpose)


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=DIALECTS)
@given(mask=masks)
def test_every_dialect_reads_what_it_writes(dialect, mask):
    height, width = mask.shape
    runs = rle.encode(mask)
    text = dialect.format(runs, height=height, width=width)
    assert np.array_equal(dialect.parse(text, height=height, width=width), runs)
    assert text in dialect.empty or mask.any()


@given(masks)
def test_compressed_counts_are_read_too(mask):
    height, width = mask.shape
    runs = rle.encode(mask)
    counts = to_counts(runs, mask.size)
    assert sum(counts) == mask.size
    assert np.array_equal(COCO.parse(compress_counts(counts), height=height, width=width), runs)
    assert np.array_equal(COCO.parse(json.dumps(counts), height=height, width=width), runs)


@given(masks)
def test_dialects_equal_what_the_sets_describe(mask):
    """The truth: pixel by pixel, as the sets' own notebooks do it."""
    height, width = mask.shape
    runs = rle.encode(mask)
    for name, dialect in DIALECTS.items():
        text = dialect.format(runs, height=height, width=width)
        flat = np.zeros(height * width, bool)
        numbers = [] if text in dialect.empty else [int(n) for n in text.strip("[]").replace(",", " ").split()]
        if dialect.runs == "counts":
            flat = np.repeat(np.arange(len(numbers)) % 2 == 1, numbers) if numbers else flat
        position = 0
        for start, length in zip(numbers[::2], numbers[1::2], strict=False):
            if dialect.runs == "absolute":
                flat[start - dialect.base : start - dialect.base + length] = True
            elif dialect.runs == "relative":
                position += start
                flat[position : position + length] = True
                position += length
        drawn = flat.reshape(height, width) if dialect.order == "row" else flat.reshape(width, height).T
        assert np.array_equal(drawn, mask), name


def drawn(height, width, *boxes):
    mask = np.zeros((height, width), bool)
    for top, bottom, left, right in boxes:
        mask[top:bottom, left:right] = True
    return mask


ROWS, COLUMNS = np.mgrid[:100, :80]


# The strings are what pycocotools 2.0.11 (`mask.encode`) writes for these masks.
@pytest.mark.parametrize(
    ("mask", "text"),
    [
        (drawn(7, 5, (2, 5, 1, 4)), "9340005"),
        (drawn(7, 5, (0, 3, 0, 2), (6, 7, 4, 5)), "0340d0N"),
        (drawn(7, 5, (0, 7, 0, 5)), "0S1"),
        (
            (ROWS - 50) ** 2 + (COLUMNS - 37) ** 2 < 700,
            "jS19g28I6K4M2M4M2N2N2N2N2O0O2N2O0O2O000O2O00000O2O0000000000000001N1000001N10001N101N2N101N2N2N2N2N3L3N3L"
            "5J7Hf`1",
        ),
        (
            drawn(100, 80, (3, 96, 9, 10), (3, 96, 26, 27), (40, 44, 0, 80)),
            "X14P3000000000000000kNi2AWMd100000000000000000000000000000kNi2AWMd1" + "0" * 103 + "hN",
        ),
    ],
)
def test_compressed_counts_are_those_of_the_reference(mask, text):
    runs = rle.encode(mask)
    assert compress_counts(to_counts(runs, mask.size)) == text
    assert np.array_equal(COCO.parse(text, height=mask.shape[0], width=mask.shape[1]), runs)


@given(masks)
def test_transposing_runs_is_transposing_the_mask(mask):
    assert np.array_equal(rle.transpose(rle.encode(mask), *mask.shape), rle.encode(mask.T))


@given(masks)
def test_the_perimeter_counts_unequal_neighbors(mask):
    truth = np.count_nonzero(mask[1:] != mask[:-1]) + np.count_nonzero(mask[:, 1:] != mask[:, :-1])
    assert rle.perimeter(rle.encode(mask), *mask.shape) == truth


@pytest.mark.parametrize(
    ("dialect", "text", "message"),
    [
        (ROW_PAIRS, "21 1", r"number 1 of 2 \(a start\) is 21, past the 20 pixels of 5x4"),
        (ROW_PAIRS, "0 1", r"is 0; starts and lengths count from 1"),
        (Dialect(base=0), "20 1", r"number 1 of 2 \(a start\) is 20, past the 20 pixels of 5x4"),
        (Dialect(base=0), "19 2", r"the run from 19 ends at 20, past the 20 pixels"),
        (Dialect(base=0), "0 0", r"number 2 of 2 \(a length\) is 0; starts count from 0, lengths from 1"),
        (SIIM, "3 4 -1 2", r"number 3 of 4 \(an offset\) is -1; offsets count from 0, lengths from 1"),
        (SIIM, "3 0", r"number 2 of 2 \(a length\) is 0"),
        (SIIM, "3 4 10 4", r"number 4 of 4 \(a length\) is 4 and leads to 21, past the 20 pixels .* relative\?"),
        (SIIM, "3 4 10", r"odd count of 3 numbers: the last offset"),
        (SIIM, "-2", r"number 1 of 1 \(an offset\) is -2"),
        (SIIM, "3 1.5", r"is not a whole number: '1.5'; write 'offset length offset length ...'"),
        (SIIM, "9223372036854775807 9223372036854775807", "leads to 9223372036854775807, past"),
        (COCO, "[3, 4]", r"the counts add up to 7, but must fill the 20 pixels of 5x4"),
        (COCO, "[3, -4, 21]", r"number 2 of 3 \(a count\) is -4; counts are from 0 on"),
        (COCO, "[3, 17.0]", r"number 2 of 2 \(a count\) is not a whole number: '17.0'"),
        (COCO, "[3, x]", "is not a number: 'x'"),
        (COCO, "[3 17]", r"not a JSON list of whole numbers: '\[3 17\]'"),
        (COCO, "[[20]]", "is not a number"),
        (COCO, "[9223372036854775808]", "is beyond 64 bits|add up to 9223372036854775807"),
        (COCO, "[9223372036854775807, 9223372036854775807]", "add up to 18446744073709551614"),
        (COCO, "1 3", r"character 2 of 3 is ' '; COCO counts are a list"),
        (COCO, "1é", "character 2 of 2 is 'é'"),
        (COCO, "1\ud800", r"character 2 of 2 is '\\ud800'"),
        (COCO, "3P", "ends within a number; it has been cut off"),
        (COCO, "3" + "o" * 12 + "0", "the number at character 2 of 14 is beyond 60 bits"),
        (COCO, "ooooooo0", "the string holds"),
        (COCO, "3N", "count 2 of 2 is -2; counts are from 0 on"),
        (COCO, "34", "the counts add up to 7"),
    ],
)
def test_what_is_no_code_is_refused_by_name(dialect, text, message):
    with pytest.raises(rle.RleError, match=message):
        dialect.parse(text, height=5, width=4)


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=DIALECTS)
@given(
    text=st.text(alphabet="0123456789 -,[]", max_size=30)
    | st.text(alphabet=[chr(c) for c in range(46, 114)], max_size=30)
    | st.text(max_size=30)
)
def test_any_text_gives_sound_runs_or_an_rle_error(dialect, text):
    try:
        runs = dialect.parse(text, height=6, width=5)
    except rle.RleError:
        return
    assert np.array_equal(rle.encode(rle.draw(rle.from_flat(runs.reshape(-1)), 6, 5)), runs)


@given(counts=st.lists(st.integers(0, 2**28), max_size=60), text=st.text(alphabet="0PoN4", min_size=1, max_size=60))
def test_pieces_of_a_compressed_string_read_like_the_whole(counts, text):
    def read(compressed):
        try:
            return dialects._decompress(compressed, "frame").tolist()
        except rle.RleError as error:
            return str(error)

    for compressed in (compress_counts(counts) or "0", text):
        whole = read(compressed)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(dialects, "_PIECE", 13)
            assert read(compressed) == whole
    assert read(compress_counts(counts) or "0") == (counts or [0])


def test_runs_that_touch_or_are_empty_are_one_run():
    assert SIIM.parse("2 3 0 4", height=4, width=4).tolist() == [[2, 7]]
    assert COCO.parse("[2, 3, 0, 4, 7, 0]", height=4, width=4).tolist() == [[2, 7]]
    assert COCO.parse("[16]", height=4, width=4).shape == (0, 2)


def test_a_large_sparse_mask_is_turned_without_drawing_all_of_it():
    height, width = 30_000, 40_000
    runs = np.array([[500 * height + 29_990, 10], [501 * height, 5]])
    turned = rle.transpose(runs, height, width)
    assert turned.tolist() == [[row * width + 501, 1] for row in range(5)] + [
        [row * width + 500, 1] for row in range(29_990, 30_000)
    ]
    assert np.array_equal(rle.transpose(rle.transpose(rle.from_flat([5, 3]), 8, 1), 1, 8), [[5, 3]])


@pytest.mark.parametrize("text", ["", " ", "[]", "[ ]", "[  ]", "[\n]", " [\t] "])
def test_an_empty_list_is_empty_with_white_space_too(text):
    assert COCO.is_empty(text)
    assert len(COCO.parse(text, height=2, width=3)) == 0
    if text.strip():
        assert not COLUMN_PAIRS.is_empty(text)
        with pytest.raises(rle.RleError):
            COLUMN_PAIRS.parse(text, height=2, width=3)
