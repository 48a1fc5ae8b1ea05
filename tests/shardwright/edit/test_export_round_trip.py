"""The ingest reads the files of `export` in any layout without an option, and nothing is lost."""

import io
import json

import numpy as np
import pytest
from ingesting import examples, run
from PIL import Image
from recording import reading, write_records

from shardwright.dataset.reader import ImageDataset
from shardwright.edit.diff_datasets import find_differences
from shardwright.edit.export_dataset import ExportOptions, export
from shardwright.edit.relabel_dataset import relabel
from shardwright.errors import UsageError
from shardwright.formats.export_record import find_export
from shardwright.masks import rle
from shardwright.tfrecords.encode import byte_strings, encode_example, floats, ints

SIZE = 16
CLASSES = ("potted plant", "dining table", "a_b")
# In an order that is not that of the alphabet.
NAMED = {"task": "segmentation", "classes": list(CLASSES)}


def picture(number, exif=None):
    file = io.BytesIO()
    pixels = np.random.default_rng(number).integers(0, 256, (SIZE, SIZE, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(file, "jpeg", **({"exif": exif} if exif else {}))
    return file.getvalue()


def turned():
    exif = Image.Exif()
    exif[0x0112] = 6
    return exif


def further(number):
    """Captions, boxes and further columns."""
    if number == 3:
        return {}
    edges = {f"image/object/bbox/{side}": floats([0.1 * i, 0.3]) for i, side in enumerate(("xmin", "ymin"))}
    return {
        **edges,
        "image/object/bbox/xmax": floats([0.9, 1 / 3]),
        "image/object/bbox/ymax": floats([0.8, 1.0]),
        "image/object/class/label": ints([2, 1]),
        "image/object/class/text": byte_strings([b"dining table", b"potted plant"]),
        "image/caption/text": byte_strings([b'a "cat", asleep', "Zürich\n ".encode()]),
        "image/meta/depth": ints([-number, 2**40]),
        "image/meta/score": floats([0.1, float("inf"), number]),
    }


def masks(number, names):
    """Squares are square, so only the layout distinguishes rows from columns; image 2 has no mask."""
    found = {}
    for i, name in enumerate(names):
        mask = np.zeros((SIZE, SIZE), np.uint8)
        mask[number : number + 3, i : i + 9] = 1
        if number == 2 or (number + i) % 4 == 0:
            mask[:] = 0
        found[f"image/segmentation/{name}/rle"] = ints(rle.encode(mask).reshape(-1))
    return found


def write(root, records, **options):
    """A dataset of records, ingested."""
    write_records(root / "records/a.tfrecord", [encode_example(record) for record in records])
    raw = {**reading(root / "records", options.pop("task", "classification"), **options)}
    run(raw, root / "ds", workers=1)
    return ImageDataset.open(root / "ds")


def record(number, **features):
    # The third is turned by Exif: masks are those of the stored pixels.
    key = ("a b/0.jpg", "1.jpg", "2.jpg", "3.png", "1.png", "x/1.jpg")[number]
    return {
        "image/encoded": picture(number, turned() if number == 1 else None),
        "image/key": key.encode(),
        "image/filename": b"camera.jpg",
        **features,
        **further(number),
    }


@pytest.fixture(scope="module")
def masked(tmp_path_factory):
    records = [record(number, **masks(number, (*CLASSES, "ignore"))) for number in range(6)]
    return write(tmp_path_factory.mktemp("masked"), records, **NAMED)


@pytest.fixture(scope="module")
def one_class(tmp_path_factory):
    records = [record(number, **masks(number, ("ship",))) for number in range(6)]
    return write(tmp_path_factory.mktemp("one"), records, task="segmentation")


LABELS = ([2, 0, 0], [1], [], [0], [1, 0], [2])


@pytest.fixture(scope="module")
def several(tmp_path_factory):
    texts = [[CLASSES[label].encode() for label in labels] for labels in LABELS]
    records = [record(i, **{"image/class/text": byte_strings(listed)}) for i, listed in enumerate(texts)]
    return write(tmp_path_factory.mktemp("several"), records, classes=list(CLASSES))


@pytest.fixture(scope="module")
def single(tmp_path_factory):
    """One class an image; one image has none."""
    texts = [b"table lamp", b"table", b"lamp", b"table", b"lamp"]
    records = [record(i, **{"image/class/text": byte_strings(texts[i : i + 1])}) for i in range(6)]
    return write(
        tmp_path_factory.mktemp("single"),
        records,
        classes=["table", "table lamp", "lamp"],
        unlisted_images="unlabeled",
    )


@pytest.fixture(scope="module")
def captioned(tmp_path_factory):
    records = [record(number) for number in range(6)]
    texts = [{name: values for name, values in found.items() if "object" not in name} for found in records]
    return write(tmp_path_factory.mktemp("captioned"), texts)


def plain(found):
    return {key: {name: list(values) for name, values in example.items()} for key, example in found.items()}


def ingested(dataset, out, labels, options):
    """Exports a dataset and ingests what was written, with paths alone."""
    exported = export(dataset, str(out / "files"), ExportOptions(**options))
    given = {
        "images": str(out / "files/images"),
        **({"labels": {"path": str(out / "files" / labels)}} if labels else {}),
    }
    run({"task": dataset.manifest.task, "input": given}, out / "again", workers=1)
    return exported, ImageDataset.open(out / "again")


def check(dataset, out, labels="labels.csv", **options):
    exported, again = ingested(dataset, out, labels, options)
    one, other = plain(examples(dataset.root)), plain(examples(again.root))
    if options.get("layout") == "classes":
        by_file = {example["image/blake3"][0]: key for key, example in other.items()}
        other = {
            key: other[by_file[example["image/blake3"][0]]] | {"image/key": [key.encode()]}
            for key, example in one.items()
        }
    assert other == one
    assert again.manifest.classes == dataset.manifest.classes
    assert (again.manifest.labels, again.manifest.ignores) == (dataset.manifest.labels, dataset.manifest.ignores)
    assert again.manifest.totals["rejected"] == 0
    if options.get("layout") != "classes":
        assert set(find_differences(dataset, again).counts) <= {"moved"}
    return exported


DIALECTS = [
    *({"order": order, "base": base} for order in ("column", "row") for base in (0, 1)),
    *({"order": order, "runs": runs} for order in ("column", "row") for runs in ("relative", "counts", "compressed")),
]


@pytest.mark.parametrize("options", DIALECTS, ids=lambda options: "-".join(map(str, options.values())))
def test_every_dialect_of_a_table(masked, tmp_path, options):
    exported = check(masked, tmp_path, **options)
    assert exported["annotations"]["order"] == options["order"]


@pytest.mark.parametrize(
    "options", [{}, {"order": "row", "base": 0}, {"layout": "classes"}], ids=lambda options: "-".join(map(str, options))
)
def test_a_table_with_a_column_of_classes(masked, tmp_path, options):
    check(masked, tmp_path, table="image_class", **options)


@pytest.mark.parametrize("order", ["column", "row"])
def test_a_table_of_one_class(one_class, tmp_path, order):
    check(one_class, tmp_path, table="image", order=order)


@pytest.mark.parametrize("layout", ["keys", "classes"])
def test_masks_as_pictures(masked, one_class, tmp_path, layout):
    check(masked, tmp_path / "masked", "masks", masks="png", layout=layout)
    check(one_class, tmp_path / "one", "masks", masks="png", layout=layout)


@pytest.mark.parametrize("layout", ["keys", "classes"])
def test_several_classes_an_image_with_blanks_in_their_names(several, tmp_path, layout):
    check(several, tmp_path, layout=layout)
    assert "potted plant|potted plant" in (tmp_path / "files/labels.csv").read_text()


@pytest.mark.parametrize(("layout", "labels"), [("keys", "labels.csv"), ("classes", "labels.csv"), ("classes", "")])
def test_one_class_an_image(single, tmp_path, layout, labels):
    check(single, tmp_path, labels, layout=layout)


def test_captions_alone(captioned, tmp_path):
    check(captioned, tmp_path)


def test_names_of_classes_that_are_not_names_of_folders_or_hold_the_separator(tmp_path):
    names = ("a\\b", "a_b", "..", "x|y", "_none")
    records = [record(i, **{"image/class/text": byte_strings([name.encode()])}) for i, name in enumerate(names)]
    check(write(tmp_path / "single", records, classes=list(names)), tmp_path / "a", "", layout="classes")
    records[0]["image/class/text"] = byte_strings([b"x|y", b".."])
    check(write(tmp_path / "several", records, classes=list(names)), tmp_path / "b")
    records = [record(i, **masks(i, names)) for i in range(6)]
    check(
        write(tmp_path / "masked", records, **{**NAMED, "classes": list(names)}), tmp_path / "c", "masks", masks="png"
    )


@pytest.mark.parametrize(
    "options", DIALECTS[:3] + DIALECTS[4:5], ids=lambda options: "-".join(map(str, options.values()))
)
def test_the_dialect_is_detected_from_the_table_alone(masked, tmp_path, options):
    """A table that was moved away from `export.json` gives no transposed masks."""
    export(masked, str(tmp_path / "files"), ExportOptions(**options))
    (tmp_path / "files/export.json").unlink()
    given = {
        "images": str(tmp_path / "files/images"),
        "labels": {"path": str(tmp_path / "files/labels.csv"), "orientation": "stored"},
    }
    run({"task": "segmentation", "input": given}, tmp_path / "again", workers=1)
    again = examples(tmp_path / "again")
    for key, example in examples(masked.root).items():
        for name in CLASSES:
            assert np.array_equal(*(found[f"image/segmentation/{name}/rle"] for found in (example, again[key])))


def test_pictures_of_masks_are_found_without_the_record_too(one_class, tmp_path):
    export(one_class, str(tmp_path / "files"), ExportOptions(masks="png"))
    (tmp_path / "files/export.json").unlink()
    given = {
        "images": str(tmp_path / "files/images"),
        "labels": {"path": str(tmp_path / "files/masks")},
        "unlisted_images": "empty",
    }
    run({"task": "segmentation", "input": given}, tmp_path / "again", workers=1)
    areas = [
        {key: found["image/segmentation/ship/area"].tolist() for key, found in examples(root).items()}
        for root in (one_class.root, tmp_path / "again")
    ]
    assert areas[0] == areas[1]


def test_export_json_is_part_of_the_input(one_class, tmp_path):
    ingested(one_class, tmp_path, "labels.csv", {"order": "row"})
    first = ImageDataset.open(tmp_path / "again").manifest.fingerprint
    file = tmp_path / "files/export.json"
    raw = json.loads(file.read_text())
    raw["annotations"]["order"] = "column"
    file.write_text(json.dumps(raw))
    given = {"images": str(tmp_path / "files/images"), "labels": {"path": str(tmp_path / "files/labels.csv")}}
    raw = {"task": "segmentation", "input": given}
    assert run(raw, tmp_path / "other", workers=1).fingerprint != first


def test_ignored_pixels_come_back_by_relabel_too(masked, tmp_path):
    export(masked, str(tmp_path / "files"), ExportOptions(order="row", table="image_class"))
    relabel(masked, str(tmp_path / "files/labels.csv"), str(tmp_path / "again"), quiet=True)
    again = plain(examples(tmp_path / "again"))
    for key, example in plain(examples(masked.root)).items():
        assert again[key]["image/segmentation/ignore/rle"] == example["image/segmentation/ignore/rle"]
    assert not find_differences(masked, ImageDataset.open(tmp_path / "again")).counts


def test_ignored_pixels_have_no_place_in_a_table_of_one_class(tmp_path):
    records = [record(i, **masks(i, ("ship", "ignore"))) for i in range(3)]
    dataset = write(tmp_path, records, task="segmentation", classes=["ship"])
    with pytest.raises(UsageError, match="--table: image has no column for the ignored pixels"):
        export(dataset, str(tmp_path / "files"), ExportOptions(table="image"))


def test_rows_of_an_image_that_was_deleted_go_to_no_other_image(masked, tmp_path):
    """`1.jpg` is also the file's name of `x/1.jpg`, and without its extension `1.png`."""
    export(masked, str(tmp_path / "files"), ExportOptions())
    (tmp_path / "files/images/1.jpg").unlink()
    given = {
        "images": str(tmp_path / "files/images"),
        "labels": {"path": str(tmp_path / "files/labels.csv")},
    }
    run({"task": "segmentation", "input": given}, tmp_path / "again", workers=1)
    one, again = plain(examples(masked.root)), plain(examples(tmp_path / "again"))
    del one["1.jpg"]
    assert again == one


def test_the_arguments_of_a_notebook(masked, tmp_path):
    given = export(masked, tmp_path / "files")
    assert export(masked, str(tmp_path / "files"), ExportOptions()) == {**given, "existed": True}
    split = masked.splits[0]
    assert ExportOptions(splits=[split]) == ExportOptions(splits=(split,))
    with pytest.raises(UsageError, match=r"splits: 'train' is not a list\. Write splits=\['train'\]"):
        ExportOptions(splits="train")
    with pytest.raises(UsageError, match=r"Give ImageDataset.open\('ds'\)"):
        export("ds", tmp_path / "other")
    with pytest.raises(UsageError, match="options: {'to': 'coco'} is not an ExportOptions"):
        export(masked, tmp_path / "other", {"to": "coco"})


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"annotations": 3}',
        '{"annotations": {"version": 99}}',
        '{"annotations": {"version": 1, "x": 1}}',
    ],
)
def test_an_export_json_of_another_program_is_ignored(one_class, tmp_path, text):
    export(one_class, str(tmp_path / "files"), ExportOptions())
    (tmp_path / "files/export.json").write_text(text)
    assert find_export(str(tmp_path / "files/labels.csv"), "", "segmentation") is None
