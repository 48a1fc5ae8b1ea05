"""The same images and masks in every published layout of run lengths make the same records."""

import csv
import io
import re

import numpy as np
import pytest
from PIL import Image
from stored import check_stored

from shardwright.config import parse_config
from shardwright.dataset.reader import ImageDataset
from shardwright.errors import UsageError
from shardwright.ingest import IngestRecipe, ingest
from shardwright.masks import rle
from shardwright.masks.dialects import COCO, COLUMN_PAIRS, ROW_PAIRS, SIIM, Dialect, compress_counts, to_counts
from shardwright.tfrecords.records import decode_example

IMAGES = 24


def shape(number):
    return 40 + number % 5, 60


def objects(number):
    """Masks of an image's objects: one to three ellipses, which may overlap; none in every fourth image."""
    random = np.random.default_rng([3, number])
    height, width = shape(number)
    rows, columns = np.mgrid[:height, :width]
    masks = []
    for _ in range(random.integers(1, 4) if number % 4 else 0):
        top, left, down, right = (
            random.integers(0, height),
            random.integers(0, width),
            *random.integers(4, 12, 2),
        )
        masks.append(((rows - top) / down) ** 2 + ((columns - left) / right) ** 2 < 1)
    return masks


def whole(number):
    return np.any([np.zeros(shape(number), bool), *objects(number)], axis=0)


def coco_string(mask):
    return compress_counts(to_counts(rle.encode(mask), mask.size)) if mask.any() else "[]"


def written(dialect):
    return lambda mask: dialect.format(rle.encode(mask), height=mask.shape[0], width=mask.shape[1])


# Name -> header; how a mask is written; a row for each object or image; whether images without objects have a row; the
# extension that the table writes; the notes for the user.
LAYOUTS = {
    "clouds": ("Image_Label,EncodedPixels", written(COLUMN_PAIRS), "image", True, ".png", "of Understanding Clouds"),
    "severstal": ("ImageId,ClassId,EncodedPixels", written(COLUMN_PAIRS), "image", False, ".png", "of Severstal"),
    "airbus": ("ImageId,EncodedPixels", written(COLUMN_PAIRS), "object", False, ".png", "of Airbus ships"),
    "tgs": ("id,rle_mask", written(COLUMN_PAIRS), "image", True, "", "of TGS salt"),
    "carvana": ("img,rle_mask", written(ROW_PAIRS), "image", True, ".png", "row by row, since the header .* Carvana"),
    "siim": ("ImageId, EncodedPixels", written(SIIM), "object", True, "", "relative .* the header .* of SIIM-ACR"),
    "sartorius": (
        "id,annotation,width,height,cell_type,plate_time,sample_date,sample_id,elapsed_timedelta",
        written(ROW_PAIRS),
        "object",
        True,
        "",
        "row by row, since the header is that of Sartorius",
    ),
    "uwmadison": ("id,class,segmentation", written(ROW_PAIRS), "image", True, "", "row by row, .* UW-Madison"),
    "dsb": ("ImageId,EncodedPixels", written(COLUMN_PAIRS), "object", True, "", "of Data Science Bowl 2018"),
    "coco list": ("image_id,rle", written(COCO), "object", True, ".png", "COCO counts, .* counts that fill"),
    "coco string": ("image_id,rle", coco_string, "object", True, ".png", "COCO counts, .* counts that fill"),
    "own columns": ("file,rle", written(COLUMN_PAIRS), "image", True, ".png", "column by column, since the other way"),
    "own rows": ("file,rle", written(ROW_PAIRS), "image", True, ".png", "row by row, since the other way the outlines"),
    "own from 0": ("file,rle", written(Dialect(base=0)), "image", True, ".png", "from 0, .* a start is 0"),
    "own relative": (
        "file,label,rle",
        written(Dialect("relative", order="row")),
        "image",
        True,
        ".png",
        "relative offsets, row by row, since starts do not ascend",
    ),
}


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    folder = tmp_path_factory.mktemp("images")
    for number in range(IMAGES):
        height, width = shape(number)
        Image.radial_gradient("L").resize((width, height)).save(folder / f"{number:03d}.png")
    return folder


def write_table(file, layout):
    header, write, row_per, empty_rows, extension, _ = LAYOUTS[layout]
    names = header.split(",")
    text = io.StringIO(newline="")
    rows = csv.writer(text, lineterminator="\n")
    text.write(header + "\n")
    for number in range(IMAGES):
        masks = (objects(number) if row_per == "object" else [whole(number)]) or [whole(number)]
        if layout == "own from 0" and number == 1:
            masks[0][0, 0] = True
        for mask in masks:
            if not mask.any() and not empty_rows:
                continue
            name = f"{number:03d}{extension}"
            fields = [f"{name}_blob"] if names[0] == "Image_Label" else [name]
            fields += ["blob"] if len(names) == 3 else []
            rows.writerow([*fields, write(mask), *[str(n) for n in range(len(names) - len(fields) - 1)]])
    file.write_text(text.getvalue())


def configure(images, table, rejects=0, **labels):
    given = {"images": str(images), "labels": {**labels, "path": str(table)}, "classes": ["blob"]}
    return parse_config({"input": given, "rejects": {"max_fraction": rejects}}, base="/")


def masks_of(folder):
    dataset = ImageDataset.open(folder)
    found = {}
    for split in dataset.splits:
        for key, data in dataset.records(split):
            example = decode_example(data)
            found[key] = rle.from_flat(example["image/segmentation/blob/rle"])
    return found


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_holds_the_same_masks_and_is_detected(tmp_path, images, layout):
    write_table(tmp_path / "train.csv", layout)
    notes = []
    manifest = ingest(configure(images, tmp_path / "train.csv"), tmp_path / "out", quiet=True, log=notes.append)
    assert manifest.totals["written"] == manifest.totals["inputs"] == IMAGES
    check_stored(f"run lengths: {layout}", tmp_path / "out")
    found = masks_of(tmp_path / "out")
    for number in range(IMAGES):
        truth = whole(number)
        truth[0, 0] |= layout == "own from 0" and number == 1
        assert np.array_equal(found[f"{number:03d}.png"], rle.encode(truth)), number
    (note,) = [note for note in notes if note.startswith("run lengths: ")]
    assert re.search(LAYOUTS[layout][-1], note), note


def test_records_do_not_depend_on_the_layout(tmp_path, images):
    shards = set()
    for layout in ("clouds", "airbus", "carvana", "siim", "coco string"):
        write_table(tmp_path / "train.csv", layout)
        manifest = ingest(configure(images, tmp_path / "train.csv"), tmp_path / layout, quiet=True)
        shards.add(tuple(shard.checksum for shard in manifest.shards))
    assert len(shards) == 1


def test_one_class_is_called_mask_unless_it_is_named(tmp_path, images):
    write_table(tmp_path / "train.csv", "airbus")
    raw = {"images": str(images), "labels": {"path": str(tmp_path / "train.csv")}}
    for classes, names in ((None, ("mask",)), (["ship"], ("ship",)), ({"ship": 7}, ("ship",))):
        config = parse_config({"input": {**raw, "classes": classes}}, base="/")
        assert ingest(config, tmp_path / names[0] / str(len(str(classes))), quiet=True).classes == names
    with pytest.raises(UsageError, match=r"no column of classes was found, and input\.classes names 2"):
        ingest(parse_config({"input": {**raw, "classes": ["a", "b"]}}, base="/"), tmp_path / "x", quiet=True)


def test_a_bad_code_is_reported_with_its_row_and_column(tmp_path, images):
    write_table(tmp_path / "train.csv", "siim")
    lines = (tmp_path / "train.csv").read_text().splitlines()
    place = next(i for i, line in enumerate(lines) if line.startswith("001,"))
    lines[place] = "001,5 3 99999 2"
    (tmp_path / "train.csv").write_text("\n".join(lines))
    ingest(configure(images, tmp_path / "train.csv", rejects=0.05), tmp_path / "out", quiet=True)
    (row,) = [row for row in ImageDataset.open(tmp_path / "out").ledger() if row.status == "rejected"]
    assert (row.key, row.code) == ("001.png", "bad_rle")
    assert row.reason.startswith(f"train.csv, row {place + 1}, column EncodedPixels, class blob: number 3 of 4")


def test_the_configuration_wins_and_is_part_of_the_recipe(tmp_path, images):
    write_table(tmp_path / "train.csv", "carvana")
    table = tmp_path / "train.csv"
    table.write_text(table.read_text().replace("img,rle_mask", "file,rle"))
    detected = ingest(configure(images, table), tmp_path / "detected", quiet=True)
    given = ingest(
        configure(images, table, rle={"order": "row", "encoding": "absolute", "start": 1}),
        tmp_path / "given",
        quiet=True,
    )
    assert [shard.checksum for shard in detected.shards] == [shard.checksum for shard in given.shards]
    assert detected.recipe["input"]["labels"] == {"path": "train.csv"}
    form = {"encoding": "absolute", "order": "row", "start": 1}
    assert given.recipe["input"]["labels"] == {"path": "train.csv", "rle": form}
    wrong = ingest(configure(images, table, rle={"order": "column"}), tmp_path / "wrong", quiet=True)
    assert [shard.checksum for shard in detected.shards] != [shard.checksum for shard in wrong.shards]
    recipe = IngestRecipe.of(configure(images, table, rle={"order": "row", "start": 0}))
    assert IngestRecipe.from_json(recipe.to_json()) == recipe
