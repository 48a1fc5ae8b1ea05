"""TFRecords as input: every record is an image, with features of any name."""

import pickle
import shutil

import numpy as np
import pytest
from ingesting import changed, config, examples, ledger, run, tree
from recording import PACKINGS, labeled, mask_png, picture, reading, record, write_records

from shardwright.dataset.reader import ImageDataset
from shardwright.errors import CheckFailed, ConfigError, UsageError
from shardwright.ingest import IngestRecipe, ingest, locate, plan_ingest
from shardwright.tfrecords.encode import byte_strings, encode_example, floats, ints
from shardwright.tfrecords.records import frame


def as_lists(found):
    return {key: {name: list(values) for name, values in features.items()} for key, features in found.items()}


@pytest.mark.shared_data
def test_what_the_object_detection_api_wrote_is_read(shared_data, tmp_path):
    notes = []
    ingest(config(reading(shared_data / "golden")), tmp_path / "out", quiet=True, log=notes.append)
    found = examples(tmp_path / "out")
    assert len(found) == 40
    assert all(key.startswith("raccoon-") for key in found)
    one = found["raccoon-129.jpg"]
    assert (one["image/class/text"], one["image/height"].tolist()) == ([b"raccoon"], [315])
    assert one["image/object/bbox/ymin"].tolist() == [pytest.approx(0.07619048)]
    assert one["image/object/class/label"].tolist() == [1]
    assert "image from feature 'image/encoded'" in notes[1]


@pytest.mark.parametrize(
    ("layout", "preset"),
    [
        *(("image_label", preset) for preset in ("tf_vision", "tfds", "rle_text")),
        *((layout, preset) for layout in ("label_csv", "class_folders") for preset in ("tf_vision", "tfds")),
        ("class_folders", "kaggle_flowers"),
    ],
)
def test_a_dataset_of_ours_comes_back_with_keys_classes_and_masks(tmp_path, image_input, layout, preset):
    raw = image_input(tmp_path, layout=layout)
    run(raw, tmp_path / "plain")
    run({**raw, "features": {"preset": preset}}, tmp_path / "first")
    given = {"classes": ["Fish", "Sugar"]} if preset == "tfds" else {}
    back = {**reading(tmp_path / "first", raw["task"], **given), "shards": raw["shards"]}
    manifest = run(back, tmp_path / "second")
    found = as_lists(examples(tmp_path / "second"))
    assert found == as_lists(examples(tmp_path / "plain"))
    assert manifest.classes == ("Fish", "Sugar")
    assert manifest.totals["rejected"] == 0


def test_a_dataset_of_ours_gives_the_very_same_shards(tmp_path, image_input):
    raw = image_input(tmp_path)
    run(raw, tmp_path / "first")
    run({**reading(tmp_path / "first", "segmentation"), "shards": raw["shards"]}, tmp_path / "second")
    shards = [
        {path: digest for path, digest in tree(tmp_path / out).items() if "Split-" in path}
        for out in ("first", "second")
    ]
    assert shards[0] == shards[1]


@pytest.mark.parametrize("packing", sorted(PACKINGS))
def test_files_may_be_compressed(tmp_path, packing):
    write_records(tmp_path / "plain/a.tfrecord", labeled(9))
    write_records(tmp_path / "plain/b.tfrecord", labeled(8, 9))
    write_records(tmp_path / "packed/a.tfrecord", labeled(9), packing)
    write_records(tmp_path / "packed/b.tfrecord", labeled(8, 9))
    run(reading(tmp_path / "plain"), tmp_path / "one")
    run(reading(tmp_path / "packed"), tmp_path / "two")
    assert as_lists(examples(tmp_path / "one")) == as_lists(examples(tmp_path / "two"))
    assert not list(tmp_path.glob(".*"))


def test_a_run_over_compressed_files_goes_on_where_it_was_ended(tmp_path, monkeypatch):
    from shardwright.ingest import run_ingest as ingest_run
    from shardwright.ingest import write_shards as ingest_write

    masks = [mask_png(np.full((10, 12), i % 2)) for i in range(17)]
    payloads = [record(i, key=b"%d" % i, **{"segmentation_mask/Fish": masks[i]}) for i in range(17)]
    write_records(tmp_path / "in/a.tfrecord.gz", payloads, "gzip")
    raw = reading(tmp_path / "in", "segmentation")
    run(raw, tmp_path / "whole")
    written = []

    def interrupted(number, plan, staging, **cores):
        if len(written) == 2:
            raise KeyboardInterrupt
        written.append(number)
        return write(number, plan, staging, **cores)

    write = ingest_write.write_range
    monkeypatch.setattr(ingest_run, "write_range", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(raw, tmp_path / "out")
    monkeypatch.undo()
    run(raw, tmp_path / "out")
    assert tree(tmp_path / "out") == tree(tmp_path / "whole")


@pytest.mark.parametrize("packing", ["plain", "gzip"])
def test_worker_count_and_place_change_nothing(tmp_path, packing):
    for i in range(3):
        write_records(tmp_path / f"in/sub/{i}.rec", labeled(7, 7 * i), packing)
    run(reading(tmp_path / "in"), tmp_path / "one", workers=1)
    shutil.copytree(tmp_path / "in", tmp_path / "moved")
    run(reading(tmp_path / "moved"), tmp_path / "two", workers=2)
    assert tree(tmp_path / "one") == tree(tmp_path / "two")


def test_damaged_records_are_rejected_with_file_number_and_offset_and_nothing_is_lost(tmp_path):
    payloads = labeled(12)
    frames = [frame(payload) for payload in payloads]
    flipped = bytearray(b"".join(frames))
    flipped[len(frames[0]) + 20] ^= 1
    (tmp_path / "in").mkdir()
    (tmp_path / "in/a.tfrecord").write_bytes(flipped)
    cut = bytearray(b"".join(frame(payload) for payload in labeled(4, 20)))
    cut[len(frame(labeled(1, 20)[0]))] ^= 1
    (tmp_path / "in/b.tfrecord").write_bytes(cut)
    (tmp_path / "in/c.tfrecord").write_bytes(b"".join(frame(payload) for payload in labeled(3, 40))[:-7])
    manifest = run(reading(tmp_path / "in"), tmp_path / "out")
    rows = ledger(tmp_path / "out")
    assert rows["a.tfrecord/1"].code == "damaged"
    assert f"a.tfrecord, record 1 at offset {len(frames[0])}: the checksum" in rows["a.tfrecord/1"].reason
    assert rows["b.tfrecord/1"].code == "damaged"
    rest = len(cut) - len(frame(labeled(1, 20)[0]))
    assert f"the rest of the file, {rest} bytes, is not read" in rows["b.tfrecord/1"].reason
    assert (rows["c.tfrecord/2"].code, "cut off" in rows["c.tfrecord/2"].reason) == ("truncated", True)
    assert manifest.totals["inputs"] == len(rows) == 11 + 1 + 1 + 1 + 2 + 1
    assert (manifest.totals["written"], manifest.totals["rejected"]) == (14, 3)
    assert rows["000.jpg"].status == "written"


@pytest.mark.parametrize(
    ("payload", "message"),
    [
        (b"\x0a\x00\x12\x0a\x0a\x08\x0a\x06frames", "SequenceExample"),
        (
            b"\x08\x04\x12\x08\x12\x02\x08\x09\x12\x02\x08\x03\x22\x1b" + b"\0" * 27,
            r"serialized tensor \(uint8, shape \[9, 3\]\)",
        ),
        (picture(1), "the bytes of an image"),
        (b"a.jpg,cat", "text"),
        (b"\x93NUMPY\x01\0", "neither a tf.train.Example"),
        (b"", "empty"),
    ],
)
def test_other_records_are_named_for_what_they_are(tmp_path, payload, message):
    write_records(tmp_path / "in/a.tfrecord", [payload] * 3)
    with pytest.raises(UsageError, match=f"a.tfrecord, record 0 at offset 0: .*{message}"):
        run(reading(tmp_path / "in"), tmp_path / "out")
    write_records(tmp_path / "in/a.tfrecord", [*labeled(3), payload, *labeled(2, 3)])
    run(reading(tmp_path / "in"), tmp_path / "out")
    rows = ledger(tmp_path / "out")
    # An empty record is an Example without features.
    assert rows["a.tfrecord/3"].code == ("no_example" if payload else "no_image")
    assert len(rows) == 6


def test_records_without_a_usable_image_are_rejected(tmp_path):
    no_image = encode_example({"image/class/label": 1, "image/class/text": b"dog"})
    two = encode_example({"image/encoded": byte_strings([picture(1), picture(2)]), "image/class/label": 1})
    pixels = encode_example({"image/encoded": ints([1, 2]), "image/class/label": 1})
    bomb = record(3, **{"image/class/label": 1, "image/class/text": b"dog", "image/encoded": picture(3)[:200]})
    write_records(tmp_path / "in/a.tfrecord", [*labeled(3), no_image, two, pixels, bomb])
    run({**reading(tmp_path / "in"), "rejects": {"max_fraction": 0.6}}, tmp_path / "out")
    codes = {key: row.code for key, row in ledger(tmp_path / "out").items() if row.status != "written"}
    assert codes == {
        "a.tfrecord/3": "no_image",
        "a.tfrecord/4": "no_image",
        "a.tfrecord/5": "no_image",
        "a.tfrecord/6": "truncated",
    }


def test_other_files_next_to_the_records_are_rejected_by_name(tmp_path):
    write_records(tmp_path / "in/a.tfrecord", labeled(3))
    write_records(tmp_path / "in/empty.tfrecord", [])
    write_records(tmp_path / "in/no_ending", labeled(3, 3))
    (tmp_path / "in/readme.md").write_text("hello")
    (tmp_path / "in/broken.tfrecord").write_bytes(b"not a record file at all")
    (tmp_path / "in/broken.tfrecord.gz").write_bytes(b"\x1f\x8b and then nothing of gzip")
    run(reading(tmp_path / "in"), tmp_path / "out")
    rows = ledger(tmp_path / "out")
    codes = {key: row.code for key, row in rows.items() if row.status != "written"}
    assert codes == {"readme.md": "not_records", "broken.tfrecord/0": "damaged", "broken.tfrecord.gz/0": "damaged"}
    assert len(rows) == 9


def test_keys_that_are_missing_unsafe_or_taken_are_replaced_by_file_and_number(tmp_path):
    keys = [
        b"a/x.jpg",
        b"../../etc/passwd",
        b"/etc/passwd",
        b"a//b",
        b"",
        b"a\\b",
        b"a\0b",
        b"a\nb",
        b"\xff",
        b"a/x.jpg",
    ]
    keys += [b"in.tfrecord/3", b"e\xcc\x81.jpg", b"x" * 600, b"good.jpg"]
    payloads = [record(i, label=i % 2, key=key) for i, key in enumerate(keys)]
    payloads.append(record(99, label=1))
    write_records(tmp_path / "in/in.tfrecord", payloads)
    raw = changed(reading(tmp_path / "in"), labels={"columns": {"key": "key"}})
    notes = []
    ingest(config(raw), tmp_path / "out", quiet=True, log=notes.append)
    own = {0: "a/x.jpg", 11: "\u00e9.jpg", 13: "good.jpg"}
    assert set(examples(tmp_path / "out")) == {own.get(i, f"in.tfrecord/{i}") for i in range(15)}
    assert any("12 records have no safe key" in note for note in notes)


def test_a_feature_that_names_groups_is_no_key(tmp_path):
    payloads = [record(i, label=i % 2, id=[b"cow", b"hen"][i // 30 % 2]) for i in range(40)]
    write_records(tmp_path / "in/a.rec", payloads[29:31] + payloads)
    run(reading(tmp_path / "in"), tmp_path / "out")
    assert set(examples(tmp_path / "out")) == {f"a.rec/{i}" for i in range(42)}


def test_whole_numbers_are_keys_too(tmp_path):
    write_records(tmp_path / "in/a.rec", [record(i, label=i % 2, image_id=100 + i) for i in range(4)])
    run(reading(tmp_path / "in"), tmp_path / "out")
    assert set(examples(tmp_path / "out")) == {"100", "101", "102", "103"}


def test_names_of_classes_come_in_the_order_of_their_numbers(tmp_path):
    names = [b"zebra", b"ant", b"cow"]
    write_records(tmp_path / "in/a.rec", [record(i, **{"class": i % 3, "label": names[i % 3]}) for i in range(9)])
    manifest = run(reading(tmp_path / "in"), tmp_path / "out")
    assert manifest.classes == ("zebra", "ant", "cow")
    assert as_lists(examples(tmp_path / "out"))["a.rec/4"]["image/class/label"] == [1]


@pytest.mark.parametrize(
    ("classes", "expected"),
    [(None, ("0", "1", "2")), (["a", "b", "c"], ("a", "b", "c")), ({"c": 2, "a": 0, "b": 1}, ("a", "b", "c"))],
)
def test_numbers_are_classes_and_can_be_named(tmp_path, classes, expected):
    write_records(tmp_path / "in/a.rec", [record(i, target=i % 3) for i in range(9)])
    options = {} if classes is None else {"classes": classes}
    manifest = run(reading(tmp_path / "in", **options), tmp_path / "out")
    assert manifest.classes == expected
    assert manifest.labels == "single"


def test_several_classes_make_a_multi_label_set(tmp_path):
    payloads = [record(i, labels=ints([0, 2] if i % 2 else [1])) for i in range(8)]
    write_records(tmp_path / "in/a.rec", payloads)
    manifest = run(reading(tmp_path / "in"), tmp_path / "out")
    assert manifest.labels == "multi"
    assert as_lists(examples(tmp_path / "out"))["a.rec/1"]["image/class/label"] == [0, 2]


@pytest.mark.parametrize("labels", [[], ["a"], ["a", "b", "a b", ""]])
def test_sets_of_ours_with_no_class_one_or_several_come_back(tmp_path, image_input, labels):
    raw = image_input(tmp_path, layout="label_csv", images=8)
    raw["input"].pop("classes")
    rows = [f"{i:03d}.jpg,{labels[i % len(labels)]},{i}" for i in range(8)] if labels else []
    (tmp_path / "labels.csv").write_text("\n".join(["image,label,depth", *rows]))
    options = {
        "path": str(tmp_path / "labels.csv"),
        "multi_label": True,
        "separator": " ",
        "features": {"depth": "int"},
    }
    raw["input"]["labels"] = options if labels else {"format": "none"}
    first = run(raw, tmp_path / "first")
    second = run(reading(tmp_path / "first"), tmp_path / "second")
    assert as_lists(examples(tmp_path / "first")) == as_lists(examples(tmp_path / "second"))
    assert second.classes == first.classes
    assert second.labels == ("single" if labels == ["a"] else first.labels)


def test_records_without_a_class_are_subject_to_unlisted(tmp_path):
    write_records(tmp_path / "in/a.rec", [*labeled(4), record(9, **{"image/key": b"none.jpg"})])
    with pytest.raises(CheckFailed, match=r"none\.jpg"):
        run(reading(tmp_path / "in"), tmp_path / "out")
    run(reading(tmp_path / "in", unlisted_images="reject"), tmp_path / "out")
    assert ledger(tmp_path / "out")["none.jpg"].code == "unlisted"


def test_further_features_are_carried_through_as_they_are(tmp_path):
    payloads = [
        encode_example(
            {
                "image/encoded": picture(i),
                "label": i % 2,
                "age": i,
                "scores": floats([0.5, i, float("nan")]),
                "site": f"Zürich {i}".encode(),
                "boxes": ints([1, 2, 3]),
                "raw": b"\xff\x00\xfe",
                "mixed": i if i % 2 else b"text",
                "nothing": ints([]),
            }
        )
        for i in range(4)
    ]
    write_records(tmp_path / "in/a.rec", payloads)
    notes = []
    manifest = ingest(config(reading(tmp_path / "in")), tmp_path / "out", quiet=True, log=notes.append)
    found = examples(tmp_path / "out")["a.rec/3"]
    assert (found["age"].tolist(), found["site"], found["boxes"].tolist()) == ([3], ["Zürich 3".encode()], [1, 2, 3])
    assert np.array_equal(found["scores"], np.array([0.5, 3, np.nan], np.float32), equal_nan=True)
    kinds = {name: manifest.features[name] for name in ("age", "site", "boxes", "scores")}
    assert kinds == {"age": "int64", "site": "bytes", "boxes": "int64", "scores": "float32"}
    assert not {"raw", "mixed", "nothing"} & set(manifest.features)
    assert any("not carried through" in note and "mixed, raw" in note for note in notes)


def test_captions_are_texts_about_the_image(tmp_path):
    captions = byte_strings([b"a cat", b"a cat that sleeps"])
    write_records(tmp_path / "in/a.rec", [record(i, caption=captions) for i in range(3)])
    manifest = run(reading(tmp_path / "in"), tmp_path / "out")
    assert manifest.labels == "none"
    assert examples(tmp_path / "out")["a.rec/0"]["image/caption/text"] == [b"a cat", b"a cat that sleeps"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"columns": {"label": "age"}}, None),
        ({"columns": {"label": "none"}}, "input.labels.columns.label.*has no feature 'none'.*age"),
        ({"columns": {"image_label": "age"}}, "input.labels.columns.image_label: no role in a record"),
        ({"path": "x.csv", "columns": {"key": "age"}}, "input.labels.columns.key"),
        ({"format": "tfrecord", "path": "x.csv"}, "input.labels.path"),
        ({}, r"(?s)no feature has a usual name of a class.*\{label: age\}"),
    ],
)
def test_the_user_names_the_feature_of_each_role(tmp_path, options, message):
    write_records(tmp_path / "in/a.rec", [record(i, age=i % 2) for i in range(4)])
    raw = changed(reading(tmp_path / "in"), labels=options)
    if message is None:
        assert run(raw, tmp_path / "out").classes == ("0", "1")
    else:
        with pytest.raises((ConfigError, UsageError), match=message):
            run(raw, tmp_path / "out")


def test_an_input_that_changes_while_it_is_read_ends_the_run(tmp_path, monkeypatch):
    from shardwright.ingest import run_ingest as ingest_run
    from shardwright.ingest import write_shards as ingest_write

    file = write_records(tmp_path / "in/a.rec", labeled(5))
    write = ingest_write.write_range

    def late(number, plan, staging, **cores):
        write_records(file, labeled(5, 50))
        return write(number, plan, staging, **cores)

    monkeypatch.setattr(ingest_run, "write_range", late)
    with pytest.raises(CheckFailed, match=r"a\.rec, bytes \d+ to \d+: the file has changed"):
        run(reading(tmp_path / "in"), tmp_path / "out")


def test_shards_keep_the_splits_of_their_keys(tmp_path, image_input):
    raw = image_input(tmp_path, layout="class_folders")
    run(raw, tmp_path / "first")
    run(reading(tmp_path / "first"), tmp_path / "second")
    first, second = (
        {key: split for split in dataset.splits for key, _ in dataset.records(split)}
        for dataset in (ImageDataset.open(tmp_path / "first"), ImageDataset.open(tmp_path / "second"))
    )
    assert first == second


@pytest.mark.parametrize("packing", ["plain", "gzip"])
def test_pictures_inside_records_are_probed_and_found_twice(tmp_path, packing):
    raw = changed(reading(tmp_path / "in"), labels={"columns": {"key": "key", "label": "label"}})
    write_records(tmp_path / "in/a.rec", [record(i % 7, label=i % 2, key=b"%d.jpg" % i) for i in range(8)], packing)
    raw |= {"images": {"verify": "full"}, "duplicates": {"exact": "first"}}
    manifest = run(raw, tmp_path / "out")
    rows = ledger(tmp_path / "out")
    assert {key for key, row in rows.items() if row.status == "duplicate"} == {"7.jpg"}
    assert manifest.totals["written"] == 7


def test_a_plan_over_records_can_be_sent_to_workers(tmp_path):
    write_records(tmp_path / "in/a.rec", [record(0, **{"segmentation_mask/Fish": picture(1, "png")})])
    for task, folder in (("segmentation", "in"), ("classification", "labeled")):
        write_records(tmp_path / "labeled/a.rec", labeled(3))
        options = config(reading(tmp_path / folder, task))
        plan = plan_ingest(IngestRecipe.of(options), locate(options)).plan
        assert pickle.loads(pickle.dumps(plan)) == plan
