"""Captions of CSV and JSON lines: several an image, in their order; bad lines go to the ledger. Images alone."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ingesting import examples, ledger, run
from PIL import Image

from shardwright.config import LabelsConfig, parse_config
from shardwright.dataset.reader import ImageDataset
from shardwright.errors import CheckFailed, ConfigError, UsageError
from shardwright.formats.base import Images, Request
from shardwright.formats.detect import open_source

KEYS = ["a.png", "b.png", "c.png"]
CAPTIONS = {"a.png": ["A cat.", "One cat, alone."], "b.png": ["A dog."], "c.png": ["x", "x"]}
TEXTS = st.text(st.characters(exclude_categories=("Cs",)), min_size=1).filter(lambda text: text.strip())


@pytest.fixture
def given_input(tmp_path):
    """Writes three images and a file, and returns the configuration."""
    (tmp_path / "images").mkdir()
    for number, key in enumerate(KEYS):
        Image.new("RGB", (4, 4), (number, 0, 0)).save(tmp_path / "images" / key)

    def write(text, name="captions.csv", task="classification", labels=None, **options):
        file = tmp_path / name
        file.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8"))
        section = {"images": str(tmp_path / "images"), "labels": {"path": str(file), **(labels or {})}, **options}
        return {"task": task, "input": section}

    return write


def lines(entries):
    return "".join(json.dumps(entry) + "\n" for entry in entries)


def captions_of(out):
    return {
        key: [text.decode() for text in example.get("image/caption/text", [])] for key, example in examples(out).items()
    }


ROWS = [(key, text) for key, texts in CAPTIONS.items() for text in texts]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("t.csv", "image,caption\n" + "".join(f'{key},"{text}"\n' for key, text in ROWS)),
        ("t.csv", "\ufefffile_name;text\r\n" + "".join(f'{key};"{text}"\r\n' for key, text in ROWS)),
        ("t.csv", 'image,caption_1,caption_2\na.png,A cat.,"One cat, alone."\nb,A dog.,\nc.png,x,x\n'),
        ("t.jsonl", lines({"file_name": key, "text": text} for key, text in ROWS)),
        ("t.ndjson", "\ufeff" + lines({"image": key, "caption": texts} for key, texts in CAPTIONS.items())),
        ("t.txt", lines({"id": 7, "file_name": key, "caption": text, "x": {}} for key, text in ROWS)),
        (
            "t.jsonl",
            "\n \r\n" + lines({"image": f"./{key}", "caption": text} for key, text in ROWS).replace("\n", "\r\n"),
        ),
    ],
)
def test_captions_are_the_same_in_every_spelling(tmp_path, given_input, name, text):
    manifest = run(given_input(text, name), tmp_path / "out")
    assert (manifest.labels, manifest.classes) == ("none", ())
    assert manifest.features["image/caption/text"] == "bytes"
    assert captions_of(tmp_path / "out") == CAPTIONS


def test_the_format_is_detected_with_its_reason(tmp_path, given_input):
    def notes(raw):
        config = parse_config(raw, base="/").input.labels
        source = open_source(
            Request(
                task="classification",
                options=config,
                classes=None,
                path=config.path,
                images=Images(KEYS, frozenset(), size_of=lambda position: None, max_pixels=10**6),
            )
        )
        return source.survey().notes[0]

    assert notes(given_input("image,text\na.png,x\n")) == (
        "labels: captions, since captions.csv has no classes, but captions in 'text'"
    )
    entries = lines([{"image": "a.png", "text": "x"}] * 2)
    assert notes(given_input(entries, "t.jsonl")) == "labels: captions, since t.jsonl ends with .jsonl"
    assert notes(given_input(entries, "t")) == "labels: captions, since each line of t is a JSON object"


def test_captions_next_to_classes_are_kept_where_their_column_is_named(tmp_path, given_input):
    text = "image,label,caption\na.png,x,one\nb.png,y,\nc.png,x,two\nc.png,x,three\n"
    run(given_input(text, labels={"columns": {"caption": "caption"}}), tmp_path / "out")
    assert captions_of(tmp_path / "out") == {"a.png": ["one"], "b.png": [], "c.png": ["two", "three"]}
    manifest = run(given_input(text), tmp_path / "without")
    assert (manifest.labels, manifest.classes) == ("single", ("x", "y"))
    assert "image/caption/text" not in manifest.features


def test_bad_lines_are_in_the_ledger_and_the_others_count(tmp_path, given_input):
    good = [{"file_name": key, "text": "x"} for key in KEYS]
    bad = [
        "{",
        "7",
        '{"text": "x"}',
        '{"file_name": 3, "text": "x"}',
        '{"file_name": "\\ud800", "text": "x"}',
        "[" * 90,
    ]
    text = lines(good[:1]) + "".join(f"{line}\n" for line in bad) + lines(good[1:])
    run({**given_input(text, "t.jsonl"), "rejects": {"max_fraction": 0.8}}, tmp_path / "out")
    rows = {key: (row.code, row.reason) for key, row in ledger(tmp_path / "out").items() if row.status == "rejected"}
    problems = ["is not JSON", "is not a JSON object", "names no image", "names no image", "names no image"]
    problems += ["is not JSON"]
    assert rows == {
        f"t.jsonl:{line}": ("bad_row", f"t.jsonl, row {line}: {problem}")
        for line, problem in enumerate(problems, start=2)
    }
    assert captions_of(tmp_path / "out") == {key: ["x"] for key in KEYS}


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ({"file_name": "b.png"}, "contains no caption, only 'file_name'"),
        ({"file_name": "b.png", "text": 3}, "its caption is neither text nor a list of texts"),
        ({"file_name": "b.png", "text": ["x", None]}, "its caption is neither text nor a list of texts"),
        ({"file_name": "b.png", "text": "\ud800"}, "its caption is neither text nor a list of texts"),
    ],
)
def test_an_image_with_a_bad_caption_is_rejected(tmp_path, given_input, entry, reason):
    text = lines([{"file_name": key, "text": "x"} for key in KEYS] + [entry])
    run(given_input(text, "t.jsonl"), tmp_path / "out")
    row = ledger(tmp_path / "out")["b.png"]
    assert (row.status, row.code, row.reason) == ("rejected", "bad_row", f"t.jsonl, row 4: {reason}")


@given(st.lists(st.tuples(st.sampled_from(KEYS), TEXTS), max_size=8))
def test_any_text_is_a_caption(tmp_path_factory, rows):
    file = tmp_path_factory.mktemp("lines") / "t.jsonl"
    file.write_text(lines({"image": key, "text": text} for key, text in [*rows, ("a.png", "x")]), encoding="utf-8")
    source = open_source(
        Request(
            task="classification",
            options=LabelsConfig(path=str(file)),
            classes=None,
            path=str(file),
            images=Images(KEYS, frozenset(), size_of=lambda position: None, max_pixels=10**6),
        )
    )
    source.survey()
    found = [(KEYS[a.image], a.values["image/caption/text"]) for a in source.annotations()]
    assert found == [(key, [text.strip()]) for key, text in [*rows, ("a.png", "x")]]


def test_what_does_not_fit_is_refused(tmp_path, given_input):
    entries = lines([{"image": "a.png", "text": "x"}])
    with pytest.raises(UsageError, match="hold captions or numbers, no masks"):
        run(given_input(entries, "t.jsonl", task="segmentation"), tmp_path / "out")
    with pytest.raises(ConfigError, match=r"input\.classes: .* holds captions or numbers and no classes"):
        run(given_input(entries, "t.jsonl", classes=["a"]), tmp_path / "out")
    with pytest.raises(UsageError, match="contains captions and no classes, but input.classes names some"):
        run(given_input("image,text\na.png,x\n", classes=["a"]), tmp_path / "out")
    with pytest.raises(UsageError, match=r"is not UTF-8 text"):
        run(given_input(entries.encode() + b'{"image": "\xff"}\n', "t.jsonl"), tmp_path / "out")
    with pytest.raises(
        CheckFailed, match=r"0 rows of t.jsonl matched an image. It names x, y, z;.* a.png, b.png, c.png"
    ):
        run(given_input(lines({"image": name, "text": "t"} for name in "xyz"), "t.jsonl"), tmp_path / "out")


def test_images_without_captions_may_be_taken_along(tmp_path, given_input):
    text = "image,caption\na.png,x\n"
    with pytest.raises(CheckFailed, match=r"2 of 3 images have no row .* Set input.unlisted_images to empty or reject"):
        run(given_input(text), tmp_path / "out")
    run(given_input(text, unlisted_images="empty"), tmp_path / "out")
    assert captions_of(tmp_path / "out") == {"a.png": ["x"], "b.png": [], "c.png": []}


def test_images_without_a_class_are_kept_where_asked_for(tmp_path, given_input):
    text = "image,label\na.png,x\nb.png,y\n"
    with pytest.raises(
        CheckFailed, match=r"1 of 3 images have no row .* Set input.unlisted_images to reject or unlabeled"
    ):
        run(given_input(text), tmp_path / "fail")
    manifest = run(given_input(text, unlisted_images="unlabeled"), tmp_path / "out")
    assert (manifest.labels, manifest.totals["written"]) == ("single", 3)
    labels = {key: example["image/class/label"].tolist() for key, example in examples(tmp_path / "out").items()}
    assert labels == {"a.png": [0], "b.png": [1], "c.png": []}
    with pytest.raises(ConfigError, match="'unlabeled' is for images of one class; here an image without classes"):
        run(given_input(text.replace("x", "x|y"), unlisted_images="unlabeled"), tmp_path / "multi")


# --- no labels at all ------------------------------------------------------------------------------------------------


def test_images_alone_are_a_dataset(tmp_path, given_input):
    raw = given_input("x")
    raw["input"]["labels"] = {"format": "none"}
    manifest = run(raw, tmp_path / "out")
    assert (manifest.labels, manifest.classes, manifest.totals["written"]) == ("none", (), 3)
    dataset = ImageDataset.open(tmp_path / "out")
    assert sorted(key for split in dataset.splits for key in dataset.keys(split)) == KEYS


def test_images_alone_have_neither_classes_nor_masks(given_input):
    raw = given_input("x", classes=["a"])
    raw["input"]["labels"] = {"format": "none"}
    with pytest.raises(ConfigError, match=r"input\.classes: none contains no classes"):
        parse_config(raw, base="/")
    raw["input"]["classes"] = None
    with pytest.raises(ConfigError, match="none contains no masks for the task segmentation"):
        parse_config({**raw, "task": "segmentation"}, base="/")
