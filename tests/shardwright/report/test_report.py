"""The report of a dataset: valid HTML that fetches nothing, for any names of files and classes."""

import base64
import errno
import html
import io
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from shardwright.dataset.reader import ImageDataset
from shardwright.display import html as display_html
from shardwright.errors import DatasetError, ShardwrightError, UsageError
from shardwright.report import page
from shardwright.report.page import MOST_BYTES, collect_page, render, write_report
from shardwright.tfrecords.encode import ints

VOID = {"meta", "img", "input", "br", "line", "polyline"}
HOSTILE = (
    "<script>alert(1)</script>",
    "\"><img src=x onerror='alert(1)'>",
    "a\u202egnp.exe",
    "nul\x00byte",
    "</style>",
)


class Page(HTMLParser):
    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.tags, self.ids, self.images, self.urls, self.headings, self.texts = [], [], [], [], [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.tags.append((tag, found))
        if "id" in found:
            self.ids.append(found["id"])
        if tag == "img":
            self.images.append(found)
        for name in ("src", "href", "srcset", "action", "data", "xlink:href"):
            if name in found:
                self.urls.append(found[name])
        if re.fullmatch("h[1-6]", tag):
            self.headings.append(int(tag[1]))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


def check(text):
    page = Page(text)
    assert page.open == []
    assert len(text.encode()) <= MOST_BYTES
    assert len(page.ids) == len(set(page.ids))
    assert all("alt" in image for image in page.images)
    assert all(url.startswith(("data:image/", "#")) for url in page.urls)
    assert {url[1:] for url in page.urls if url[0] == "#"} <= set(page.ids)
    assert {found["aria-labelledby"] for _, found in page.tags if "aria-labelledby" in found} <= set(page.ids)
    assert page.headings[0] == 1
    assert page.headings.count(1) == 1
    assert all(after - before <= 1 for before, after in zip(page.headings, page.headings[1:], strict=False))
    assert not {tag for tag, _ in page.tags} & {"script", "iframe", "object", "embed", "link", "form", "base"}
    assert not [name for _, found in page.tags for name in found if name.startswith("on")]
    assert {"header", "nav", "main", "footer"} <= {tag for tag, _ in page.tags}
    assert not re.search(r"url\(|@import|https?:", text)
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u200e\u200f\u202a-\u202e\u2066-\u2069]", text)
    return page


def rendered(dataset, chapters=()):
    return render(collect_page(dataset), chapters)


def hostile_key(number, example):
    return {**example, "image/key": f"{HOSTILE[number % len(HOSTILE)]}{number}".encode()}


@pytest.fixture(scope="module")
def masked(small_dataset, tmp_path_factory):
    return small_dataset(tmp_path_factory.mktemp("masked"), counts={"train": [5, 3], "eval": [2]})


def test_a_dataset_with_masks(masked):
    page = check(rendered(ImageDataset.open(masked)))
    text = " ".join(page.texts)
    assert "10 images for segmentation" in text
    assert len([image for image in page.images if image.get("class") == "m"]) >= 10
    assert len([image for image in page.images if image.get("class") == "heat"]) == 2
    for name in ("Fish", "Sugar", "train", "eval", "Overlap", "Regions of a mask", "The smallest masks"):
        assert name in text


def test_the_same_dataset_has_the_same_bytes(masked):
    assert rendered(ImageDataset.open(masked)) == rendered(ImageDataset.open(masked))


def test_hostile_names_are_shown_and_do_nothing(small_dataset, tmp_path):
    for task in ("segmentation", "classification"):
        # No class can have a NUL in its name: the manifest would be refused. Keys can.
        names = tuple(name.replace("/", "∕").replace("\0", " ") for name in HOSTILE)
        root = small_dataset(tmp_path / task, task=task, classes=names, change=hostile_key)
        text = rendered(ImageDataset.open(root))
        page = check(text)
        assert "<script" not in text
        shown = "".join(page.texts)
        assert names[0] in shown
        assert "\\u202e" in shown
        assert "\\u0000" in shown


@given(st.text(max_size=200))
def test_any_text_is_shown_as_it_is(text):
    page = Page(display_html.isolate(text, 500))
    assert [tag for tag, _ in page.tags] == ["bdi"]
    assert "".join(page.texts) == display_html.plain(text, 500)
    (_, found), (_, image) = Page(display_html.picture("data:,", text)).tags
    assert set(found) == {"class"}
    assert image == {"src": "data:,", "alt": display_html.plain(text, 240)}


def test_templates_escape_text():
    text = '"><script>'
    pieces = [
        display_html.picture("data:,", text),
        display_html.section("here", text, text, lead=text),
        display_html.card(text, text, note=text),
        display_html.table([text], [[text]], caption=text),
        display_html.document(text, text, text, text, text, title=text, links=[("main", text)], ending=text),
    ]
    for piece in pieces:
        assert "<script" not in piece
        assert "&lt;script" in piece


def test_images_that_cannot_be_decoded_are_named(small_dataset, tmp_path):
    def broken(number, example):
        return {**example, "image/encoded": example["image/encoded"][:60]}

    page = check(rendered(ImageDataset.open(small_dataset(tmp_path, change=broken))))
    assert "cannot be shown" in " ".join(page.texts)


def test_copies_across_splits_are_a_leak(small_dataset, tmp_path):
    def same(number, example):
        return {**example, "image/blake3": b"ab" * 32}

    text = html.unescape(rendered(ImageDataset.open(small_dataset(tmp_path, task="classification", change=same))))
    assert "in more than one split" in text
    assert ">different labels<" in text
    assert "pixels:" not in text
    fine = html.unescape(rendered(ImageDataset.open(small_dataset(tmp_path / "fine"))))
    assert "in more than one split" not in fine


def test_equal_files_with_other_masks_show_the_difference(small_dataset, tmp_path):
    def same(number, example):
        return {**example, "image/blake3": b"ab" * 32, "image/class/label": ints([0])}

    text = rendered(ImageDataset.open(small_dataset(tmp_path, counts={"train": [4]}, change=same)))
    assert ">different masks<" in text
    assert re.search(r"pixels: <bdi>(Fish|Sugar)</bdi> \d+", text)


def test_a_picture_is_as_wide_as_it_is_high_enough_and_never_enlarged(small_dataset, tmp_path):
    text = rendered(ImageDataset.open(small_dataset(tmp_path, size=lambda number: (30, 10))))
    (style,) = set(re.findall('class="pic" style="(.*?)"', text))
    assert style == "max-width:59px"
    sizes = set(re.findall(r'<img src="data:image/jpeg;base64,(.*?)"', text))
    assert {Image.open(io.BytesIO(base64.b64decode(data))).size for data in sizes} == {(10, 30)}


def test_values_beyond_a_scale_are_marked(small_dataset, tmp_path):
    def sharp(number, example):
        names = ("brightness", "contrast", "sharpness", "colorfulness", "red", "green", "blue")
        return {**example, **{f"image/quality/{name}": 0.2 * number for name in names}}

    text = rendered(ImageDataset.open(small_dataset(tmp_path, counts={"train": [8]}, change=sharp)))
    assert text.count(">1 and more</text>") == 3


@pytest.mark.slow
def test_large_pictures_are_left_out_beyond_the_limit(small_dataset, tmp_path):
    random = np.random.default_rng(0)

    def noise(number, example):
        file = io.BytesIO()
        Image.fromarray(random.integers(0, 256, (176, 232, 3), dtype=np.uint8)).save(file, "png")
        return {**example, "image/encoded": file.getvalue(), "image/height": 176, "image/width": 232}

    names = tuple(f"class {number}" for number in range(30))
    root = small_dataset(tmp_path, task="classification", classes=names, counts={"train": [90]}, change=noise)
    text = rendered(ImageDataset.open(root))
    check(text)
    assert "rarer classes are left out here" in text


def test_the_file_is_written_atomically_outside_the_dataset(masked, tmp_path):
    file = write_report(masked, tmp_path / "new" / "r.html", quiet=True)
    check(file.read_text(encoding="utf-8"))
    assert [path.name for path in file.parent.iterdir()] == ["r.html"]
    with pytest.raises(UsageError, match="is inside the dataset"):
        write_report(masked, masked / "r.html", quiet=True)
    with pytest.raises(DatasetError, match=r"no manifest\.json"):
        write_report(tmp_path, tmp_path / "x.html", quiet=True)


@pytest.mark.parametrize(
    ("number", "code", "fix"),
    [(errno.ENOSPC, 1, "Make room, or give another path."), (errno.EROFS, 2, "Give another file.")],
)
def test_a_full_disk_is_no_mistake_of_the_call(tmp_path, monkeypatch, number, code, fix):
    def full(target, text):
        raise OSError(number, "why")

    monkeypatch.setattr(page, "write_file", full)
    with pytest.raises(ShardwrightError) as caught:
        page.write_page(tmp_path / "r.html", "")
    assert str(caught.value) == f"{tmp_path}/r.html: cannot be written (why). {fix}"
    assert caught.value.exit_code == code
