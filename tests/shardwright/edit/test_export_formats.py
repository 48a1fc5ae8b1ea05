"""`export --to FORMAT`: what our ingest, or the format's own reader, reads back is what the dataset had."""

import hashlib
import io
import json
import tarfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from ingesting import run
from PIL import Image, ImageOps
from recording import picture, reading, write_records

from shardwright.dataset.reader import ImageDataset
from shardwright.dataset.source import source
from shardwright.edit import export_containers
from shardwright.edit.export_dataset import ExportOptions, export
from shardwright.errors import CheckFailed, UsageError
from shardwright.masks import rle
from shardwright.pipelines.cli import main
from shardwright.tfrecords.encode import byte_strings, encode_example, floats, ints

CLASSES = ["potted plant", "person", "tv monitor"]
COUNT, HEIGHT, WIDTH = 6, 10, 12

PAGE = Path(__file__).parents[3] / "docs/how-to/export.md"


def mask(number, i):
    """Masks of the classes do not overlap; image 4 has none."""
    pixels = np.zeros((HEIGHT, WIDTH), np.uint8)
    if (number + i) % 3 and number != 4:
        pixels[number : number + 2 + i % 2, 3 * i : 3 * i + 2] = 1
        pixels[9, 3 * i] = 1
    return pixels


def record(number, *, labels=None, masks=False, boxes=False):
    # A name with a blank, and one image below a folder.
    key = ("a b/0.png", "1.jpg", "2.png", "3.jpg", "4.png", "5.jpg")[number]
    data = picture(number, "png" if key.endswith("png") else "jpeg", (WIDTH, HEIGHT))
    found = {"image/encoded": data, "image/key": key.encode()}
    if masks:
        for i, name in enumerate([*CLASSES, "ignore"]):
            found[f"image/segmentation/{name}/rle"] = ints(rle.encode(mask(number, i)).reshape(-1))
    if labels is not None:
        found["image/class/text"] = byte_strings([CLASSES[label].encode() for label in labels])
    if boxes and number != 4:
        # COCO has no mask without a box: a class with a mask has one here.
        numbers = [i for i in range(3) if mask(number, i).any()] if masks else [number % 3]
        numbers.append(1)
        sides = {
            "xmin": [0.0, 1 / 3, 0.1],
            "ymin": [0.25, 0.1, 0.0],
            "xmax": [0.5, 0.99, 0.9],
            "ymax": [0.99, 0.7, 0.9],
        }
        for side, values in sides.items():
            found[f"image/object/bbox/{side}"] = floats([value + number / 999 for value in values][: len(numbers)])
        found["image/object/class/label"] = ints([i + 1 for i in numbers])
        found["image/object/class/text"] = byte_strings([CLASSES[i].encode() for i in numbers])
    return found


def dataset(root, task="classification", **options):
    records = [
        encode_example(record(i, **{k: v(i) if callable(v) else v for k, v in options.items()})) for i in range(6)
    ]
    write_records(root / "records/a.tfrecord", records)
    raw = reading(root / "records", task, classes=CLASSES)
    run(raw, root / "ds", workers=1)
    return ImageDataset.open(root / "ds")


KINDS = {
    "masks": {"task": "segmentation", "masks": True, "boxes": True},
    "one class": {"labels": lambda number: [number % 3]},
    "several classes": {"labels": lambda number: [[2, 0], [1], [], [0], [1, 0], [2]][number]},
    "boxes": {"labels": lambda number: sorted({number % 3, 1}) if number != 4 else [], "boxes": True},
}


@pytest.fixture(scope="module")
def datasets(tmp_path_factory):
    return {name: dataset(tmp_path_factory.mktemp("given"), **options) for name, options in KINDS.items()}


def content(found):
    """Checksum of the image's bytes -> its parts."""
    parts = {}
    for split in found.splits:
        for (_, payload), item in zip(found.records(split), source(found.root, split), strict=True):
            row = {"splits": split}
            data = found.example(item["key"]).encoded
            classes = found.manifest.classes
            if "label" in item:
                row["labels"] = [classes[int(item["label"])]]
            elif "labels" in item:
                row["labels"] = sorted(name for name, there in zip(classes, item["labels"], strict=True) if there)
            if "masks" in item:
                row["masks"] = {name: (item["masks"][..., i] == 1).tolist() for i, name in enumerate(classes)}
                row["ignored pixels"] = (item["masks"] == 255).any(axis=-1).tolist()
            names = [classes[label] for label in item.get("box_labels", ())]
            row["boxes"] = sorted([name, *box.tolist()] for name, box in zip(names, item.get("boxes", ()), strict=True))
            parts[hashlib.sha256(data).hexdigest()] = row
            assert payload
    return parts


def ingested(folder, out, task="segmentation", **given):
    run({"task": task, "input": {**given, "images": str(folder / given["images"])}}, out, workers=1)
    found = ImageDataset.open(out)
    assert not found.manifest.totals["rejected"], [row.reason for row in found.ledger()]
    return content(found)


def labels(folder, path="", **options):
    return {"path": str(folder / path), **options}


def by_coco(folder, out, kind):
    # The boxes of `record` are not those around its masks.
    own = {"boxes": True, "confirmed": ["own_boxes"]}
    given = labels(folder, "annotations.json", **(own if kind in ("masks", "boxes") else {}))
    return ingested(folder, out, "segmentation" if kind == "masks" else "classification", images="images", labels=given)


def by_voc(folder, out, kind):
    given = labels(folder) if kind == "masks" else labels(folder, "Annotations", boxes=True)
    task = "segmentation" if kind == "masks" else "classification"
    return ingested(folder, out, task, images="JPEGImages", labels=given, classes=CLASSES, unlisted_images="empty")


def by_labelme(folder, out, kind):
    boxes = {"boxes": True} if kind in ("masks", "boxes") else {}
    task = "segmentation" if kind == "masks" else "classification"
    return ingested(folder, out, task, images="images", labels=labels(folder, "images", **boxes), classes=CLASSES)


def by_label_studio(folder, out, kind):
    task = "segmentation" if kind == "masks" else "classification"
    given = labels(folder, "tasks.json", format="label_studio")
    return ingested(folder, out, task, images="images", labels=given, classes=CLASSES)


def by_cvat(folder, out, kind):
    given = labels(folder, "annotations.xml", **({"boxes": True} if kind == "boxes" else {}))
    task = "segmentation" if kind == "masks" else "classification"
    return ingested(folder, out, task, images="images", labels=given, classes=CLASSES)


def by_yolo(folder, out, kind):
    given = labels(folder, "data.yaml", **({"boxes": True} if kind == "boxes" else {}))
    task = "segmentation" if kind == "masks" else "classification"
    return ingested(folder, out, task, images="images", labels=given)


def by_imagefolder(folder, out, kind):
    del kind
    return ingested(folder, out, "classification", images="images")


def by_csv(folder, out, kind):
    task = "segmentation" if kind == "masks" else "classification"
    return ingested(folder, out, task, images="images", labels=labels(folder, "labels.csv"))


def decoded(data):
    return (np.asarray(Image.open(io.BytesIO(data))) > 0).tolist()


def parts_of(split, row, masks, classes):
    """The parts of an image as `content` has them, for formats that are read by their own programs."""
    empty = np.zeros((HEIGHT, WIDTH), bool).tolist()
    boxes = [
        [name, *np.float32([box[0] / WIDTH, box[1] / HEIGHT, box[2] / WIDTH, box[3] / HEIGHT]).tolist()]
        for name, box in zip(row["box_classes"], row["boxes"], strict=True)
    ]
    found = {"splits": split, "labels": sorted(row["classes"]), "boxes": sorted(boxes)}
    if masks is not None:
        found["masks"] = {name: masks.get(i, empty) for i, name in enumerate(classes)}
        found["ignored pixels"] = masks.get("ignored", empty)
    return found


def tar_content(folder, kind):
    """The tar files, read without our ingest."""
    classes, found = json.loads((folder / "classes.json").read_text()), {}
    for path in sorted(folder.glob("*.tar")):
        samples = {}
        with tarfile.open(path) as tar:
            for member in tar:
                name, _, extension = member.name.partition(".")
                samples.setdefault(name, {})[extension] = tar.extractfile(member).read()
        for sample in samples.values():
            masks = {}
            for extension, data in sample.items():
                if extension.startswith("mask"):
                    masks[int(extension.removeprefix("mask").removesuffix(".png"))] = decoded(data)
                elif extension == "ignored.png":
                    masks["ignored"] = decoded(data)
            (image,) = (data for extension, data in sample.items() if extension in ("jpg", "png"))
            row = parts_of(
                path.name.rpartition("-")[0].replace("validation", "eval"),
                json.loads(sample["json"]),
                masks if kind == "masks" else None,
                classes,
            )
            found[hashlib.sha256(image).hexdigest()] = row
    return found


def packed(folder, out, kind, theirs, **given):
    """A container comes back through our ingest, and its own reader finds the same."""
    task = "segmentation" if kind == "masks" else "classification"
    run({"task": task, "input": {"images": str(folder), **given}}, out, workers=1)
    found = ImageDataset.open(out)
    assert list(found.manifest.classes) == CLASSES
    assert (found.manifest.totals["written"], found.manifest.totals["rejected"]) == (COUNT, 0)
    assert {row.key for row in found.ledger()} == {"a b/0.png", "1.jpg", "2.png", "3.jpg", "4.png", "5.jpg"}
    ours = content(found)
    # The ingest splits again; the names of the files have the splits.
    for image, row in theirs.items():
        ours[image]["splits"] = row["splits"]
        assert {part: row[part] for part in ours[image]} == ours[image]
    return ours


def by_webdataset(folder, out, kind):
    return packed(folder, out, kind, tar_content(folder, kind))


def by_parquet(folder, out, kind):
    return packed(folder, out, kind, parquet_content(folder, kind))


def by_arrayrecord(folder, out, kind):
    # `test_array_record_holds_the_records` reads it without our ingest.
    ours = packed(folder, out, kind, {}, classes=CLASSES)
    return {image: {part: value for part, value in row.items() if part != "splits"} for image, row in ours.items()}


def parquet_content(folder, kind):
    """The Parquet files, read without our ingest."""
    parquet = pytest.importorskip("pyarrow.parquet")
    found = {}
    for path in sorted((folder / "data").glob("*.parquet")):
        table = parquet.read_table(path)
        features = json.loads(table.schema.metadata[b"huggingface"])["info"]["features"]
        assert list(features) == table.column_names
        for row in table.to_pylist():
            masks = {
                i: decoded(row[f"mask_{name}"]["bytes"]) for i, name in enumerate(CLASSES) if row.get(f"mask_{name}")
            }
            masks |= {"ignored": decoded(row["ignored"]["bytes"])} if row.get("ignored") else {}
            numbers = row.get("labels", [row.get("label")])
            names = [features["label"]["names"][i] for i in numbers] if "label" in row else None
            names = [features["labels"]["feature"]["names"][i] for i in numbers] if "labels" in row else names
            names = [name for i, name in enumerate(CLASSES) if row.get(f"mask_{name}")] if names is None else names
            listed = {"classes": names, "boxes": row.get("boxes", []), "box_classes": row.get("box_classes", [])}
            split = path.name.partition("-")[0].replace("validation", "eval")
            parts = parts_of(split, listed, masks if kind == "masks" else None, CLASSES)
            found[hashlib.sha256(row["image"]["bytes"]).hexdigest()] = parts
    return found


READERS = {name.removeprefix("by_"): value for name, value in dict(globals()).items() if name.startswith("by_")}
# Format -> the kinds of annotations that it holds, and the parts that are lost on the way.
ROUND_TRIPS = {
    "csv": (KINDS, {"splits"}),
    "coco": (("masks", "boxes"), {"ignored pixels", "splits"}),
    "voc": (("masks", "boxes"), {"splits"}),
    "labelme": (("masks", "several classes", "boxes"), {"ignored pixels", "splits"}),
    "cvat": (("masks", "one class", "several classes", "boxes"), {"ignored pixels", "splits"}),
    "label_studio": (("masks", "one class", "several classes"), {"ignored pixels", "splits", "boxes"}),
    "yolo": (("masks", "boxes"), {"ignored pixels", "splits"}),
    "imagefolder": (("one class",), {"splits"}),
    "webdataset": (KINDS, set()),
    "parquet": (KINDS, set()),
    "arrayrecord": (KINDS, {"splits"}),
}
CASES = [(name, kind) for name, (kinds, _) in ROUND_TRIPS.items() for kind in kinds]


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_round_trip(datasets, tmp_path, name, kind):
    given = datasets[kind]
    if name == "arrayrecord":
        pytest.importorskip("array_record.python.array_record_module")
    exported = export(given, str(tmp_path / "out"), ExportOptions(to=name))
    assert exported["images"] == COUNT
    before, after = content(given), READERS[name](tmp_path / "out", tmp_path / "again", kind)
    # The keys are checksums of the images' bytes.
    assert after.keys() == before.keys()
    # A rectangle of LabelMe is a mask, and so is a box of YOLO where masks are read.
    lost = ROUND_TRIPS[name][1] | ({"boxes"} if kind == "masks" and name in ("cvat", "labelme", "yolo") else set())
    for image, parts in before.items():
        for part, value in parts.items():
            if part not in lost:
                assert after[image][part] == value, part
    assert {"boxes", "ignored pixels"} & set(exported["left_out"]) == (lost - {"splits"} if kind == "masks" else set())


@pytest.mark.parametrize(
    ("classes", "lost"),
    [
        (("0", "1", "2"), ""),
        (("2", "1"), ""),
        (("background", "3", "cat"), ""),
        (("void", "cat", "dog"), "'void'"),
        (("_background_", "background", "3", "ignored"), "'_background_', 'ignored'"),
    ],
)
def test_masks_of_voc_come_back_whatever_the_classes_are_called_or_are_refused(tmp_path, classes, lost):
    pixels = {name: np.zeros((HEIGHT, WIDTH), np.uint8) for name in classes}
    for i, name in enumerate(classes):
        pixels[name][i, : i + 2] = 1
    features = {f"image/segmentation/{name}/rle": ints(rle.encode(one).reshape(-1)) for name, one in pixels.items()}
    payload = encode_example({"image/encoded": picture(0, "png", (WIDTH, HEIGHT)), "image/key": b"0.png", **features})
    write_records(tmp_path / "records/a.tfrecord", [payload])
    run(reading(tmp_path / "records", "segmentation", classes=list(classes)), tmp_path / "ds", workers=1)
    if lost:
        with pytest.raises(UsageError, match=f"take {lost} for the background or ignored pixels"):
            export(ImageDataset.open(tmp_path / "ds"), str(tmp_path / "out"), ExportOptions(to="voc"))
        return
    export(ImageDataset.open(tmp_path / "ds"), str(tmp_path / "out"), ExportOptions(to="voc"))
    after = ingested(tmp_path / "out", tmp_path / "again", images="JPEGImages", labels=labels(tmp_path / "out"))
    assert ImageDataset.open(tmp_path / "again").manifest.classes == classes
    (row,) = after.values()
    assert row["masks"] == {name: one.astype(bool).tolist() for name, one in pixels.items()}


SIZES = {"upright": (8, 12), "square": (12, 12)}
ORIENTATIONS = range(2, 9)


def exif_of(orientation):
    exif = Image.Exif()
    exif[0x0112] = orientation
    return exif


def turned_mask(shape, i):
    """A mask that no turn leaves as it is, of the stored pixels."""
    pixels = np.zeros(SIZES[shape], np.uint8)
    pixels[1 + 3 * i : 3 + 3 * i, 2:7] = 1
    pixels[3 + 3 * i, 2 : 4 + i] = 1
    return pixels


def turned_record(orientation, shape, *, masks):
    """An image of a camera that was held otherwise; its masks and boxes are those of the stored pixels."""
    height, width = SIZES[shape]
    pixels = np.random.default_rng(orientation).integers(0, 256, (height, width, 3), dtype=np.uint8)
    file = io.BytesIO()
    kind = "png" if orientation % 2 else "jpeg"
    Image.fromarray(pixels).save(file, kind, exif=exif_of(orientation))
    found = {"image/encoded": file.getvalue(), "image/key": f"{shape}{orientation}.{kind}".encode()}
    edges = {"xmin": [0.125, 0.5], "ymin": [0.125, 0.5], "xmax": [0.625, 0.75], "ymax": [0.5, 0.875]}
    found |= {f"image/object/bbox/{side}": floats(values) for side, values in edges.items()}
    found["image/object/class/label"] = ints([1, 2])
    found["image/object/class/text"] = byte_strings([name.encode() for name in CLASSES[:2]])
    if masks:
        drawn = {name: turned_mask(shape, i) for i, name in enumerate(CLASSES[:2])}
        found |= {f"image/segmentation/{name}/rle": ints(rle.encode(mask).reshape(-1)) for name, mask in drawn.items()}
    else:
        found["image/class/text"] = found["image/object/class/text"]
    return encode_example(found)


@pytest.fixture(scope="module")
def turned(tmp_path_factory):
    """Datasets of images of every orientation, square and not."""
    found = {}
    for kind in ("masks", "boxes"):
        root = tmp_path_factory.mktemp(kind)
        each = [(orientation, shape) for orientation in ORIENTATIONS for shape in SIZES]
        write_records(root / "records/a.tfrecord", [turned_record(*one, masks=kind == "masks") for one in each])
        raw = reading(root / "records", "segmentation" if kind == "masks" else "classification", classes=CLASSES)
        run(raw, root / "ds", workers=1)
        found[kind] = ImageDataset.open(root / "ds")
    return found


@pytest.mark.parametrize("name", ["csv", "coco", "voc", "labelme", "yolo", "webdataset", "parquet"])
@pytest.mark.parametrize("kind", ["masks", "boxes"])
def test_annotations_of_turned_images_come_back(turned, tmp_path, name, kind):
    if name == "parquet":
        pytest.importorskip("pyarrow.parquet")
    export(turned[kind], str(tmp_path / "out"), ExportOptions(to=name))
    if name in ("webdataset", "parquet"):
        given = {"images": str(tmp_path / "out")}
        run({"task": turned[kind].manifest.task, "input": given}, tmp_path / "again", workers=1)
        after = content(ImageDataset.open(tmp_path / "again"))
    else:
        after = READERS[name](tmp_path / "out", tmp_path / "again", kind)
    lost = {"splits", "boxes"} if kind == "masks" and name in ("labelme", "yolo") else {"splits"}
    before = content(turned[kind])
    assert len(before) == len(ORIENTATIONS) * len(SIZES)
    for row in (*before.values(), *after.values()):
        for part in lost:
            row.pop(part, None)
    assert after == before


def test_tools_get_the_frame_that_they_display(turned, tmp_path):
    """Pillow turns the mask as it turns the image."""
    export(turned["masks"], str(tmp_path / "voc"), ExportOptions(to="voc"))
    export(turned["masks"], str(tmp_path / "coco"), ExportOptions(to="coco"))
    document = json.loads((tmp_path / "coco/annotations.json").read_text())
    images = {row["file_name"].partition(".")[0]: row for row in document["images"]}
    boxes = {(row["image_id"], row["category_id"]): row["bbox"] for row in document["annotations"]}
    for orientation in ORIENTATIONS:
        for shape in SIZES:
            values = turned_mask(shape, 0) + 2 * turned_mask(shape, 1)
            file = io.BytesIO()
            Image.fromarray(values).save(file, "png", exif=exif_of(orientation))
            displayed = np.asarray(ImageOps.exif_transpose(Image.open(file)))
            exported = Image.open(tmp_path / f"voc/SegmentationClass/{shape}{orientation}.png")
            assert np.array_equal(np.asarray(exported), displayed)
            image = images[f"{shape}{orientation}"]
            assert (image["height"], image["width"]) == displayed.shape
            # The first box, as pixels that are turned.
            height, width = SIZES[shape]
            corners = np.zeros((height * 8, width * 8), np.uint8)
            corners[height : height * 4, width : width * 5] = 1
            file = io.BytesIO()
            Image.fromarray(corners).save(file, "png", exif=exif_of(orientation))
            rows, columns = np.nonzero(np.asarray(ImageOps.exif_transpose(Image.open(file))))
            box = [columns.min(), rows.min(), columns.max() + 1 - columns.min(), rows.max() + 1 - rows.min()]
            assert boxes[image["id"], 1] == [number / 8 for number in box]


@pytest.mark.parametrize("name", ["coco", "labelme"])
def test_masks_as_polygons_come_back(datasets, tmp_path, name):
    given = datasets["masks"]
    export(given, str(tmp_path / "out"), ExportOptions(to=name, masks="polygons"))
    before, after = content(given), READERS[name](tmp_path / "out", tmp_path / "again", "masks")
    assert {image: parts["masks"] for image, parts in after.items()} == {
        image: parts["masks"] for image, parts in before.items()
    }
    if name == "coco":
        rows = json.loads((tmp_path / "out/annotations.json").read_text())["annotations"]
        assert all(isinstance(row["segmentation"], list) for row in rows if row["area"])
        assert all(after[image]["boxes"] == parts["boxes"] for image, parts in before.items())
    else:
        kinds = {
            shape["shape_type"]
            for file in (tmp_path / "out/images").rglob("*.json")
            for shape in json.loads(file.read_text())["shapes"]
        }
        assert kinds == {"polygon"}


def test_no_reader_takes_the_split_eval_for_test(tmp_path):
    """Hugging Face takes every file with `eval` in its name for a part of `test`."""
    write_records(tmp_path / "records/a.tfrecord", (encode_example(record(i, labels=[i % 3])) for i in range(6)))
    raw = reading(tmp_path / "records", classes=CLASSES)
    run({**raw, "split": {"ratios": {"train": 0.5, "eval": 0.5}}}, tmp_path / "ds", workers=1)
    names = set()
    for name in ("imagefolder", "parquet", "webdataset"):
        export(ImageDataset.open(tmp_path / "ds"), str(tmp_path / name), ExportOptions(to=name))
        names |= {path.name for path in (tmp_path / name).rglob("*")}
    assert {"val", "validation-00000-of-00001.parquet", "validation-000000.tar"} <= names
    assert not [name for name in names if "eval" in name]


def test_array_record_describes_shards_of_any_name(tmp_path, monkeypatch):
    module = SimpleNamespace(ArrayRecordWriter=lambda path, options: io.FileIO(path, "w"))
    monkeypatch.setattr(export_containers, "import_module", lambda name: module)
    write_records(tmp_path / "records/a.tfrecord", (encode_example(record(i, labels=[i % 3])) for i in range(6)))
    raw = {**reading(tmp_path / "records", classes=CLASSES), "split": {"ratios": {"train": 0.5, "eval": 0.5}}}
    run({**raw, "shards": {"filename_template": "{split}{index:02d}-{count}.tfrec"}}, tmp_path / "ds", workers=1)
    given = ImageDataset.open(tmp_path / "ds")
    export(given, str(tmp_path / "out"), ExportOptions(to="arrayrecord"))
    info = json.loads((tmp_path / "out/dataset_info.json").read_text())
    lengths = {shard.split: [str(shard.records)] for shard in given.manifest.shards}
    assert {split["name"]: split["shardLengths"] for split in info["splits"]} == lengths


def test_array_record_holds_the_records(datasets, tmp_path):
    module = pytest.importorskip("array_record.python.array_record_module")
    given = datasets["masks"]
    assert export(given, str(tmp_path / "out"), ExportOptions(to="arrayrecord"))["left_out"] == []
    info = json.loads((tmp_path / "out/dataset_info.json").read_text())
    assert info["fileFormat"] == "array_record"
    for split in info["splits"]:
        path = split["filepathTemplate"].replace("{SPLIT}", split["name"]).replace("{SHARD_X_OF_Y}", "00000-of-00001")
        read = module.ArrayRecordReader(str(tmp_path / "out" / path)).read_all()
        assert read == [payload for _, payload in given.records(split["name"])]
        assert split["shardLengths"] == [str(len(read))]


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        ("several classes", {"to": "yolo"}, "yolo cannot hold several classes an image, and the dataset has no boxes"),
        (
            "one class",
            {"to": "labelme"},
            r"cannot hold one class an image.*csv, arrayrecord, cvat, imagefolder, label_studio, parquet, web",
        ),
        (
            "masks",
            {"to": "voc", "masks": "polygons"},
            "--masks: polygons are for --to coco and --to labelme; yolo always",
        ),
        ("one class", {"to": "coco"}, "coco cannot hold one class an image, and the dataset has no boxes"),
        ("several classes", {"to": "imagefolder"}, "imagefolder cannot hold several classes an image"),
        ("masks", {"to": "coco", "masks": "png"}, "coco takes no options of the CSV, such as --table. Omit them"),
        ("masks", {"to": "coc"}, r"--to: 'coc' is not known. Use one of: csv, .*coco"),
    ],
)
def test_a_format_that_cannot_hold_it_is_refused(datasets, tmp_path, kind, options, message):
    with pytest.raises(UsageError, match=message):
        export(datasets[kind], str(tmp_path / "out"), ExportOptions(**options))
    assert not list(tmp_path.iterdir())


def test_nothing_is_lost_within_an_image(tmp_path):
    """Classes of one pixel in VOC, and a class without a box in a format of boxes."""
    overlapping = [record(i, masks=True) | {"image/segmentation/person/rle": ints([0, 120])} for i in range(6)]
    write_records(tmp_path / "a/records/a.tfrecord", map(encode_example, overlapping))
    run(reading(tmp_path / "a/records", "segmentation", classes=CLASSES), tmp_path / "a/ds", workers=1)
    with pytest.raises(CheckFailed, match=r"masks of two classes overlap.*--to coco"):
        export(ImageDataset.open(tmp_path / "a/ds"), str(tmp_path / "out"), ExportOptions(to="voc"))
    further = dataset(tmp_path / "b", labels=lambda number: [0, 1, 2], boxes=True)
    with pytest.raises(CheckFailed, match=r"its class '.*' has no box, and yolo holds boxes. Use --to csv"):
        export(further, str(tmp_path / "out"), ExportOptions(to="yolo"))
    assert {path.name for path in tmp_path.iterdir()} == {"a", "b"}


def test_the_command_names_what_is_left_out(datasets, tmp_path, capsys):
    call = ["export", datasets["masks"].root, "--out", str(tmp_path / "out"), "--to", "coco"]
    assert main(call) == 0
    text = capsys.readouterr().out
    assert "6 images, " in text
    assert "not exported, since coco cannot hold them: ignored pixels" in text
    assert main(call) == 0
    assert "they were there already" in capsys.readouterr().out


def test_the_page_has_the_table_of_round_trips():
    rows = []
    for name, (kinds, lost) in ROUND_TRIPS.items():
        cells = [
            "identical",
            *("identical" if kind in kinds else "–" for kind in ("one class", "several classes", "masks")),
            "–" if "masks" not in kinds else "lost" if "ignored pixels" in lost else "identical",
            "identical" if "boxes" in kinds else "lost" if "boxes" in lost else "–",
        ]
        rows.append(f"| `{name}` | {' | '.join(cells)} |")
    page = PAGE.read_text(encoding="utf-8")
    assert not [row for row in rows if row not in page], "\n".join(rows)
