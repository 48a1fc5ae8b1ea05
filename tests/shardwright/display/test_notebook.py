"""Views in a notebook are escaped and small, contain no script, and show what is stored."""

import io
import sys
from html.parser import HTMLParser
from pathlib import Path
from subprocess import run

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

import shardwright
from shardwright.dataset.reader import ImageDataset
from shardwright.display.batches import covered, pixels, show_batch
from shardwright.display.html import box, class_names, rows, tile
from shardwright.drift.monitor import compare_datasets
from shardwright.errors import DatasetError, UsageError
from shardwright.masks.rle import draw as drawn
from shardwright.masks.rle import from_flat

HOSTILE = '"><script>alert(1)</script>\u202e'


def harmless(page):
    assert "<script" not in page
    assert "\u202e" not in page
    assert "onerror" not in page
    assert page.count("<div") == page.count("</div>")
    assert len(page) < 200_000
    return page


@pytest.fixture(scope="module")
def dataset(small_dataset, tmp_path_factory):
    def turned(number, example):
        return {**example, "image/orientation": 6 if number % 2 else 1}

    return ImageDataset.open(
        small_dataset(tmp_path_factory.mktemp("looking"), counts={"train": [5, 3], "eval": [9]}, change=turned)
    )


def test_a_dataset_lists_its_splits_and_shows_four_images(dataset):
    page = harmless(dataset._repr_html_())
    assert "17 images for segmentation" in page
    assert page.count("<img") == 4
    assert page.count("eval/00") == 8
    assert "train/" not in page
    assert (
        dataset.manifest._repr_html_() == page[: page.index('<div style="font:13px/1.45 system-ui,sans-serif;display')]
    )
    assert repr(dataset) == f"ImageDataset({dataset.root!r}, segmentation, 17 images, splits eval, train)"


def test_a_damaged_dataset_shows_what_is_wrong(small_dataset, tmp_path):
    root = small_dataset(tmp_path)
    for split in ("eval", "train"):
        for file in (root / f"Split-{split}").iterdir():
            file.write_bytes(bytes(len(file.read_bytes())))
    page = ImageDataset.open(root)._repr_html_()
    assert "Its images cannot be shown" in page
    assert "<img" not in page


def test_hostile_names_do_nothing(small_dataset, tmp_path):
    def hostile(number, example):
        return {**example, "image/key": HOSTILE.encode()}

    names = (HOSTILE.replace("/", "∕"), "b")
    for task in ("segmentation", "classification"):
        found = ImageDataset.open(small_dataset(tmp_path / task, task=task, classes=names, change=hostile))
        page = harmless(found._repr_html_() + found.examples()._repr_html_() + found.examples()[0]._repr_html_())
        assert "&lt;script&gt;" in page


class Tags(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags = set()
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.tags.add((tag, tuple(name for name, _ in attributes)))


@given(st.text(max_size=40), st.text(max_size=20))
def test_any_text_is_escaped(text, name):
    page = box(text, tile("data:,", text), rows([text], []), class_names([0], [name]), soft=text)
    assert Tags(page).tags == {
        *{("b", ()), ("bdi", ()), ("tr", ()), ("img", ("src", "alt", "style"))},
        *{(tag, ("style",)) for tag in ("div", "span", "table", "th")},
    }


def test_an_example_is_what_is_stored_as_it_is_displayed(dataset):
    example = dataset.example("train/0010")  # Odd numbers are turned by a quarter, even ones are not.
    assert (example.key, example.split) == ("train/0010", "train")
    assert example.image.shape == (24, 36, 3)
    stored = np.asarray(Image.open(io.BytesIO(example.encoded)).convert("RGB"))
    assert (example.image == stored).all()
    for label, name in enumerate(("Fish", "Sugar")):
        runs = example.view.example.get(f"image/segmentation/{name}/rle")
        assert (example.masks[..., label] == drawn(from_flat(runs), 24, 36)).all()
        assert (name in example.classes) == example.masks[..., label].any()
    turned = dataset.example("train/0011")
    straight = drawn(from_flat(turned.view.example.get("image/segmentation/Fish/rle")), 24, 36)
    assert (turned.masks[..., 0] == np.rot90(straight, -1)).all()
    page = harmless(example._repr_html_())
    assert "24 × 36 png" in page
    assert repr(example).startswith("Example('train/0010', split='train', 24x36, classes=[")


def test_examples_are_the_first_of_a_split(dataset):
    assert [example.key for example in dataset.examples("train", 6)] == dataset.keys("train")[:6]
    assert [example.split for example in dataset.examples(count=2)] == ["eval", "eval"]
    assert len(dataset.examples("train", 100)) == 8
    assert len(dataset.examples("train", 0)) == 0
    assert dataset.examples("train", 3)._repr_html_().count("<img") == 3
    with pytest.raises(DatasetError, match="no split 'tset'"):
        dataset.examples("tset")
    with pytest.raises(UsageError, match="train/0010"):
        dataset.example("rain/001")


def test_an_undecodable_image_is_reported(small_dataset, tmp_path):
    def cut(number, example):
        return {**example, "image/encoded": example["image/encoded"][:60]}

    example = ImageDataset.open(small_dataset(tmp_path, change=cut)).examples()[0]
    assert "cannot be shown" in example._repr_html_()
    with pytest.raises(DatasetError, match="cannot be shown as a picture"):
        _ = example.image


def test_a_batch_shows_pictures_masks_and_ranges():
    random = np.random.default_rng(0)
    images = random.normal(size=(10, 8, 12, 3)).astype(np.float32)
    masks = random.integers(0, 2, (10, 8, 12, 2), dtype=np.uint8)
    batch = show_batch([images, masks], ["a", "<b>"], count=3)
    page = harmless(batch._repr_html_())
    assert page.count("<img") == 3
    assert "[10, 8, 12, 3] float32" in page
    assert "&lt;b&gt;" in page
    assert repr(batch) == "Batch(images [10, 8, 12, 3] float32; targets [10, 8, 12, 2] uint8)"
    without = show_batch(iter([(images, np.zeros_like(masks))]), ["a", "b"], count=3)
    assert without._repr_html_() != page


def test_labels_of_a_batch_are_named():
    images = np.zeros((3, 4, 4, 3), np.uint8)
    page = show_batch((images, np.array([1, 0, 7], np.int32)), ["cat", "dog"])._repr_html_()
    assert page.count("dog") == 2
    assert "<div>7</div>" in page
    several = show_batch((images, np.array([[0.9, 0.8], [0.1, 0.2], [0.1, 0.7]])), ["cat", "dog"])._repr_html_()
    assert "no class" in several
    assert several.count("dog") == 3
    assert show_batch((images,))._repr_html_().count("<img") == 3


@pytest.mark.parametrize(
    ("batch", "classes", "message"),
    [
        ((), (), "empty batch"),
        ((np.zeros((2, 3)),), (), r"images of shape \(2, 3\)"),
        ((np.zeros((2, 4, 4, 3)), np.zeros(3)), (), "2 images and 3 targets"),
        ((np.zeros((2, 4, 4, 3)), np.zeros((2, 4, 5, 1))), (), "Resize one"),
        ((np.zeros((2, 4, 4, 3)), np.zeros((2, 4, 4, 1))), ("a", "b"), "unpack_masks"),
        (iter(()), (), "there is no batch"),
    ],
)
def test_an_invalid_batch_is_refused(batch, classes, message):
    with pytest.raises(UsageError, match=message):
        show_batch(batch, classes)


def test_masks_and_pixels_of_every_form():
    assert covered(np.array([[[0, 1, 255]]], np.uint8)).tolist() == [[[False, True, False]]]
    assert covered(np.array([[[0.4, 0.6, 255.0]]])).tolist() == [[[False, True, False]]]
    assert pixels(np.array([[[[0.0], [0.5], [1.0]]]])).tolist() == [[[[0] * 3, [128] * 3, [255] * 3]]]
    assert pixels(np.array([[[[-1.0], [3.0]]]])).tolist() == [[[[0] * 3, [255] * 3]]]
    assert pixels(np.full((1, 1, 1, 3), 7, np.uint8)).tolist() == [[[[7] * 3]]]
    assert pixels(np.full((1, 1, 1, 3), 5.0)).tolist() == [[[[0] * 3]]]


def test_a_comparison_shows_its_verdict(dataset, small_dataset, tmp_path):
    same = compare_datasets(dataset, dataset)
    assert "Too few images: at least 20" in same._repr_html_()
    with pytest.raises(UsageError, match=r"^ignore: 'size' is not a list\. Write ignore=\['size'\]\."):
        compare_datasets(dataset, dataset, ignore="size")
    with pytest.raises(UsageError, match="^images: '40' is not a whole number"):
        compare_datasets(dataset, dataset, images="40")
    many = ImageDataset.open(small_dataset(tmp_path / "one", counts={"train": [40]}))
    wide = ImageDataset.open(small_dataset(tmp_path / "two", counts={"train": [40]}, size=lambda number: (24, 48)))
    assert "Nothing has changed" in compare_datasets(many, many)._repr_html_()
    page = harmless(compare_datasets(many, wide)._repr_html_())
    assert "<b>changed</b>" in page
    assert "size in pixels" in page


def test_the_package_offers_its_names_and_imports_nothing_for_it():
    code = (
        "import sys, shardwright as sw; assert sorted(m for m in sys.modules if m.startswith('shardwright')) == "
        "['shardwright', 'shardwright.version']; assert set(sw.__all__) <= set(dir(sw)); sw.make_dataset, "
        "sw.show_batch, sw.compare_datasets, sw.write_report, sw.write_sample, sw.ImageDataset; "
        "assert 'tensorflow' not in sys.modules, 'tensorflow'"
    )
    assert run([sys.executable, "-c", code], check=False).returncode == 0
    with pytest.raises(AttributeError, match="no attribute 'lode'. It offers CheckFailed"):
        _ = shardwright.lode


def test_a_configuration_becomes_a_dataset(image_input, tmp_path, monkeypatch):
    raw = image_input(tmp_path / "in", layout="label_csv", images=12)
    monkeypatch.chdir(tmp_path)
    made = shardwright.make_dataset(raw, "ds")
    assert made.root == str(tmp_path / "ds")
    assert sum(made.num_records(split) for split in made.splits) == 12
    assert shardwright.make_dataset(raw, tmp_path / "ds").manifest.digest == made.manifest.digest
    given = {**raw, "input": {**raw["input"], "images": Path(raw["input"]["images"])}}
    given["input"]["labels"] = {**raw["input"]["labels"], "path": Path(raw["input"]["labels"]["path"])}
    assert shardwright.make_dataset(given, Path("ds")).manifest.digest == made.manifest.digest
    with pytest.raises(UsageError, match=r"images\.size: \[8, 8, 8\] has 3 entries"):
        shardwright.make_dataset({**raw, "images": {"size": (8, 8, 8)}}, "other")
    with pytest.raises(UsageError, match=r"^config: None is not a configuration\."):
        shardwright.make_dataset(None, "other")
    with pytest.raises(UsageError, match=r"no\.yaml"):
        shardwright.make_dataset("no.yaml", "other")
    with pytest.raises(UsageError, match=r"input\.images"):
        shardwright.make_dataset({"task": "classification"}, "other")
