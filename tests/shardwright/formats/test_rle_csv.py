"""Telling a run-length dialect: by header, values and outlines; with its reason, and never where two fit equally."""

from dataclasses import replace

import numpy as np
import pytest
from ingesting import examples, ledger, run
from PIL import Image

from shardwright.errors import UsageError
from shardwright.formats.rle_csv import SampleCell, detect_layout
from shardwright.masks import rle
from shardwright.masks.dialects import COCO, COLUMN_PAIRS, ROW_PAIRS, SIIM, Dialect

AIRBUS = {"image": "ImageId", "mask": "EncodedPixels"}
OWN = {"image": "photo", "mask": "rle"}


def disc(height, width, top, left, radius):
    rows, columns = np.mgrid[:height, :width]
    return (rows - top) ** 2 + (columns - left) ** 2 < radius**2


def samples(dialect, height=90, width=130, count=6, extension=True):
    random = np.random.default_rng(1)
    found = []
    for _ in range(count):
        mask = disc(height, width, random.integers(5, height), random.integers(5, width), random.integers(5, 30))
        text = dialect.format(rle.encode(mask), height=height, width=width)
        found.append(SampleCell(text, extension, height, width))
    return found


def detect(headers, rows, **code):
    return detect_layout("train.csv", headers, rows, code)


def form(headers, rows, **code):
    """The dialect that is detected, without the texts of an empty mask."""
    return bare(detect(headers, rows, **code).dialect)


def bare(dialect):
    return replace(dialect, empty=())


@pytest.mark.parametrize("dialect", [COLUMN_PAIRS, ROW_PAIRS, SIIM, Dialect("relative", "row", base=0), COCO])
@pytest.mark.parametrize("size", [(90, 130), (130, 90), (64, 128), (128, 64), (140, 210), (101, 104)])
def test_any_header_will_do_where_images_are_not_square(dialect, size):
    assert form(OWN, samples(dialect, *size)) == bare(dialect)


@pytest.mark.parametrize("size", [(64, 64), (101, 101)])
def test_square_images_are_refused_unless_header_or_user_decides(size):
    rows = samples(ROW_PAIRS, *size)
    with pytest.raises(
        UsageError, match=r"train\.csv, column 'rle': .*Set input\.labels\.rle\.order: column or row"
    ) as e:
        detect(OWN, rows)
    assert "outlines of 6 masks" in str(e.value)
    assert form(OWN, rows, order="row") == bare(ROW_PAIRS)
    assert form({"image": "img", "mask": "rle_mask"}, rows) == bare(ROW_PAIRS)
    assert detect(OWN, samples(COCO, *size)).dialect == COCO


def test_noise_has_no_order():
    random = np.random.default_rng(0)
    noise = [rle.to_pairs(rle.encode(random.random((40, 70)) < 0.5)) for _ in range(5)]
    with pytest.raises(UsageError, match=r"input\.labels\.rle\.order"):
        detect(OWN, [SampleCell(text, True, 40, 70) for text in noise])


@pytest.mark.parametrize(
    ("headers", "order", "unlisted", "name"),
    [
        ({"image_label": "Image_Label", "mask": "EncodedPixels"}, "column", "fail", "Understanding Clouds"),
        ({"image_label": "ImageId_ClassId", "mask": "EncodedPixels"}, "column", "fail", "Severstal"),
        ({"image": "ImageId", "label": "ClassId", "mask": "EncodedPixels"}, "column", "empty", "Severstal"),
        ({"image": "file", "label": "kind", "mask": "encoded_pixels"}, "column", "empty", "Severstal"),
        (AIRBUS, "column", "empty", "Airbus ships"),
        ({"image": "id", "mask": "rle_mask"}, "column", "fail", "TGS salt"),
        ({"image": "img", "mask": "rle_mask"}, "row", "fail", "Carvana"),
        ({"image": "id", "mask": "annotation"}, "row", "fail", "Sartorius"),
        ({"image": "id", "label": "class", "mask": "segmentation"}, "row", "fail", "UW-Madison"),
    ],
)
def test_known_headers_are_believed_until_the_masks_contradict(headers, order, unlisted, name):
    for rows in ([], samples(Dialect(order=order)), samples(COLUMN_PAIRS, 64, 64), samples(ROW_PAIRS, 64, 64)):
        layout = detect(headers, rows)
        assert (bare(layout.dialect), layout.unlisted) == (bare(Dialect(order=order)), unlisted)
        assert layout.reason == f"the header is that of {name}"
    other = {"column": "row", "row": "column"}[order]
    contrary = samples(Dialect(order=other))
    with pytest.raises(UsageError, match=f"of {name}, whose runs go {order} by {order}, but .*input.labels.rle.order"):
        detect(headers, contrary)
    assert form(headers, contrary, order=other) == bare(Dialect(order=other))


def test_airbus_bowl_and_siim_share_a_header_and_are_detected_by_values():
    assert detect(AIRBUS, samples(COLUMN_PAIRS)).reason == "the header is that of Airbus ships"
    bowl = detect(AIRBUS, samples(COLUMN_PAIRS, extension=False))
    assert (bowl.reason, bowl.unlisted) == ("the header is that of Data Science Bowl 2018", "fail")
    for rows in (samples(SIIM, extension=False), samples(SIIM, 64, 64)):
        siim = detect(AIRBUS, rows)
        assert (siim.dialect, siim.unlisted) == (SIIM, "fail")
        assert siim.reason.startswith("the header is that of SIIM-ACR; starts do not ascend in ")


def texts(*codes):
    return [SampleCell(code, True, 20, 30) for code in codes]


def test_a_marker_decides_where_the_numbers_do_not():
    few = texts("1 5 41 7", "3 2")
    assert form(AIRBUS, few) == bare(COLUMN_PAIRS)
    assert detect(AIRBUS, [*few, *texts("-1")]).dialect == SIIM
    many = texts("500 5 560 7", "300 2 400 3", "300 9 350 4")
    assert form(AIRBUS, [*many, *texts("-1")]) == bare(COLUMN_PAIRS)


def test_a_marker_is_empty_where_the_header_leaves_it_open():
    clouds = {"image_label": "Image_Label", "mask": "EncodedPixels"}
    assert detect(clouds, texts("-1")).dialect == COLUMN_PAIRS
    for headers in (AIRBUS, OWN):
        dialect = detect(headers, samples(COLUMN_PAIRS)).dialect
        assert dialect.empty == ("", "-1")
        assert dialect.parse("-1", height=20, width=30).shape == (0, 2)


def test_numbers_that_fit_neither_meaning_are_refused():
    rows = texts("500 5 560 7", "300 2 400 3", "50 9 1 4", "60 9 2 4")
    with pytest.raises(
        UsageError, match=r"2 of the first rows .* Set input\.labels\.rle\.encoding: absolute or relative"
    ):
        detect(AIRBUS, rows)
    assert form(AIRBUS, rows, encoding="absolute") == bare(COLUMN_PAIRS)
    assert detect(AIRBUS, rows, encoding="relative").dialect == SIIM
    # Unsorted runs are their union where the header implies that starts are absolute.
    severstal = {"image": "ImageId", "label": "ClassId", "mask": "EncodedPixels"}
    assert detect(severstal, texts(*["50 9 1 4"] * 5)).dialect == COLUMN_PAIRS


def unsorted(count=6, height=40, width=64):
    """Codes with absolute starts whose runs go from right to left; near the left border they fit as offsets, too."""
    runs = [[(column * height + 6, 4 + number) for column in (4, 3, 2)] for number in range(count)]
    return [SampleCell(" ".join(f"{a} {b}" for a, b in one), True, height, width) for one in runs]


@pytest.mark.parametrize("headers", [AIRBUS, OWN])
@pytest.mark.parametrize("count", [1, 2, 6])
def test_starts_that_do_not_ascend_are_offsets_only_where_these_draw_shorter_outlines(headers, count):
    rows = unsorted(count)
    assert detect(headers, rows, order="column").dialect.runs == "absolute"
    # The codes of two objects in one row, one of them further up.
    joined = [SampleCell(f"{row.text} {50 + number} 5", True, 40, 64) for number, row in enumerate(rows)]
    assert detect(headers, joined, order="column").dialect.runs == "absolute"
    # The first rows of a table of SIIM-ACR: as starts, its runs overlap near the first column.
    code = "557374 2 1015 8 1009 14 1002 20 997 26 990 32 985 38 983 40 980 42 979 42 979 42 979 42"
    siim = [SampleCell(code, False, 1024, 1024)] * count
    if count > 2:
        assert detect(headers, siim, order="column").dialect == SIIM
    else:
        with pytest.raises(UsageError, match=f"{count} relative ones.*Set input.labels.rle.encoding: absolute or rel"):
            detect(headers, siim, order="column")
    assert detect(headers, [*siim, SampleCell("-1", False, 1024, 1024)], order="column").dialect == SIIM


def test_starts_that_do_not_ascend_and_show_no_object_are_refused():
    dots = texts(*["301 1 7 1 99 1"] * 3)
    with pytest.raises(UsageError, match=r"0 of the first rows .*, 0 relative ones, and 3 fit both") as caught:
        detect(AIRBUS, dots)
    assert [one.options["input.labels.rle.encoding"] for one in caught.value.readings] == ["absolute", "relative"]
    # Those of most rows ascend.
    assert form(AIRBUS, [*dots, *texts(*["7 1 99 1"] * 3)]) == bare(COLUMN_PAIRS)


def test_a_start_of_0_decides_the_base():
    rows = samples(Dialect(base=0))
    assert form(OWN, [*rows, SampleCell("0 3", True, 90, 130)]) == bare(Dialect(base=0))
    assert "a start is 0" in detect(OWN, [*rows, SampleCell("0 3", True, 90, 130)]).reason
    assert form(OWN, rows, start=0) == bare(Dialect(base=0))
    assert form(OWN, rows) == bare(COLUMN_PAIRS)


def test_damaged_rows_decide_nothing():
    damaged = [SampleCell(text, True, 90, 130) for text in ("many", "1 2 3", "1 99999999", "7 0", "[3")]
    for dialect in (COLUMN_PAIRS, ROW_PAIRS, COCO):
        assert form(OWN, [*damaged, *samples(dialect)]) == bare(dialect)
    assert form(OWN, damaged) == bare(COLUMN_PAIRS)


def test_counts_have_no_other_order():
    with pytest.raises(UsageError, match="column by column"):
        detect(OWN, samples(COCO), order="row")
    assert detect(OWN, samples(COCO), encoding="counts").dialect == COCO


def table_of(tmp_path, fields, header="ImageId,EncodedPixels"):
    """A table of fields, one for each image of 24 x 36 pixels, and the result of an ingest of it."""
    (tmp_path / "in").mkdir()
    lines = [header]
    for number, field in enumerate(fields):
        Image.new("RGB", (36, 24), (number, 7, 99)).save(tmp_path / f"in/{number:02}.png")
        lines.append(f"{number:02}.png,{field}")
    (tmp_path / "train.csv").write_text("\n".join(lines) + "\n")
    raw = {
        "task": "segmentation",
        "input": {"images": str(tmp_path / "in"), "labels": {"path": str(tmp_path / "train.csv")}},
        "split": {"ratios": {"train": 1.0}},
    }
    run(raw, tmp_path / "out", workers=1)
    runs = {
        key: list(example.get("image/segmentation/mask/rle", [])) for key, example in examples(tmp_path / "out").items()
    }
    return runs, {key: row.code for key, row in ledger(tmp_path / "out").items() if row.status == "rejected"}


WORDS = ["NaN", "nan", "None", "NONE", "null", "NA", "N/A", "<NA>", "[]", "[ ]", "{}", "-", "0", "-1", "0 0", "-1 -1"]
CODES = [" ".join(f"{(4 + n + column) * 24 + 6} 7" for column in range(9)) for n in range(12)]
COUNTED = ["[102, 7, 17, 7, 17, 7, 707]"] * 12


@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize("header", ["ImageId,EncodedPixels", "image,rle", "id,rle_mask", "image,rle_absolute_column_1"])
def test_a_word_among_codes_means_no_mask(tmp_path, word, header):
    """Pandas writes `NaN`, people -1; in no dialect is either a code."""
    fields = [word if number % 4 == 3 else code for number, code in enumerate(CODES)]
    runs, rejected = table_of(tmp_path, fields, header)
    assert not rejected
    assert {key for key, found in runs.items() if not found} == {"03.png", "07.png", "11.png"}
    assert len(runs["00.png"]) == 18


@pytest.mark.parametrize("word", WORDS)
def test_a_word_among_counts_means_no_mask(tmp_path, word):
    fields = [word if number % 4 else f'"{code}"' for number, code in enumerate(COUNTED)]
    runs, rejected = table_of(tmp_path, fields)
    assert not rejected
    assert {key for key, found in runs.items() if found} == {"00.png", "04.png", "08.png"}


@pytest.mark.parametrize("other", ["1", "none here", "100 7 124"])
def test_next_to_other_texts_a_word_may_mean_anything(tmp_path, other):
    runs, rejected = table_of(tmp_path, [*CODES[:9], "0", "0", other])
    assert rejected == dict.fromkeys(("09.png", "10.png", "11.png"), "bad_rle")
    assert len(runs) == 9


@pytest.mark.parametrize("headers", [AIRBUS, OWN])
def test_numbers_that_ascend_throughout_are_no_lengths(headers):
    """A start and the last pixel of each run."""
    rows = samples(Dialect())
    pairs = [list(map(int, row.text.split())) for row in rows]
    ends = [" ".join(f"{a} {a + b - 1}" for a, b in zip(p[::2], p[1::2], strict=True)) for p in pairs]
    with pytest.raises(UsageError, match="the second of a pair is the last pixel of a run, and not its length"):
        detect(headers, [row._replace(text=text) for row, text in zip(rows, ends, strict=True)])
