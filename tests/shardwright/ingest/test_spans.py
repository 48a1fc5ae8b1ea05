"""Deliveries: the newest span or a range of them, images delivered twice, tables of several spans."""

import csv
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from ingesting import config, examples, ledger, run, tree
from PIL import Image

from shardwright.dataset.reader import ImageDataset
from shardwright.errors import CheckFailed, UsageError
from shardwright.ingest import ingest, input_fingerprint, locate
from shardwright.masks import rle


def draw(file, number):
    file.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.random.default_rng(number).integers(0, 256, (6, 9, 3), dtype=np.uint8)).save(file)


def deliver(root, span, numbers, changed=(), label=lambda n: ("cat", "dog")[n % 2], header=("image", "label")):
    """A delivery as folder `span`: images, some with other bytes than before, and their table."""
    folder = root / str(span)
    for number in numbers:
        draw(folder / "images" / f"{number:02d}.png", number + 100 * span if number in changed else number)
    rows = [[f"{number:02d}.png", label(number)] for number in numbers]
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "labels.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])


def raw(root, **options):
    return {
        "task": "classification",
        "input": {
            "images": str(root / "{SPAN}" / "images"),
            "labels": {"path": str(root / "{SPAN}" / "labels.csv")},
            **options,
        },
        "evaluator": {"split": "eval"},
    }


def notes_of(options, out):
    notes = []
    ingest(config(options), out, quiet=True, log=notes.append)
    return notes


def texts(out):
    return {key: example["image/class/text"][0].decode() for key, example in examples(out).items()}


def sources(root, out):
    """Key -> span whose file was written."""
    found = {}
    for key, example in examples(out).items():
        name = key.rpartition("/")[2]
        folders = [f for f in root.iterdir() if (f / "images" / name).exists()]
        same = [int(f.name) for f in folders if (f / "images" / name).read_bytes() == example["image/encoded"][0]]
        found[key] = max(same)
    return found


def test_the_newest_span_is_read_and_logged(tmp_path):
    deliver(tmp_path / "in", 9, range(10))
    deliver(tmp_path / "in", 10, range(5, 20))
    notes = notes_of(raw(tmp_path / "in"), tmp_path / "out")
    assert sorted(ledger(tmp_path / "out")) == [f"{n:02d}.png" for n in range(5, 20)]
    assert "input.images: span 10" in notes
    assert str(tmp_path) not in ImageDataset.open(tmp_path / "out").manifest.to_json()


def test_a_span_by_number_equals_a_folder_by_name(tmp_path):
    deliver(tmp_path / "in", 9, range(10))
    deliver(tmp_path / "in", 10, range(5, 20))
    run(raw(tmp_path / "in", span=9), tmp_path / "number")
    folder = tmp_path / "in" / "9"
    run(
        raw(tmp_path / "in", images=str(folder / "images"), labels={"path": str(folder / "labels.csv")}),
        tmp_path / "name",
    )
    assert tree(tmp_path / "number") == tree(tmp_path / "name")


def test_an_image_delivered_again_keeps_its_key_and_its_split(tmp_path):
    deliver(tmp_path / "in", 1, range(30))
    run(raw(tmp_path / "in"), tmp_path / "first")
    deliver(tmp_path / "in", 2, range(33))
    run(raw(tmp_path / "in"), tmp_path / "second")
    before = {key: row.split for key, row in ledger(tmp_path / "first").items()}
    after = {key: row.split for key, row in ledger(tmp_path / "second").items()}
    assert {key: after[key] for key in before} == before


def test_a_span_that_has_no_images_yet_is_passed_over_and_logged(tmp_path):
    deliver(tmp_path / "in", 3, range(10))
    (tmp_path / "in" / "4" / "images").mkdir(parents=True)
    (tmp_path / "in" / "5").mkdir()
    notes = notes_of(raw(tmp_path / "in"), tmp_path / "out")
    assert len(ledger(tmp_path / "out")) == 10
    assert [note for note in notes if "input.images" in note] == [
        "input.images: span 5 contains no file yet and is passed over",
        "input.images: span 4 contains no file yet and is passed over",
        "input.images: span 3",
    ]


def test_the_newest_version_of_a_span_is_read_or_the_one_that_is_asked_for(tmp_path):
    for version, numbers in ((1, range(4)), (2, range(8)), (10, range(6))):
        deliver(tmp_path / "in" / "7", version, numbers)
    images = {"images": str(tmp_path / "in/{SPAN}/{VERSION}/images")}
    images["labels"] = {"path": str(tmp_path / "in/{SPAN}/{VERSION}/labels.csv")}
    assert "input.images: span 7, version 10" in notes_of(raw(tmp_path, **images), tmp_path / "newest")
    assert len(ledger(tmp_path / "newest")) == 6
    run(raw(tmp_path, **images, version=2), tmp_path / "second")
    assert len(ledger(tmp_path / "second")) == 8
    with pytest.raises(UsageError, match=r"input.span newest and input.version 3; there are: span 7, version 1, "):
        run(raw(tmp_path, **images, version=3), tmp_path / "none")


def test_a_range_is_merged_and_every_file_has_its_row(tmp_path):
    deliver(tmp_path / "in", 1, range(10))
    deliver(tmp_path / "in", 2, range(5, 15), changed={6})
    deliver(tmp_path / "in", 3, range(14, 20), changed={14})
    deliver(tmp_path / "in", 4, range(20, 30))
    notes = notes_of(raw(tmp_path / "in", span=[1, 3]), tmp_path / "out")
    rows = ledger(tmp_path / "out")
    totals = ImageDataset.open(tmp_path / "out").manifest.totals
    assert totals["inputs"] == totals["written"] + totals["duplicate"] == 26
    assert totals["written"] == 20
    assert totals["duplicate/delivered_again"] == 4
    assert totals["duplicate/superseded"] == 2
    assert rows["1/06.png"].code == rows["2/14.png"].code == "superseded"
    assert rows["1/06.png"].reason == "span 2 has other bytes for this key"
    assert rows["1/07.png"].code == "delivered_again"
    assert sources(tmp_path / "in", tmp_path / "out")["06.png"] == 2
    assert sources(tmp_path / "in", tmp_path / "out")["14.png"] == 3
    assert "input: 4 files were delivered again, 2 replaced by a later span" in notes
    assert all(str(tmp_path) not in row.reason for row in rows.values())


def test_all_reads_every_span(tmp_path):
    for span in range(4):
        deliver(tmp_path / "in", span, range(span * 5, span * 5 + 5))
    run(raw(tmp_path / "in", span="all"), tmp_path / "out")
    assert sorted(ledger(tmp_path / "out")) == [f"{n:02d}.png" for n in range(20)]


def test_other_bytes_fail_where_they_shall(tmp_path):
    deliver(tmp_path / "in", 1, range(10))
    deliver(tmp_path / "in", 2, range(5, 15))
    run(raw(tmp_path / "in", span="all", on_conflict="fail"), tmp_path / "agree")
    deliver(tmp_path / "in", 2, range(5, 15), changed={6, 7})
    with pytest.raises(
        CheckFailed, match=r"2 images have other bytes in another span: 06.png in span 1 and span 2; 07"
    ):
        run(raw(tmp_path / "in", span="all", on_conflict="fail"), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_tables_that_disagree_fail_where_they_shall(tmp_path):
    deliver(tmp_path / "in", 1, range(10))
    deliver(tmp_path / "in", 2, range(5, 15), label=lambda n: "dog" if n == 8 else ("cat", "dog")[n % 2])
    with pytest.raises(CheckFailed, match=r"labels.csv has different rows for 08.png in span 1 and span 2"):
        run(raw(tmp_path / "in", span="all", on_conflict="fail"), tmp_path / "out")


def test_the_newest_rows_of_an_image_count_and_that_is_logged(tmp_path):
    deliver(tmp_path / "in", 1, range(10), label=lambda n: "cat")
    deliver(tmp_path / "in", 2, range(5, 15), label=lambda n: "dog", header=("filename", "label"))
    with pytest.raises(UsageError, match=r"1/labels.csv: has no column 'filename', as .*2/labels.csv has"):
        run(raw(tmp_path / "in", span="all"), tmp_path / "out")
    deliver(tmp_path / "in", 2, range(5, 15), label=lambda n: "dog")
    notes = notes_of(raw(tmp_path / "in", span="all"), tmp_path / "out")
    assert texts(tmp_path / "out") == {f"{n:02d}.png": "cat" if n < 5 else "dog" for n in range(15)}
    assert "labels: 5 images have rows in several spans; those of the newest count" in notes


def test_masks_of_several_spans_are_those_of_the_newest_table(tmp_path):
    for span, start in ((1, 1), (2, 10)):
        deliver(tmp_path / "in", span, range(4))
        rows = [f"{n:02d}.png_{name},{start + i} 2" for n in range(4) for i, name in enumerate(("Fish", "Sugar"))]
        rows = rows if span == 1 else [row for row in rows if not row.startswith(("00", "01.png_Sugar"))]
        (tmp_path / "in" / str(span) / "labels.csv").write_text("\n".join(["Image_Label,EncodedPixels", *rows]) + "\n")
    run({**raw(tmp_path / "in", span="all"), "task": "segmentation"}, tmp_path / "out")
    found = examples(tmp_path / "out")
    masks = {
        key: [rle.from_flat(example[f"image/segmentation/{name}/rle"]).tolist() for name in ("Fish", "Sugar")]
        for key, example in found.items()
    }
    assert masks == {
        "00.png": [[[0, 2]], [[1, 2]]],
        "01.png": [[[9, 2]], []],
        "02.png": [[[9, 2]], [[10, 2]]],
        "03.png": [[[9, 2]], [[10, 2]]],
    }


def test_with_span_keeps_both_and_puts_the_span_into_every_key(tmp_path):
    deliver(tmp_path / "in", 1, range(6), label=lambda n: "cat")
    deliver(tmp_path / "in", 2, range(3, 9), changed={4}, label=lambda n: "dog")
    run(raw(tmp_path / "in", span="all", on_conflict="with_span"), tmp_path / "out")
    written = {f"1/{n:02d}.png": "cat" for n in range(6)} | {f"2/{n:02d}.png": "dog" for n in (4, 6, 7, 8)}
    assert texts(tmp_path / "out") == written
    rows = ledger(tmp_path / "out")
    assert rows["2/03.png"].code == rows["2/05.png"].code == "delivered_again"
    assert rows["2/03.png"].reason == "the same bytes as in span 1"
    deliver(tmp_path / "in", 3, [0, 4])
    shutil.copy(tmp_path / "in/2/images/04.png", tmp_path / "in/3/images/04.png")
    run(raw(tmp_path / "in", span="all", on_conflict="with_span"), tmp_path / "three")
    assert texts(tmp_path / "three") == written
    assert ledger(tmp_path / "three")["3/04.png"].reason == "the same bytes as in span 2"
    run(raw(tmp_path / "in", span=2, on_conflict="with_span"), tmp_path / "one")
    assert sorted(texts(tmp_path / "one")) == [f"2/{n:02d}.png" for n in range(3, 9)]


def test_one_table_does_for_all_spans(tmp_path):
    deliver(tmp_path / "in", 1, range(6))
    deliver(tmp_path / "in", 2, range(6, 12))
    with (tmp_path / "all.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("image", "label"), *((f"{n:02d}.png", "x") for n in range(12))])
    run(raw(tmp_path / "in", span="all", labels={"path": str(tmp_path / "all.csv")}), tmp_path / "out")
    assert texts(tmp_path / "out") == {f"{n:02d}.png": "x" for n in range(12)}


def test_tables_of_spans_over_one_folder_of_images(tmp_path):
    deliver(tmp_path / "in", 1, range(6), label=lambda n: "cat")
    for span, label in ((3, "cat"), (4, "dog")):
        (tmp_path / f"labels-{span}.csv").write_text(
            f"image,label\n{''.join(f'{n:02d}.png,{label}' + chr(10) for n in range(6))}"
        )
    options = {"images": str(tmp_path / "in/1/images"), "labels": {"path": str(tmp_path / "labels-{SPAN}.csv")}}
    assert "input.labels.path: span 4" in notes_of(raw(tmp_path, **options), tmp_path / "out")
    assert set(texts(tmp_path / "out").values()) == {"dog"}
    run(raw(tmp_path, **options, span=3), tmp_path / "three")
    assert set(texts(tmp_path / "three").values()) == {"cat"}


def test_labels_that_are_missing_for_a_span_are_named(tmp_path):
    deliver(tmp_path / "in", 1, range(6))
    for number in range(6):
        draw(tmp_path / "in/2/images" / f"{number:02d}.png", number)
    labels = {"path": str(tmp_path / "tables/{SPAN}.csv")}
    (tmp_path / "tables").mkdir()
    shutil.copy(tmp_path / "in/1/labels.csv", tmp_path / "tables/1.csv")
    with pytest.raises(UsageError, match=r"input.labels.path: nothing at .* for input.span 2; there are: span 1"):
        run(raw(tmp_path / "in", labels=labels), tmp_path / "out")


def test_dates_are_spans_and_may_be_asked_for_as_such(tmp_path):
    for day in ("2024-02-28", "2024-02-29", "2024-03-01"):
        draw(tmp_path / "in" / day / "cat" / f"{day}.png", int(day[-2:]))
        draw(tmp_path / "in" / day / "dog" / f"{day}.png", int(day[-2:]) + 100)
    options = {"images": str(tmp_path / "in/{YYYY}-{MM}-{DD}"), "labels": {}}
    notes = notes_of(raw(tmp_path, **options, span="19781-19782"), tmp_path / "out")
    assert {key.split("/")[1] for key in ledger(tmp_path / "out")} == {"2024-02-28.png", "2024-02-29.png"}
    assert "input.images: span 19782 (2024-02-29)" in notes


def test_the_fingerprint_is_by_content_and_not_by_span(tmp_path):
    deliver(tmp_path / "in", 1, range(8))
    shutil.copytree(tmp_path / "in" / "1", tmp_path / "in" / "2")

    def now(**options):
        read = config(raw(tmp_path / "in", **options))
        return input_fingerprint(read, locate(read))

    assert now(span=1) == now(span=2) == now()
    assert run(raw(tmp_path / "in", span=1), tmp_path / "one") == run(raw(tmp_path / "in"), tmp_path / "two")
    file = tmp_path / "in" / "1" / "images" / "03.png"
    before = now(span="all")
    draw(file, 77)
    assert now() != now(span=1)
    assert now(span="all") != before


def test_the_listing_order_and_the_place_play_no_part(tmp_path, monkeypatch):
    deliver(tmp_path / "in", 1, range(10))
    deliver(tmp_path / "in", 2, range(5, 15), changed={6})
    run(raw(tmp_path / "in", span="all"), tmp_path / "out")
    shutil.copytree(tmp_path / "in", tmp_path / "deep/er")
    scandir = os.scandir

    class Reversed:
        def __init__(self, path):
            with scandir(path) as entries:
                self.entries = sorted(entries, key=lambda entry: entry.name, reverse=True)

        def __enter__(self):
            return iter(self.entries)

        def __exit__(self, *_):
            return None

    monkeypatch.setattr(os, "scandir", Reversed)
    run(raw(tmp_path / "deep/er", span="all"), tmp_path / "out2")
    assert tree(tmp_path / "out") == tree(tmp_path / "out2")


def test_a_link_to_a_folder_outside_is_no_delivery(tmp_path):
    deliver(tmp_path / "in", 1, range(5))
    deliver(tmp_path / "outside", 9, range(5, 10))
    os.symlink(tmp_path / "outside" / "9", tmp_path / "in" / "9")
    run(raw(tmp_path / "in"), tmp_path / "out")
    assert sorted(ledger(tmp_path / "out")) == [f"{n:02d}.png" for n in range(5)]


def test_what_is_refused_in_several_spans_is_named_with_its_span(tmp_path):
    deliver(tmp_path / "in", 1, range(5))
    deliver(tmp_path / "in", 2, range(5, 10))
    for span in (1, 2):
        os.symlink("nowhere", tmp_path / "in" / str(span) / "images" / "broken.png")
        Path(tmp_path / "in" / str(span) / "images" / "notes.bin").write_text(f"hello {span}")
    run(raw(tmp_path / "in", span="all"), tmp_path / "out")
    rows = ledger(tmp_path / "out")
    assert rows["1/broken.png"].code == rows["2/broken.png"].code == "broken_link"
    assert rows["notes.bin"].code == "not_an_image"
    assert rows["1/notes.bin"].code == "superseded"


def test_folders_of_masks_are_read_of_one_span_and_not_joined(tmp_path):
    for span in (1, 2):
        deliver(tmp_path / "in", span, range(4))
        for number in range(4):
            file = tmp_path / "in" / str(span) / "masks" / f"{number:02d}.png"
            file.parent.mkdir(exist_ok=True)
            Image.fromarray(np.full((6, 9), span, np.uint8)).save(file)
    masks = {"labels": {"path": str(tmp_path / "in/{SPAN}/masks")}, "classes": {"sky": 1, "sea": 2}}
    run({**raw(tmp_path / "in", **masks), "task": "segmentation"}, tmp_path / "out")
    for example in examples(tmp_path / "out").values():
        assert example["image/segmentation/sea/area"].tolist() == [54]
    with pytest.raises(UsageError, match=r"2/masks is read as mask_images, .* only CSV tables are joined"):
        run({**raw(tmp_path / "in", **masks, span="all"), "task": "segmentation"}, tmp_path / "all")
