"""No file is an image and a mask at once, wherever the masks are."""

import numpy as np
import pytest
from ingesting import examples, run
from PIL import Image

from shardwright.config import load_config
from shardwright.errors import CheckFailed, UsageError
from shardwright.ingest import ingest
from shardwright.masks import rle
from shardwright.pipelines.cli import main

SHAPE = (12, 10)
NUMBERS = range(6)


def drawn(number):
    mask = np.zeros(SHAPE, np.uint8)
    mask[number : number + 4, 2:7] = 1
    return mask


def save(file, pixels):
    file.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(file)


def photograph(number):
    return np.random.default_rng(number).integers(0, 256, (*SHAPE, 3), dtype=np.uint8)


def write(root, image, mask):
    """Images and masks by their name's pattern."""
    for number in NUMBERS:
        save(root / image.format(number), photograph(number))
        save(root / mask.format(number), drawn(number))


def reading(root, images="", labels="", **options):
    given = {"path": str(root / labels), **options.pop("labels_options", {})}
    return {"task": "segmentation", "input": {"images": str(root / images), "labels": given, **options}}


def check(out, raw, keys, notes="masks, not images"):
    messages = []
    manifest = run(raw, out, workers=1, log=messages.append)
    found = examples(out)
    assert sorted(found) == sorted(keys)
    assert manifest.classes == ("1",)
    assert manifest.totals["inputs"] == len(keys)
    for number, key in enumerate(keys):
        runs = rle.from_flat(found[key]["image/segmentation/1/rle"])
        assert np.array_equal(rle.draw(runs, *SHAPE), drawn(number)), key
    assert any(notes in note for note in messages)


@pytest.mark.parametrize(
    ("image", "mask"),
    [
        ("{}.png", "{}_mask.png"),
        ("{}.jpg", "{}_mask.png"),
        ("{}.jpg", "{}.png"),
        ("{}_img.png", "{}_gt.png"),
        ("{}_sat.jpg", "{}_mask.png"),
        ("{:03d}_HC.png", "{:03d}_HC_Annotation.png"),
        ("a/{}_leftImg8bit.png", "a/{}_gtFine_labelIds.png"),
        ("x/{}.jpg", "x/{}--av.png"),
    ],
)
def test_pairs_in_one_folder(tmp_path, image, mask):
    write(tmp_path / "in", image, mask)
    check(tmp_path / "out", reading(tmp_path / "in"), [image.format(number) for number in NUMBERS])


@pytest.mark.parametrize("ending", ["jpg", "png"])
def test_pairs_by_a_pattern_leave_no_mask_as_an_empty_image(tmp_path, ending):
    write(tmp_path / "in", f"{{}}.{ending}", "{}-drawn.png")
    Image.fromarray(drawn(0)).save(tmp_path / "in" / "99-drawn.png")  # The mask of an image that is missing.
    raw = reading(tmp_path / "in", labels_options={"regex": "(?P<image>.+)-drawn"}, unlisted_images="empty")
    check(tmp_path / "out", raw, [f"{number}.{ending}" for number in NUMBERS])


def test_an_image_without_a_mask_is_an_image(tmp_path):
    write(tmp_path / "in", "{}.png", "{}_mask.png")
    save(tmp_path / "in/x.png", photograph(9))
    run(reading(tmp_path / "in", unlisted_images="empty"), tmp_path / "out", workers=1)
    assert set(examples(tmp_path / "out")) == {"x.png", *(f"{number}.png" for number in NUMBERS)}


def test_masks_in_a_folder_next_to_the_images(tmp_path):
    write(tmp_path / "in", "img/{}.png", "masks/{}.png")
    raw = reading(tmp_path / "in", "img", classes=["masks"])
    manifest = run(raw, tmp_path / "out", workers=1)
    assert manifest.classes == ("masks",)
    assert manifest.totals["written"] == len(NUMBERS)
    assert run(reading(tmp_path / "in", "img"), tmp_path / "detected", workers=1).classes == ("masks",)


def test_masks_below_the_images(tmp_path):
    write(tmp_path / "in", "{}.png", "masks/{}.png")
    run(reading(tmp_path / "in", "", "masks"), tmp_path / "out", workers=1)
    assert len(examples(tmp_path / "out")) == len(NUMBERS)


def test_one_folder_without_pairs_is_refused(tmp_path):
    for number in NUMBERS:
        save(tmp_path / "in" / f"{number}.png", photograph(number)[..., 0] // 128)
    with pytest.raises(UsageError, match=r"images and masks are in one folder(.|\n)*regex"):
        run(reading(tmp_path / "in"), tmp_path / "out", workers=1)


def test_a_pattern_that_finds_an_image_as_its_own_mask_is_refused(tmp_path):
    for number in NUMBERS:
        save(tmp_path / "in" / f"{number}.png", photograph(number)[..., 0] // 128)
    with pytest.raises(UsageError, match=r"input.labels.regex"):
        run(reading(tmp_path / "in", labels_options={"regex": "(?P<image>.+)"}), tmp_path / "out", workers=1)


def test_a_tree_of_pascal_voc_given_as_the_images(tmp_path):
    write(tmp_path / "VOC", "JPEGImages/{}.jpg", "SegmentationClass/{}.png")
    write(tmp_path / "VOC", "JPEGImages/{}.jpg", "SegmentationObject/{}.png")
    raw = reading(tmp_path / "VOC", classes=["1"], unlisted_images="empty")
    check(tmp_path / "out", raw, [f"JPEGImages/{number}.jpg" for number in NUMBERS])


def test_masks_of_no_image_lead_to_the_pattern_of_masks(tmp_path):
    write(tmp_path / "in", "img/{}-photo.png", "masks/0{}drawn.png")
    raw = reading(tmp_path / "in", "img", "masks")
    with pytest.raises(CheckFailed, match=r"input\.labels\.regex .*, and input\.labels\.key_regex that of the image"):
        run(raw, tmp_path / "out", workers=1)
    raw["input"]["labels"] |= {"regex": r"0(?P<image>\d+)drawn", "key_regex": r"(\d+)-photo"}
    assert run(raw, tmp_path / "out", workers=1).totals["rejected"] == 0


def test_a_folder_of_objects_for_each_image(tmp_path, monkeypatch):
    """The layout of the Data Science Bowl 2018."""
    monkeypatch.chdir(tmp_path)
    for number in NUMBERS:
        save(tmp_path / f"data/{number}/images/{number}.png", photograph(number))
        for part, columns in (("a", slice(2, 5)), ("b", slice(4, 7))):
            mask = np.zeros_like(drawn(number))
            mask[:, columns] = 255 * drawn(number)[:, columns]
            save(tmp_path / f"data/{number}/masks/{part}{number}.png", mask)
    assert main(["init", "data", "--out", "c.yaml"]) == 0
    ingest(load_config("c.yaml"), tmp_path / "out", quiet=True)
    found = examples(tmp_path / "out")
    assert sorted(found) == [f"{number}/images/{number}.png" for number in NUMBERS]
    for number in NUMBERS:
        flat = found[f"{number}/images/{number}.png"]["image/segmentation/mask/rle"]
        np.testing.assert_array_equal(rle.draw(np.reshape(flat, (-1, 2)), *SHAPE), drawn(number))


def test_an_ingest_needs_no_split_named_train_and_says_where_a_name_differs(tmp_path, image_input):
    raw = image_input(tmp_path / "in", layout="class_folders", images=4)
    manifest = run({**raw, "split": {"ratios": {"all": 1.0}}}, tmp_path / "out")
    assert manifest.totals["written"] == 4
    table = tmp_path / "labels.csv"
    table.write_text("image,label\nIMG_0.JPG,cat\n")
    save(tmp_path / "other/img_0.jpg", photograph(0))
    fitting = "IMG_0.JPG.*no such image; img_0.jpg differs in upper and lower case"
    source = {"images": str(tmp_path / "other"), "labels": {"path": str(table)}}
    with pytest.raises(CheckFailed, match=f"0 rows of labels.csv matched an image.*{fitting}"):
        run({"task": "classification", "input": source}, tmp_path / "out2")
    table.write_text("image,label\nIMG_0.JPG,cat\nb.jpg,dog\n")
    save(tmp_path / "other/b.jpg", photograph(1))
    with pytest.raises(CheckFailed, match=f"1 of 2 images have no row in labels.csv: img_0.jpg. .*{fitting}"):
        run({"task": "classification", "input": source}, tmp_path / "out2")
