"""Mask images through the whole ingest: every layout and kind gives the masks that were drawn."""

import os
import shutil

import numpy as np
import pytest
from ingesting import changed, examples, ledger, run, tree
from PIL import Image
from stored import check_stored

from shardwright.config.constructors import MaskImages
from shardwright.dataset.reader import ImageDataset
from shardwright.errors import CheckFailed, ConfigError, UsageError
from shardwright.masks import rle
from shardwright.storage import durable
from shardwright.tfrecords.records import decode_example

IMAGES = 24
SHAPE = (21, 30)


def drawn(number, kind="index"):
    """Class ids of an image: 0 background, 1 Fish, 2 Sugar, 255 to be ignored."""
    random = np.random.default_rng([9, number])
    ids = np.kron(random.choice(np.array([0, 1, 2, 255], np.uint8), (7, 6)), np.ones((3, 5), np.uint8))
    if kind != "index":
        ids[ids == 255] = 0
    return ids * bool(number % 4)


@pytest.fixture
def masked(tmp_path, image_input):
    """24 images of one size; returns the configuration and the folder for masks."""
    raw = image_input(tmp_path / "in", images=IMAGES)
    folder = tmp_path / "in" / "masks"
    folder.mkdir()
    for number in range(IMAGES):
        file = tmp_path / "in" / "images" / f"{number:03d}.jpg"
        Image.open(file).resize(SHAPE[::-1]).save(file)
    return changed(raw, labels={"path": str(folder)}, classes=None), folder


def save(file, pixels, mode=None):
    file.parent.mkdir(parents=True, exist_ok=True)
    image = Image.fromarray(pixels)
    if mode == "P":
        image.putpalette([(50 * i + c) % 256 for i in range(256) for c in range(3)])
    image.save(file)


def check(out, classes=("1", "2"), kind="index"):
    found = examples(out)
    assert len(found) == IMAGES
    for number in range(IMAGES):
        example, ids = found[f"{number:03d}.jpg"], drawn(number, kind)
        present = []
        for index, name in enumerate(classes):
            runs = rle.from_flat(example[f"image/segmentation/{name}/rle"])
            assert np.array_equal(rle.draw(runs, *SHAPE), ids == index + 1), (number, name)
            assert example[f"image/segmentation/{name}/area"].tolist() == [(ids == index + 1).sum()]
            present += [index] * bool((ids == index + 1).any())
        assert example["image/class/label"].tolist() == present
        if kind == "index":
            ignored = rle.from_flat(example["image/segmentation/ignore/rle"])
            assert np.array_equal(rle.draw(ignored, *SHAPE), ids == 255)
            assert example["image/segmentation/ignore/area"].tolist() == [(ids == 255).sum()]
        else:
            assert "image/segmentation/ignore/rle" not in example


@pytest.mark.parametrize("mode", ["L", "P", "gray as RGB"])
def test_numbers_of_classes(tmp_path, masked, mode):
    raw, folder = masked
    for number in range(IMAGES):
        ids = drawn(number)
        save(folder / f"{number:03d}.png", np.dstack([ids] * 3) if "RGB" in mode else ids, mode)
    notes = []
    manifest = run(raw, tmp_path / "out", log=notes.append)
    check(tmp_path / "out")
    assert manifest.features["image/segmentation/ignore/rle"] == "int64"
    assert notes == [
        "labels: mask_images, since masks is a folder",
        "masks: named by same path, since 24 of 24 find their image so; input.labels.regex overrides this",
        "2 classes detected: 1, 2",
        "masks: 255 is ignored; write classes as {name: id} to make it a class",
        "masks: 0 is the background; add {name: 0} to input.classes if it is a class",
    ]


@pytest.mark.parametrize(
    "classes", [["Fish", "Sugar"], {"Fish": 1, "Sugar": 2}, {"Sugar": 2, "ignore": 255, "Fish": 1}]
)
def test_names_of_classes(tmp_path, masked, classes):
    raw, folder = masked
    for number in range(IMAGES):
        save(folder / f"{number:03d}_mask.png", drawn(number))
    manifest = run(changed(raw, classes=classes), tmp_path / "out")
    assert manifest.classes == ("Fish", "Sugar")
    check(tmp_path / "out", ("Fish", "Sugar"))


def test_detected_classes_and_the_same_given_make_one_dataset(tmp_path, masked):
    raw, folder = masked
    for number in range(IMAGES):
        save(folder / f"{number:03d}.png", drawn(number) * np.uint8(3) % np.uint8(253))
    detected = run(raw, tmp_path / "detected")
    assert detected.classes == ("3", "6")
    assert run(changed(raw, classes=["3", "6"]), tmp_path / "given").fingerprint == detected.fingerprint
    assert tree(tmp_path / "detected") == tree(tmp_path / "given")


def test_a_list_that_begins_with_the_background_counts_from_0(tmp_path, masked):
    raw, folder = masked
    for number in range(IMAGES):
        save(folder / f"{number:03d}.png", drawn(number))
    manifest = run(changed(raw, classes=["background", "Fish", "Sugar"]), tmp_path / "out")
    assert manifest.classes == ("background", "Fish", "Sugar")
    for number, example in ((int(key[:3]), example) for key, example in examples(tmp_path / "out").items()):
        for index, name in enumerate(manifest.classes):
            runs = rle.from_flat(example[f"image/segmentation/{name}/rle"])
            assert np.array_equal(rle.draw(runs, *SHAPE), drawn(number) == index)


@pytest.mark.parametrize("white", [True, False, "in some files"])
@pytest.mark.parametrize("classes", [None, ["Fish"], {"Fish": 255}])
def test_white_on_black_is_the_only_class(tmp_path, masked, white, classes):
    """A file of 1 bit has 1 for white."""
    raw, folder = masked
    for number in range(IMAGES):
        fish = drawn(number, "white") == 1
        eight_bits = white if isinstance(white, bool) else number % 2
        save(folder / f"{number:03d}.png", fish.astype(np.uint8) * np.uint8(255) if eight_bits else fish)
    manifest = run(changed(raw, classes=classes), tmp_path / "out")
    assert manifest.classes == (("Fish",) if classes else ("mask",) if white else ("1",))
    check(tmp_path / "out", manifest.classes, "white")
    check_stored(f"white masks: {white}, {classes}", tmp_path / "out")


def test_a_class_1_in_a_file_of_1_bit_is_not_white_where_others_have_numbers(tmp_path, masked):
    raw, folder = masked
    for number in range(IMAGES):
        pixels = drawn(number)
        pixels[0, 0] = 255
        save(folder / f"{number:03d}.png", pixels if number != 1 else drawn(number) == 1)
    assert run(raw, tmp_path / "out").classes == ("1", "2")
    assert examples(tmp_path / "out")["001.jpg"]["image/class/text"] == [b"1"]


@pytest.mark.parametrize("values", [(0, 1, 2), (0, 300, 2)])
def test_sixteen_bits(tmp_path, masked, values):
    raw, folder = masked
    for number in range(IMAGES):
        ids = drawn(number, "deep").astype(np.uint16)
        save(folder / f"{number:03d}.png", np.choose(ids, values).astype(np.uint16))
    check_deep = {"Fish": values[1], "Sugar": values[2], "ignore": 7}
    manifest = run(changed(raw, classes=check_deep), tmp_path / "out")
    check_stored(f"masks of sixteen bits: {values}", tmp_path / "out")
    assert set(manifest.classes) == {"Fish", "Sugar"}
    for key, example in examples(tmp_path / "out").items():
        runs = rle.from_flat(example["image/segmentation/Fish/rle"])
        assert np.array_equal(rle.draw(runs, *SHAPE), drawn(int(key[:3]), "deep") == 1)


def test_colors(tmp_path, masked):
    raw, folder = masked
    palette = np.zeros((256, 3), np.uint8)
    palette[1], palette[2], palette[255] = (128, 0, 0), (0, 128, 255), (224, 224, 192)
    for number in range(IMAGES):
        save(folder / f"{number:03d}.png", palette[drawn(number)])
    with pytest.raises(ConfigError, match=r"masks/001.png holds colors \(#000000, #\w+, #\w+, #\w+\). Give each"):
        run(raw, tmp_path / "out")
    classes = {"Fish": "#800000", "Sugar": "#0080FF", "ignore": "#e0e0c0"}
    manifest = run(changed(raw, classes=classes), tmp_path / "out")
    assert set(manifest.classes) == {"Fish", "Sugar"}
    check(tmp_path / "out", ("Fish", "Sugar"))
    del classes["Sugar"]
    with pytest.raises(
        CheckFailed, match="masks: 001.png: .* pixels are #0080ff, which is not a class; known are #000000"
    ):
        run(changed(raw, classes=classes), tmp_path / "other")


@pytest.mark.parametrize("name", ["{label}/{image}.png", "{image}_{label}.png", "of {label}, {image}.png"])
def test_a_file_per_class(tmp_path, masked, name):
    raw, folder = masked
    for number in range(IMAGES):
        for label, text in ((1, "Fish"), (2, "Sugar")):
            mask = (drawn(number, "white") == label) * np.uint8(255 if number % 2 else 1)
            if mask.any():
                save(folder / name.format(label=text, image=f"{number:03d}"), mask)
    if "of" in name:
        raw = changed(raw, labels={**raw["input"]["labels"], "regex": "of (?P<label>.+), (?P<image>.+)"})
    with pytest.raises(CheckFailed, match="6 of 24 images have no row in masks: 000.jpg, 004.jpg, 008.jpg"):
        run(raw, tmp_path / "out")
    manifest = run(changed(raw, unlisted_images="empty"), tmp_path / "out")
    assert manifest.classes == ("Fish", "Sugar")
    check(tmp_path / "out", manifest.classes, "white")


@pytest.mark.parametrize("threshold", [128, {"Fish": 128, "Sugar": 128}, {"*": 128}])
def test_a_threshold_for_a_file_per_class(tmp_path, masked, threshold):
    raw, folder = masked
    for number in range(IMAGES):
        for label, text in ((1, "Fish"), (2, "Sugar")):
            mask = (drawn(number, "white") == label) * np.uint8(200)
            save(folder / text / f"{number:03d}.png", mask + np.uint8(number))
    with pytest.raises(CheckFailed, match=r"one class has one. If it was smoothed .* set input.labels.threshold"):
        run(raw, tmp_path / "other")
    labels = {**raw["input"]["labels"], "threshold": threshold}
    manifest = run(changed(raw, labels=labels), tmp_path / "out")
    check(tmp_path / "out", manifest.classes, "white")


@pytest.mark.parametrize(
    ("labels", "classes", "message"),
    [
        ({"threshold": 0}, None, "input.labels.threshold: 0 is not a value of a mask. Use 1 to 65535; 128 is half"),
        ({"threshold": {"Fish": 70000}}, None, r"input.labels.threshold.Fish: 70000 is not a value of a mask"),
        ({"threshold": {"Fish": 128}}, ["Fish"], r"input.labels.threshold.Fish: unknown: a file holds all classes"),
        ({"threshold": 128}, ["Fish", "Sugar"], "128, but each mask holds 2 classes: Fish, Sugar"),
        ({"threshold": 128, "format": "rle_csv"}, None, "input.labels.threshold: is for mask images"),
        ({"values": "shown"}, None, "input.labels.values: 'shown'"),
    ],
)
def test_a_threshold_that_fits_nothing_is_refused(tmp_path, masked, labels, classes, message):
    raw, folder = masked
    for number in range(IMAGES):
        save(folder / f"{number:03d}.png", drawn(number))
    with pytest.raises(ConfigError, match=message):
        run(changed(raw, labels={**raw["input"]["labels"], **labels}, classes=classes), tmp_path / "out")


def test_a_threshold_in_python():
    assert MaskImages("masks", threshold=128).threshold == {"*": 128}
    assert MaskImages("masks", threshold={"a": 1}, values="stored").threshold == {"a": 1}


@pytest.mark.parametrize(
    ("classes", "names"),
    [
        ({"_background_": 0, "Fish": 1, "Sugar": 2, "__ignore__": 255}, ("Fish", "Sugar")),
        (["__ignore__", "_background_", "Fish", "Sugar"], ("Fish", "Sugar")),
        ({"unlabeled": 0, "Fish": 1, "Sugar": 2}, ("Fish", "Sugar")),
        ({"Fish": 1, "Sugar": 2, "Void": 255}, ("Fish", "Sugar")),
    ],
)
def test_names_of_background_and_of_what_is_ignored_are_no_classes(tmp_path, masked, classes, names):
    raw, folder = masked
    for number in range(IMAGES):
        save(folder / f"{number:03d}.png", drawn(number))
    assert run(changed(raw, classes=classes), tmp_path / "out").classes == names
    check(tmp_path / "out", names)


def test_a_jpeg_among_masks_is_the_mask_of_an_image_without_another(tmp_path, masked):
    raw, folder = masked
    for number in range(IMAGES):
        save(folder / f"{number:03d}.png", (drawn(number) == 1) * np.uint8(255))
    (folder / "003.png").rename(folder / "unread")
    Image.fromarray((drawn(3) == 1) * np.uint8(255)).save(folder / "003.jpg", quality=95)
    save(folder / "005.jpg", drawn(6))
    with pytest.raises(UsageError, match=r"masks/003.jpg was compressed with loss. Set input.labels.threshold: 128"):
        run(raw, tmp_path / "out")
    run(changed(raw, labels={**raw["input"]["labels"], "threshold": 128}), tmp_path / "out")
    runs = rle.from_flat(examples(tmp_path / "out")["003.jpg"]["image/segmentation/mask/rle"])
    assert np.array_equal(rle.draw(runs, *SHAPE), drawn(3) == 1)


def test_what_is_wrong_is_in_the_ledger(tmp_path, masked):
    raw, folder = masked
    for number in range(IMAGES):
        save(folder / f"{number:03d}.png", drawn(number))
    save(folder / "001.png", drawn(1).T.copy())
    save(folder / "002.png", drawn(2) + np.uint8(70))
    (folder / "003.png").write_bytes((folder / "003.png").read_bytes()[:-20])
    save(folder / "004.bmp", drawn(4))
    save(folder / "nobody.png", drawn(5))
    (folder / "readme.txt").write_text("not a mask")
    Image.fromarray(drawn(6)).save(folder / "005.jpg")
    manifest = run(changed(raw, classes={"Fish": 1, "Sugar": 2}), tmp_path / "out")
    check_stored("wrong masks", tmp_path / "out")
    rows = ledger(tmp_path / "out")
    assert {key: row.code for key, row in rows.items() if row.status == "rejected"} == {
        "001.jpg": "size_mismatch",
        "002.jpg": "unknown_class",
        "003.jpg": "bad_mask",
        "004.jpg": "two_masks",
        "masks/nobody.png": "missing_image",
    }
    assert rows["001.jpg"].reason == (
        "masks: 001.png: the mask has 30x21 (height x width), the image 21x30; was it drawn on the turned image?"
    )
    assert "which is not a class; known are 0, 1, 2, 255" in rows["002.jpg"].reason
    assert rows["004.jpg"].reason == "masks: 004.bmp and 004.png are both its mask; remove one"
    assert manifest.totals["inputs"] == IMAGES + 1
    assert not any(str(tmp_path) in row.reason for row in rows.values())


def test_an_unknown_value_ends_the_run_where_the_masks_are_looked_into(tmp_path, masked):
    raw, folder = masked
    for number in range(IMAGES):
        save(folder / f"{number:03d}.png", drawn(number))
    with pytest.raises(
        UsageError, match=r"masks/00.\.png: the class '2' is not in input.classes. Known are: Fish \(1\)"
    ):
        run(changed(raw, classes=["Fish"]), tmp_path / "out")


@pytest.mark.parametrize("classes", [{"Fish": 1}, ["Fish"], {"Fish": "#010101"}])
@pytest.mark.parametrize("others", ["background", "ignore"])
def test_other_values_may_be_background_or_ignored(tmp_path, masked, classes, others):
    raw, folder = masked
    colored = classes == {"Fish": "#010101"}
    for number in range(IMAGES):
        save(folder / f"{number:03d}.png", np.dstack([drawn(number)] * 3) if colored else drawn(number))
    labels = {**raw["input"]["labels"], "unlisted_values": others}
    manifest = run(changed(raw, classes=classes, labels=labels), tmp_path / "out")
    assert manifest.classes == ("Fish",)
    for key, example in examples(tmp_path / "out").items():
        ids = drawn(int(key[:3]))
        runs = rle.from_flat(example["image/segmentation/Fish/rle"])
        assert np.array_equal(rle.draw(runs, *SHAPE), ids == 1)
        ignored = (ids == 255) & (not colored) | (ids > 1) & (others == "ignore")
        if colored and others == "background":
            assert "image/segmentation/ignore/rle" not in example
        else:
            runs = rle.from_flat(example["image/segmentation/ignore/rle"])
            assert np.array_equal(rle.draw(runs, *SHAPE), ignored)


def test_colors_are_no_other_values_of_numbers(tmp_path, masked):
    raw, folder = masked
    for number in range(IMAGES):
        save(folder / f"{number:03d}.png", np.dstack([drawn(number), drawn(number + 1), drawn(2)]))
    labels = {**raw["input"]["labels"], "unlisted_values": "background"}
    with pytest.raises(ConfigError, match=r"input.classes: the mask masks/000.png holds colors"):
        run(changed(raw, classes={"Fish": 1}, labels=labels), tmp_path / "out")


def test_jpegs_are_refused_as_masks(tmp_path, masked):
    raw, folder = masked
    for number in range(IMAGES):
        Image.fromarray(drawn(number)).save(folder / f"{number:03d}.jpg")
    with pytest.raises(UsageError, match=r"masks/000.jpg was compressed with loss. Save the masks as PNG, without"):
        run(changed(raw, classes={"Fish": 1}), tmp_path / "out")
    white = changed(raw, classes={"Fish": 255}, labels={**raw["input"]["labels"], "threshold": 128})
    run(white, tmp_path / "out")


def test_nothing_matched_names_masks_and_images(tmp_path, masked):
    raw, folder = masked
    save(folder / "other.png", drawn(1))
    with pytest.raises(
        CheckFailed, match="0 rows of masks matched an image. It names other.png; the images are 000.jpg"
    ):
        run(raw, tmp_path / "out")


def test_masks_are_content_and_no_path_is(tmp_path, masked):
    raw, folder = masked
    for number in range(IMAGES):
        save(folder / f"{number:03d}.png", drawn(number))
    first = run(raw, tmp_path / "first")
    shutil.copytree(tmp_path / "in", tmp_path / "moved")
    moved = {
        **raw,
        "input": {"images": str(tmp_path / "moved/images"), "labels": {"path": str(tmp_path / "moved/masks")}},
    }
    assert run(moved, tmp_path / "second", workers=2).fingerprint == first.fingerprint
    assert tree(tmp_path / "first") == tree(tmp_path / "second")
    save(folder / "001.png", drawn(2))
    assert run(raw, tmp_path / "third").fingerprint != first.fingerprint


def test_a_link_out_of_the_folder_is_not_read(tmp_path, masked):
    raw, folder = masked
    for number in range(1, IMAGES):
        save(folder / f"{number:03d}.png", drawn(number))
    save(tmp_path / "secret.png", drawn(2))
    os.symlink(tmp_path / "secret.png", folder / "000.png")
    run(changed(raw, unlisted_images="reject"), tmp_path / "out")
    rows = ledger(tmp_path / "out")
    assert (rows["masks/000.png"].code, rows["000.jpg"].code) == ("outside_root", "unlisted")


def test_masks_below_the_images_are_no_images(tmp_path, masked):
    raw, folder = masked
    for number in range(IMAGES):
        save(folder / f"{number:03d}.png", drawn(number))
    shutil.move(folder, tmp_path / "in/images/masks")
    labels = {"path": str(tmp_path / "in/images/masks")}
    assert run(changed(raw, labels=labels), tmp_path / "out").totals["inputs"] == IMAGES
    check(tmp_path / "out")


@pytest.mark.slow
@pytest.mark.shared_data
def test_real_masks_are_those_of_their_run_lengths(tmp_path, shared_data):
    steel = shared_data / "steel_defects"
    raw = {"task": "segmentation", "input": {"images": str(steel / "images")}}
    names = ["Inclusion", "Patches", "Scratches"]
    sources = {
        "table": {"labels": {"path": str(steel / "image_label.csv")}, "classes": names},
        "list": {"labels": {"path": str(steel / "masks")}, "classes": names},
        "ids": {"labels": {"path": str(steel / "masks")}, "classes": {name: i + 1 for i, name in enumerate(names)}},
    }
    for name, options in sources.items():
        run(changed(raw, **options), tmp_path / name)
    table, by_list, by_ids = (examples(tmp_path / name) for name in sources)
    assert len(table) == 840
    for key, example in table.items():
        for other in (by_list[key], by_ids[key]):
            same = {name: values for name, values in other.items() if "ignore" not in name}
            assert same.keys() == example.keys()
            assert all(np.array_equal(same[name], example[name]) for name in example)


def test_a_mask_that_changes_during_the_run_ends_it(tmp_path, masked, monkeypatch):
    raw, folder = masked
    for number in range(IMAGES):
        save(folder / f"{number:03d}.png", drawn(number))

    rename_folder = durable.rename_folder

    def publish_and_change(*arguments):
        rename_folder(*arguments)
        save(folder / "005.png", drawn(6))

    monkeypatch.setattr("shardwright.ingest.tasks.durable.rename_folder", publish_and_change)
    with pytest.raises(CheckFailed, match=r"005.png: the mask has changed while the run was reading the input"):
        run(raw, tmp_path / "out", workers=1)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("place", "options"), [("shards", {"count": 3, "balance": "class"}), ("split", {"method": "stratified"})]
)
def test_classes_in_masks_balance_shards_and_splits(tmp_path, masked, place, options):
    raw, folder = masked
    for number in range(IMAGES):
        save(folder / f"{number:03d}.png", np.full(SHAPE, 1 + number % 2, np.uint8))
    shares = {"ratios": {"train": 0.5, "eval": 0.25, "test": 0.25}}
    run({**raw, "split": shares, place: {**(shares if place == "split" else {}), **options}}, tmp_path / "out")
    dataset = ImageDataset.open(tmp_path / "out")
    for split in dataset.splits:
        labels = [decode_example(data)["image/class/label"].tolist() for _, data in dataset.records(split)]
        parts = [labels]
        if place == "shards":
            counts = [shard.records for shard in dataset.shards(split)]
            parts = [labels[sum(counts[:i]) : sum(counts[: i + 1])] for i in range(len(counts))]
            assert len(parts) == 3
            assert max(counts) - min(counts) <= 1
        shares_of_one = [part.count([1]) / len(part) for part in parts]
        whole = labels.count([1]) / len(labels)
        assert all(abs(share - whole) <= 1 / len(part) for share, part in zip(shares_of_one, parts, strict=True))
        assert place == "shards" or abs(whole - 0.5) <= 1 / len(labels)
