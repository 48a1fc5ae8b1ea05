"""What contradicts the reading of an input stops the run, or costs the image with the true cause; nothing is cut."""

import json

import numpy as np
import pytest
from ingesting import config, examples, ledger, run
from PIL import Image

from shardwright.errors import CheckFailed, UsageError
from shardwright.ingest import ingest
from shardwright.masks.dialects import Dialect
from shardwright.masks.rle import encode

HEIGHT, WIDTH, COUNT = 24, 36, 12


@pytest.fixture
def images(tmp_path):
    """Twelve different images of 24x36; those with an even number say that they are to be turned by 90 degrees."""
    folder = tmp_path / "images"
    folder.mkdir()
    exif = Image.Exif()
    exif[0x0112] = 6
    for i in range(COUNT):
        pixels = np.random.default_rng(i).integers(0, 256, (HEIGHT, WIDTH, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / f"i{i:02}.jpg", **({} if i % 2 else {"exif": exif}))
    return folder


def mask(number, height=HEIGHT, width=WIDTH):
    drawn = np.zeros((height, width), np.uint8)
    drawn[2 + number % 4 : 9 + number % 4, 3 : 11 + number % 3] = 1
    return drawn


def table(images, header, row, dialect=None):
    """Writes a table of run lengths; `row` is called with the image's name, its code and its number."""
    dialect = dialect or Dialect()
    lines = [row(f"i{i:02}.jpg", dialect.format(encode(mask(i)), height=HEIGHT, width=WIDTH), i) for i in range(COUNT)]
    file = images.parent / "masks.csv"
    file.write_text("\n".join([header, *lines]) + "\n")
    return {"input": {"images": str(images), "labels": {"path": str(file), "orientation": "stored"}}}


def drawn(root):
    found = examples(root)
    return {
        int(key[1:3]): example[next(name for name in example if name.endswith("/rle"))].tolist()
        for key, example in found.items()
    }


def truth():
    return {i: encode(mask(i)).reshape(-1).tolist() for i in range(COUNT)}


def test_a_start_of_0_contradicts_a_header_whose_starts_count_from_1(tmp_path, images):
    """One start in the last row is enough: all other masks would be one pixel off."""
    base0 = Dialect(base=0)
    raw = table(images, "ImageId,EncodedPixels", lambda name, code, i: f"{name},{'0 3 ' * (i == 11)}{code}", base0)
    with pytest.raises(UsageError, match=r"1 row has a start of 0 \(the first is row 13\)") as error:
        run(raw, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    assert [reading.options for reading in error.value.readings] == [
        {"input.labels.rle.start": 0},
        {"input.labels.rle.start": 1},
    ]
    raw["input"]["labels"]["rle"] = {"start": 0}
    run(raw, tmp_path / "out")
    assert drawn(tmp_path / "out") == {**truth(), 11: [0, 3, *truth()[11]]}


def test_a_start_of_0_anywhere_is_evidence_where_no_header_states_the_contrary(tmp_path, images):
    base0 = Dialect(base=0)
    raw = table(images, "photo_name,rle", lambda name, code, i: f"{name},{'0 3 ' * (i == 11)}{code}", base0)
    raw["input"]["labels"] |= {"columns": {"image": "photo_name"}, "rle": {"order": "column"}}
    run(raw, tmp_path / "out")
    assert drawn(tmp_path / "out")[3] == truth()[3]


@pytest.mark.parametrize("names", ["Height,Width", "img_height,img_width", "image_height,image_width"])
@pytest.mark.parametrize(
    ("stated", "code"), [("48,72", "size_mismatch"), ("24,36", None), ("0,0", None), ("-1,-1", None), (",", None)]
)
def test_a_size_that_a_table_of_run_lengths_states_is_compared(tmp_path, images, names, stated, code):
    raw = table(images, f"ImageId,EncodedPixels,{names}", lambda name, text, i: f"{name},{text},{stated}")
    if code is None:
        run(raw, tmp_path / "out")
        assert drawn(tmp_path / "out") == truth()
        return
    with pytest.raises(CheckFailed, match=rf"{code} 12\).*\n.*the image has 48x72 .height x width. there"):
        run(raw, tmp_path / "out")


def test_a_stated_size_says_which_frame_run_lengths_are_in(tmp_path, images):
    raw = table(images, "ImageId,EncodedPixels,Height,Width", lambda name, text, i: f"{name},{text},{HEIGHT},{WIDTH}")
    raw["input"]["labels"]["orientation"] = "auto"
    run(raw, tmp_path / "out")
    assert drawn(tmp_path / "out") == truth()


def test_a_key_that_fits_two_images_is_an_error(tmp_path, images):
    for name in ("scan_1", "scan_1_left"):
        (images / f"{name}.jpg").write_bytes((images / "i00.jpg").read_bytes())
    file = tmp_path / "masks.csv"
    file.write_text("Image_Label,EncodedPixels\nscan_1_left_lung,1 3\n")
    raw = {"input": {"images": str(images), "labels": {"path": str(file)}}}
    with pytest.raises(UsageError, match=r"'scan_1_left_lung' may be .* class 'lung' or .* class 'left_lung'"):
        run(raw, tmp_path / "out")


def coco(images, polygon, **size):
    document = {
        "images": [{"id": i, "file_name": f"i{i:02}.jpg", **size} for i in range(COUNT)],
        "annotations": [{"image_id": i, "category_id": 1, "segmentation": [polygon]} for i in range(COUNT)],
        "categories": [{"id": 1, "name": "cat"}],
    }
    file = images.parent / "coco.json"
    file.write_text(json.dumps(document))
    return {"input": {"images": str(images), "labels": {"path": str(file)}}}


def test_an_outline_that_fits_the_turned_image_alone_is_a_contradiction_of_the_orientation(tmp_path, images):
    """Label Studio states the stored size of a turned photograph, and draws on the displayed one."""
    for i in range(1, COUNT, 2):
        (images / f"i{i:02}.jpg").write_bytes((images / f"i{i - 1:02}.jpg").read_bytes() + b"\0" * i)
    raw = coco(images, [2, 26, 20, 26, 20, 34, 2, 34], height=HEIGHT, width=WIDTH)
    with pytest.raises(CheckFailed, match=r"(?s)beyond_image 12.*fits the image turned by 90 degrees"):
        run(raw, tmp_path / "out")
    raw["input"]["labels"]["orientation"] = "displayed"
    run(raw, tmp_path / "out")
    example = examples(tmp_path / "out")["i00.jpg"]
    assert example["image/segmentation/cat/area"].tolist() == [18 * 8]


@pytest.mark.parametrize(
    "size", [{"height": -1, "width": -1}, {"height": 0, "width": 0}, {}, {"height": "24", "width": 36.0}]
)
def test_a_size_that_a_tool_did_not_know_is_unknown(tmp_path, images, size):
    raw = coco(images, [2, 2, 20, 2, 20, 10, 2, 10], **size)
    run(raw, tmp_path / "out")
    assert len(examples(tmp_path / "out")) == COUNT


@pytest.mark.parametrize("clip", [False, True])
def test_an_outline_beyond_the_image_costs_the_image_or_is_clipped_on_request(tmp_path, images, clip):
    raw = coco(images, [-9, 2, 20, 2, 20, 10, -9, 10])
    if clip:
        raw["input"]["labels"]["beyond_image"] = "clip"
        run(raw, tmp_path / "out")
        assert examples(tmp_path / "out")["i01.jpg"]["image/segmentation/cat/area"].tolist() == [20 * 8]
        return
    with pytest.raises(CheckFailed, match=r"(?s)beyond_image 12.*from x -9 to 20"):
        ingest(config(raw), tmp_path / "out", quiet=True)
    assert not (tmp_path / "out").exists()


def test_one_box_of_another_size_of_the_image_is_in_the_ledger(tmp_path, images):
    rows = [f"i{i:02}.jpg,{2 + 40 * (i == 5)},2,{10 + 40 * (i == 5)},12,cat" for i in range(COUNT)]
    file = tmp_path / "boxes.csv"
    file.write_text("\n".join(["image,xmin,ymin,xmax,ymax,label", *rows]) + "\n")
    labels = {"path": str(file), "boxes": True, "orientation": "stored"}
    raw = {
        "task": "classification",
        "input": {"images": str(images), "labels": labels},
        "rejects": {"max_fraction": 0.2},
    }
    run(raw, tmp_path / "out")
    assert {key: row.code for key, row in ledger(tmp_path / "out").items() if row.code} == {"i05.jpg": "beyond_image"}


@pytest.mark.parametrize("header", ["x_center,y_center,width,height", "cx,cy,w,h"])
def test_boxes_by_their_center(tmp_path, images, header):
    file = tmp_path / "boxes.csv"
    rows = [f"i{i:02}.jpg,cat,18,12,10,4" for i in range(COUNT)]
    file.write_text("\n".join([f"image,label,{header}", *rows]) + "\n")
    labels = {"path": str(file), "boxes": True, "orientation": "stored"}
    run({"task": "classification", "input": {"images": str(images), "labels": labels}}, tmp_path / "out")
    example = examples(tmp_path / "out")["i01.jpg"]
    edges = [example[f"image/object/bbox/{side}"].tolist()[0] for side in ("xmin", "ymin", "xmax", "ymax")]
    np.testing.assert_allclose(edges, [13 / 36, 10 / 24, 23 / 36, 14 / 24], rtol=1e-6)


def labelme(images, shapes):
    for i in range(COUNT):
        document = {"imagePath": f"i{i:02}.jpg", "shapes": [*shapes], "flags": {}}
        (images / f"i{i:02}.json").write_text(json.dumps(document))
    return {"input": {"images": str(images), "labels": {"path": str(images), "orientation": "stored"}}}


def rectangle(label, left, top, right, bottom):
    return {"label": label, "shape_type": "rectangle", "points": [[left, top], [right, bottom]]}


def outline(label, left, top, right, bottom):
    points = [[left, top], [right, top], [right, bottom], [left, bottom]]
    return {"label": label, "shape_type": "polygon", "points": points}


def test_a_hole_and_an_ignored_region_are_no_classes(tmp_path, images):
    """As labelme2voc draws them: in their order, each over those before it."""
    shapes = [
        outline("car", 2, 2, 12, 10),
        outline("_background_", 4, 4, 8, 7),
        outline("__ignore__", 20, 2, 28, 6),
        outline("car", 7, 4, 8, 7),
    ]
    manifest = run(labelme(images, shapes), tmp_path / "out")
    assert manifest.classes == ("car",)
    example = examples(tmp_path / "out")["i01.jpg"]
    assert example["image/segmentation/car/area"].tolist() == [10 * 8 - 4 * 3 + 3]
    assert example["image/segmentation/ignore/area"].tolist() == [8 * 4]


def test_a_name_of_the_background_is_a_class_where_the_configuration_says_so(tmp_path, images):
    raw = labelme(images, [outline("car", 2, 2, 12, 10), outline("background", 4, 4, 8, 7)])
    raw["input"]["classes"] = ["car", "background"]
    manifest = run(raw, tmp_path / "out")
    assert manifest.classes == ("car", "background")
    example = examples(tmp_path / "out")["i01.jpg"]
    assert example["image/segmentation/car/area"].tolist() == [80]


@pytest.mark.parametrize("name", ["background", "_background_", "void", "Ignore"])
def test_a_category_of_coco_that_means_the_background_is_no_class(tmp_path, images, name):
    raw = coco(images, [2, 2, 20, 2, 20, 10, 2, 10])
    file = images.parent / "coco.json"
    document = json.loads(file.read_text())
    document["categories"].append({"id": 0, "name": name})
    document["annotations"] += [
        {"image_id": i, "category_id": 0, "segmentation": [[2, 2, 6, 2, 6, 10, 2, 10]]} for i in range(COUNT)
    ]
    file.write_text(json.dumps(document))
    raw["input"]["labels"]["orientation"] = "stored"
    manifest = run(raw, tmp_path / "out")
    assert manifest.classes == ("cat",)
    example = examples(tmp_path / "out")["i01.jpg"]
    erased = name.strip("_") == "background"
    assert example["image/segmentation/cat/area"].tolist() == [18 * 8 - 4 * 8 * erased]
    assert ("image/segmentation/ignore/area" in example) is not erased


def test_a_region_without_a_class_costs_its_image(tmp_path, images):
    def result(labels):
        value = {"points": [[10, 10], [50, 10], [50, 50]], "polygonlabels": labels}
        size = {"original_height": HEIGHT, "original_width": WIDTH}
        return {"type": "polygonlabels", "value": value, "to_name": "image", "from_name": "label", **size}

    tasks = [
        {"id": i, "data": {"image": f"i{i:02}.jpg"}, "annotations": [{"result": [result(["car"] if i != 2 else [])]}]}
        for i in range(COUNT)
    ]
    file = tmp_path / "project.json"
    file.write_text(json.dumps(tasks))
    raw = {"input": {"images": str(images), "labels": {"path": str(file), "orientation": "stored"}}}
    run({**raw, "rejects": {"max_fraction": 0.2}}, tmp_path / "out")
    assert {key: row.code for key, row in ledger(tmp_path / "out").items() if row.code} == {"i02.jpg": "bad_object"}


@pytest.mark.parametrize("masks", [False, True])
def test_a_table_without_a_header_loses_no_row(tmp_path, images, masks):
    file = tmp_path / "labels.csv"
    what = [
        Dialect().format(encode(mask(i)), height=HEIGHT, width=WIDTH) if masks else "cat dog".split()[i % 2]
        for i in range(COUNT)
    ]
    file.write_text("".join(f"i{i:02}.jpg,{what[i]}\n" for i in range(COUNT)))
    labels = {"path": str(file), **({"orientation": "stored", "rle": {"order": "column"}} if masks else {})}
    task = "segmentation" if masks else "classification"
    manifest = run({"task": task, "input": {"images": str(images), "labels": labels}}, tmp_path / "out")
    assert manifest.totals["written"] == COUNT
    if masks:
        assert drawn(tmp_path / "out") == truth()
    else:
        assert manifest.classes == ("cat", "dog")


@pytest.mark.parametrize("header", ["encoding", "encodings", "pixels"])
def test_a_column_of_run_lengths_under_another_name_is_asked_for(tmp_path, images, header):
    two = "".join(f" {300 + 30 * k} 3" for k in range(3))
    raw = table(images, f"ImageId,{header}", lambda name, code, i: f"{name},{code}{two}")
    with pytest.raises(UsageError) as error:
        run(raw, tmp_path / "out")
    options = error.value.readings[0].options
    assert options == {"task": "segmentation", "input.labels.columns.mask": header}
    raw["input"]["labels"]["columns"] = {"mask": header}
    raw["input"]["labels"]["rle"] = {"order": "column"}
    assert run(raw, tmp_path / "out").totals["written"] == COUNT
