"""Pascal VOC through the whole ingest: masks, ignored borders, boxes and lists; what is broken is in the ledger."""

import os

import numpy as np
import pytest
from guarded import guarded
from ingesting import changed, config, examples, ledger, run, tree
from PIL import Image

from shardwright.dataset.reader import ImageDataset
from shardwright.errors import CheckFailed, ConfigError, UsageError
from shardwright.ingest import IngestRecipe, locate, survey_input
from shardwright.masks import rle

IMAGES, SHAPE = 24, (21, 30)
CAT, DOG = 8, 12
# As in the development kit: the bits of an index go round red, green and blue.
PALETTE = [sum((i >> (3 * bit + part) & 1) << (7 - bit) for bit in range(8)) for i in range(256) for part in range(3)]


def drawn(number):
    random = np.random.default_rng([4, number])
    return np.kron(random.choice(np.array([0, CAT, DOG, 255], np.uint8), (7, 6)), np.ones((3, 5), np.uint8))


def things(number):
    """Name and 1-based inclusive corners: the last pixels belong to the box."""
    return [("cat", 1, 1, 30, 21), ("dog", 4, 7, 4, 9 + number % 3)][: number % 3]


def xml(number, size=SHAPE, objects=None):
    parts = [
        f"<object><name>{name}</name><difficult>1</difficult><bndbox><xmin>{a}</xmin><ymin>{b}</ymin>"
        f"<xmax>{c}</xmax><ymax>{d}</ymax></bndbox></object>"
        for name, a, b, c, d in (things(number) if objects is None else objects)
    ]
    return f"<annotation><size><width>{size[1]}</width><height>{size[0]}</height></size>{''.join(parts)}</annotation>"


@pytest.fixture
def voc(tmp_path, image_input):
    """24 images in VOC's tree; returns configuration and tree."""
    raw = image_input(tmp_path / "in", images=IMAGES)
    root = tmp_path / "in" / "VOC2012"
    for folder in ("SegmentationClass", "Annotations", "ImageSets/Segmentation"):
        (root / folder).mkdir(parents=True)
    (tmp_path / "in" / "images").rename(root / "JPEGImages")
    for number in range(IMAGES):
        file = root / "JPEGImages" / f"{number:03d}.jpg"
        Image.open(file).resize(SHAPE[::-1]).save(file)
        mask = Image.fromarray(drawn(number))
        mask.putpalette(PALETTE)
        mask.save(root / "SegmentationClass" / f"{number:03d}.png")
        (root / "Annotations" / f"{number:03d}.xml").write_text(xml(number))
    lists = {"train": range(16), "val": range(16, 23), "trainval": range(23)}
    for name, numbers in lists.items():
        text = "".join(f"{number:03d}\n" for number in numbers)
        (root / "ImageSets/Segmentation" / f"{name}.txt").write_text(text)
    raw = changed(raw, images=str(root / "JPEGImages"), labels={"path": str(root)}, classes=None)
    # The lists name 23 of the 24 images, which would be a question.
    return {**raw, "split": {"method": "hash"}}, root


def exif(orientation):
    """A TIFF block with one tag."""
    return b"MM\0*\0\0\0\x08" + b"\0\x01" + b"\x01\x12\0\x03\0\0\0\x01" + bytes([0, orientation, 0, 0]) + bytes(4)


def sides(height, width):
    return (("xmin", width), ("ymin", height), ("xmax", width), ("ymax", height))


def check_masks(out, classes):
    found = examples(out)
    for number in range(IMAGES):
        example = found[f"{number:03d}.jpg"]
        for name, value in {**classes, "ignore": 255}.items():
            runs = rle.from_flat(example[f"image/segmentation/{name}/rle"])
            assert np.array_equal(rle.draw(runs, *SHAPE), drawn(number) == value)
    return found


def test_masks_borders_and_boxes(tmp_path, voc):
    raw, _ = voc
    notes = []
    manifest = run(raw, tmp_path / "out", log=notes.append)
    assert [note for note in notes if "no image of" not in note] == [
        "labels: pascal_voc, since VOC2012 is a folder that holds SegmentationClass",
        "classes: the twenty of Pascal VOC, since the masks have its palette; input.classes names others",
        "splits: ImageSets/Segmentation lists train, val",
        "split: 10 images are in another split than the input states, since split.method is hash",
    ]
    assert len(manifest.classes) == 20
    assert manifest.features["image/object/bbox/xmin"] == "float32"
    found = check_masks(tmp_path / "out", {"cat": CAT, "dog": DOG})
    for number in range(IMAGES):
        example = {name.removeprefix("image/object/"): v for name, v in found[f"{number:03d}.jpg"].items()}
        boxes = things(number)
        if not boxes:
            assert not any(name.startswith("bbox") for name in example)
            continue
        assert example["class/text"] == [name.encode() for name, *_ in boxes]
        assert example["class/label"].tolist() == [{"cat": CAT, "dog": DOG}[name] for name, *_ in boxes]
        assert example["difficult"].tolist() == [1] * len(boxes)
        assert example["truncated"].tolist() == [0] * len(boxes)
        rows = np.stack([example[f"bbox/{side}"] for side in ("xmin", "ymin", "xmax", "ymax")], axis=1)
        truth = [[(a - 1) / 30, (b - 1) / 21, c / 30, d / 21] for _, a, b, c, d in boxes]
        assert np.array_equal(rows, np.array(truth, np.float32))


def test_an_xml_file_of_twenty_gigabytes_is_not_read(tmp_path, voc):
    raw, root = voc
    os.truncate(root / "Annotations" / "000.xml", 20 << 30)
    with guarded():
        run({**raw, "rejects": {"max_fraction": 0.1}}, tmp_path / "out")
    row = ledger(tmp_path / "out")["000.jpg"]
    assert (row.code, "21,474,836,480 bytes" in row.reason) == ("bad_object", True)


def test_the_palettes_colors_do_as_well(tmp_path, voc):
    raw, root = voc
    run(raw, tmp_path / "indices")
    for number in range(IMAGES):
        file = root / "SegmentationClass" / f"{number:03d}.png"
        Image.open(file).convert("RGB").save(file)
    run(raw, tmp_path / "colors")
    assert examples(tmp_path / "indices").keys() == check_masks(tmp_path / "colors", {"cat": CAT, "dog": DOG}).keys()


def test_detected_classes_and_the_same_given_make_one_dataset(tmp_path, voc):
    raw, _ = voc
    detected = run(raw, tmp_path / "detected")
    run(changed(raw, classes=list(detected.classes)), tmp_path / "given", workers=2)
    assert tree(tmp_path / "detected") == tree(tmp_path / "given")


def test_classes_of_ones_own(tmp_path, voc):
    raw, root = voc
    for number in range(IMAGES):
        (root / "Annotations" / f"{number:03d}.xml").write_text(xml(number, objects=[("zebra", 1, 1, 2, 2)]))
    with pytest.raises(ConfigError, match="Annotations/000.xml names 'zebra', which is not one of Pascal VOC's twenty"):
        run(raw, tmp_path / "out")
    with pytest.raises(UsageError, match="Annotations/000.xml: the class 'zebra' is not in input.classes"):
        run(changed(raw, classes={"cat": CAT, "dog": DOG}), tmp_path / "out")
    manifest = run(changed(raw, classes={"zebra": CAT, "dog": DOG}), tmp_path / "out")
    assert manifest.classes == ("zebra", "dog")
    found = check_masks(tmp_path / "out", {"zebra": CAT, "dog": DOG})
    assert found["003.jpg"]["image/object/class/label"].tolist() == [1]


def test_what_is_wrong_is_in_the_ledger(tmp_path, voc):
    raw, root = voc
    annotations, masks = root / "Annotations", root / "SegmentationClass"
    (annotations / "001.xml").write_text(xml(1, size=(30, 21), objects=[("cat", 1, 1, 2, 2)]))
    (annotations / "002.xml").write_text(xml(2, objects=[("cat", 1, 1, 2, 2), ("dog", 40, 1, 50, 2)]))
    (annotations / "003.xml").write_text("<!DOCTYPE a [<!ENTITY b SYSTEM 'file:///etc/passwd'>]><annotation/>")
    (annotations / "004.xml").write_text(xml(4)[:-4])
    (annotations / "nobody.xml").write_text(xml(1))
    (masks / "005.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    (masks / "006.png").unlink()
    (annotations / "007.xml").unlink()
    for ending in ("bmp", "tif"):
        Image.fromarray(drawn(8)).save(masks / f"008.{ending}")
    with pytest.raises(CheckFailed, match="1 of 24 images have no row in VOC2012: 006.jpg"):
        run(raw, tmp_path / "out")
    manifest = run(changed(raw, unlisted_images="reject"), tmp_path / "out")
    rows = ledger(tmp_path / "out")
    assert {key: row.code for key, row in rows.items() if row.status == "rejected"} == {
        "001.jpg": "size_mismatch",
        "002.jpg": "beyond_image",
        "003.jpg": "bad_xml",
        "004.jpg": "bad_xml",
        "005.jpg": "bad_mask",
        "006.jpg": "unlisted",
        "008.jpg": "two_masks",
        "Annotations/nobody.xml": "missing_image",
    }
    assert manifest.totals["written"] == IMAGES - 7
    assert rows["008.jpg"].reason == (
        "SegmentationClass/008.bmp and SegmentationClass/008.png are both its mask; remove one"
    )
    assert rows["001.jpg"].reason == (
        "VOC2012: the image has 30x21 (height x width) there, but the file has 21x30; were the annotations drawn on "
        "the turned image?"
    )
    assert rows["002.jpg"].reason.startswith(
        "Annotations/002.xml, object 2: the box reaches from x 39 to 50 and from y 0 to 2, beyond the image of 21x30"
    )
    assert not any(str(tmp_path) in row.reason for row in rows.values())


def test_lists_define_splits(voc):
    raw, root = voc
    parsed = config(raw)
    splits = survey_input(IngestRecipe.of(parsed), locate(parsed)).survey.splits
    assert [splits.get(i) for i in range(IMAGES)] == ["train"] * 16 + ["val"] * 7 + [None]
    run({**raw, "split": {"method": "predefined", "unlisted_images": "test"}}, out := root.parent / "out")
    dataset = ImageDataset.open(out)
    keys = {split: sorted(key for key, _ in dataset.records(split)) for split in dataset.splits}
    assert (len(keys["train"]), len(keys["eval"]), keys["test"]) == (16, 7, ["023.jpg"])
    (root / "ImageSets/Segmentation/test.txt").write_text("022\nno-image\n")
    survey = survey_input(IngestRecipe.of(parsed), locate(parsed)).survey
    assert 22 not in survey.splits
    assert "splits: 1 image is in two lists: 022.jpg, test, val" in survey.notes


@pytest.mark.parametrize("frame", ["displayed", "stored"])
def test_masks_and_boxes_of_a_turned_image_are_turned_back(tmp_path, voc, frame):
    raw, root = voc
    file = root / "JPEGImages/002.jpg"
    if frame == "displayed":
        Image.open(file).transpose(Image.Transpose.ROTATE_90).save(file, exif=b"Exif\0\0" + exif(6))
    else:
        Image.open(file).save(file, exif=b"Exif\0\0" + exif(6))
    run(raw, tmp_path / "out")
    example = examples(tmp_path / "out")["002.jpg"]
    height, width = SHAPE if frame == "stored" else SHAPE[::-1]
    assert (example["image/height"][0], example["image/width"][0]) == (height, width)
    truth = drawn(2) if frame == "stored" else np.rot90(drawn(2))
    for name, value in (("cat", CAT), ("dog", DOG), ("ignore", 255)):
        runs = rle.from_flat(example[f"image/segmentation/{name}/rle"])
        assert np.array_equal(rle.draw(runs, height, width), truth == value)
    _, a, b, c, d = things(2)[1]
    edges = (a - 1, b - 1, c, d) if frame == "stored" else (b - 1, 30 - c, d, 30 - a + 1)
    found = [example[f"image/object/bbox/{side}"][1] * size for side, size in sides(height, width)]
    assert found == pytest.approx(edges, abs=1e-4)


def test_boxes_and_lists_are_content(tmp_path, voc):
    raw, root = voc
    first = run(raw, tmp_path / "first")
    (root / "Annotations/001.xml").write_text(xml(1).replace("<xmin>1<", "<xmin>2<"))
    assert run(raw, tmp_path / "second").fingerprint != first.fingerprint


def test_masks_that_are_images_are_no_text(tmp_path, voc):
    raw, _ = voc
    with pytest.raises(ConfigError, match="rle_text keeps masks as text, and these are images"):
        run({**raw, "features": {"preset": "rle_text"}}, tmp_path / "out")


def test_without_masks_there_is_nothing_to_segment(tmp_path, voc):
    raw, root = voc
    (root / "SegmentationClass").rename(root / "Other")
    labels = {"format": "pascal_voc", "path": str(root)}
    with pytest.raises(UsageError, match="input.labels.path: .*SegmentationClass does not exist"):
        run(changed(raw, labels=labels), tmp_path / "out")


def regrey(root, palette=None, numbers=range(IMAGES)):
    """Writes the masks as plain values, or with another palette."""
    for number in numbers:
        mask = Image.fromarray(drawn(number))
        if palette is not None:
            mask.putpalette(palette)
        mask.save(root / "SegmentationClass" / f"{number:03d}.png")


@pytest.mark.parametrize("palette", [None, [c for i in range(256) for c in (i, 255 - i, 7)]], ids=["gray", "own"])
def test_values_without_vocs_palette_get_no_names_of_voc(tmp_path, voc, palette):
    raw, root = voc
    for file in (root / "Annotations").iterdir():
        file.unlink()
    regrey(root, palette)
    notes = []
    manifest = run(raw, tmp_path / "out", log=notes.append)
    assert manifest.classes == (str(CAT), str(DOG))
    check_masks(tmp_path / "out", {str(CAT): CAT, str(DOG): DOG})
    assert any("do not have Pascal VOC's palette" in note for note in notes)
    assert not any("twenty" in note for note in notes)


@pytest.mark.parametrize("values", [{}, {255: 0}, {CAT: 255, DOG: 255}], ids=["ignored", "no border", "white alone"])
def test_detected_values_and_the_same_given_make_one_dataset(tmp_path, voc, values):
    raw, root = voc
    for file in (root / "Annotations").iterdir():
        file.unlink()
    for number in range(IMAGES):
        mask = drawn(number)
        for before, after in values.items():
            mask[mask == before] = after
        Image.fromarray(mask).save(root / "SegmentationClass" / f"{number:03d}.png")
    detected = run(raw, tmp_path / "detected", workers=1)
    run(changed(raw, classes=list(detected.classes)), tmp_path / "given", workers=1)
    assert tree(tmp_path / "detected") == tree(tmp_path / "given")


def test_names_of_boxes_and_plain_values_are_not_guessed_together(tmp_path, voc):
    raw, root = voc
    regrey(root)
    with pytest.raises(ConfigError, match=r"input.classes: missing.*names 'cat'.*without Pascal VOC's palette"):
        run(raw, tmp_path / "out")


def test_masks_with_and_without_the_palette_are_not_named_alike(tmp_path, voc):
    raw, root = voc
    regrey(root, numbers=range(3))
    with pytest.raises(ConfigError, match=r"input.classes: missing.* 3 of 24 masks.*000.png"):
        run(raw, tmp_path / "out")


def test_colors_that_are_not_vocs_are_not_named(tmp_path, voc):
    raw, root = voc
    for number in range(IMAGES):
        pixels = np.dstack([drawn(number), drawn(number) * 0 + 9, drawn(number)])
        Image.fromarray(pixels).save(root / "SegmentationClass" / f"{number:03d}.png")
        (root / "Annotations" / f"{number:03d}.xml").unlink()
    with pytest.raises(ConfigError, match="holds colors"):
        run(raw, tmp_path / "out")
