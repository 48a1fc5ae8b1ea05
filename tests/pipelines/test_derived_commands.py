"""Datasets made of the records of others: what is taken, that it keeps its bytes, and that twice is once."""

import dataclasses
import json
import shutil
import unicodedata
from collections import Counter

import pytest
from damage import swap_records
from ingesting import examples, ledger, run, tree

from shardwright.dataset.reader import ImageDataset
from shardwright.dataset.train_statistics import dataset_statistics
from shardwright.edit import derive as derived
from shardwright.edit.derive import Derived, derive
from shardwright.edit.relabel_dataset import relabel
from shardwright.errors import DatasetError, UsageError
from shardwright.pipelines.cli import main
from shardwright.storage.checksum import checksum_of
from shardwright.storage.own_names import LOCK_FILE, MARK
from shardwright.verify import verify


@pytest.fixture(scope="module")
def source(small_dataset, tmp_path_factory):
    root = tmp_path_factory.mktemp("source")
    return small_dataset(root, task="classification", counts={"train": [20, 10], "eval": [10]})


def made(arguments, capsys):
    assert main([*map(str, arguments), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def records(root):
    dataset = ImageDataset.open(root)
    return {key: data for split in dataset.splits for key, data in dataset.records(split)}


def whole(root):
    report = verify(root, workers=1, deep=True, quiet=True)
    assert report.findings == ()


def test_reshard_changes_no_record_and_no_order(source, tmp_path, capsys):
    found = made(["reshard", source, "--out", tmp_path / "new", "--shard-records", 7], capsys)
    assert found["shards"] == 5 + 2
    whole(tmp_path / "new")
    assert list(records(tmp_path / "new").items()) == list(records(source).items())
    before = tree(tmp_path / "new")
    assert found.pop("existed") is False
    again = made(["reshard", source, "--out", tmp_path / "new", "--shard-records", 7], capsys)
    assert again == {**found, "existed": True}
    assert main(["reshard", str(source), "--out", str(tmp_path / "new"), "--shard-records", "7"]) == 0
    assert "it was there already" in capsys.readouterr().out
    made(["reshard", source, "--out", tmp_path / "again", "--shard-records", 7], capsys)
    assert tree(tmp_path / "again") == tree(tmp_path / "new") == before
    assert main(["reshard", str(source), "--out", str(tmp_path / "new"), "--shard-records", "8"]) == 2


def test_a_call_after_a_kill_deletes_what_that_one_had_staged(source, tmp_path, capsys):
    command = ["reshard", source, "--out", tmp_path / "new", "--shard-records", 7]
    made(command, capsys)
    before = tree(tmp_path / "new")
    # A kill after the dataset has appeared leaves the staging folder of this one, or of another call.
    for name in (ImageDataset.open(tmp_path / "new").manifest.fingerprint, "f" * 64):
        (tmp_path / ".new.staging" / name / "done").mkdir(parents=True)
        (tmp_path / ".new.staging" / name / LOCK_FILE).write_bytes(MARK)
    assert made(command, capsys)["existed"] is True
    assert [place.name for place in tmp_path.iterdir()] == ["new"]
    assert tree(tmp_path / "new") == before


def swap_first(root):
    """Puts two records of a shard into each other's places."""
    assert any(swap_records(shard) for shard in sorted(root.glob("Split-train/*")))


def swap_keys(root):
    """The same of two keys in an index."""
    index = min(root.glob("index/Split-train/*"))
    one, other, *rest = [json.loads(line) for line in index.read_text().splitlines()]
    one["key"], other["key"] = other["key"], one["key"]
    index.write_text("".join(json.dumps(row) + "\n" for row in (one, other, *rest)))


OTHERS = {"swapped records": swap_first, "swapped keys": swap_keys}


@pytest.mark.parametrize("what", OTHERS)
@pytest.mark.parametrize(
    "command",
    [["reshard", "DS", "--shard-records", "4"], ["subset", "DS", "--share", "0.5"], ["merge", "DS"],
     ["forget", "DS", "--keys", "KEYS"], ["relabel", "DS", "CSV"]],
    ids=lambda command: command[0],
)  # fmt: skip
def test_nothing_is_taken_out_of_what_is_not_the_manifests(source, tmp_path, capsys, command, what):
    """Sizes and checksums of records fit: only the hash of the whole file differs."""
    root = tmp_path / "ds"
    shutil.copytree(source, root)
    keys = ImageDataset.open(source).keys("train")
    (tmp_path / "keys").write_text(f"{keys[-1]}\n")
    rows = [f"{key},{('Fish', 'Sugar')[number % 2]}" for number, key in enumerate(ledger(source))]
    (tmp_path / "new.csv").write_text("\n".join(["image,label", *rows]))
    places = {"DS": str(root), "KEYS": str(tmp_path / "keys"), "CSV": str(tmp_path / "new.csv")}
    call = [*(places.get(part, part) for part in command), "--out", str(tmp_path / "new")]
    OTHERS[what](root)
    assert main(call) == 1
    assert "the manifest" in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ds", "keys", "new.csv"]
    shutil.rmtree(root)
    shutil.copytree(source, root)
    assert main(call) == 0
    whole(tmp_path / "new")
    made = tree(tmp_path / "new")
    shutil.rmtree(tmp_path / "new")
    assert main([part.replace(str(root), str(source)) for part in call]) == 0
    assert tree(tmp_path / "new") == made


def test_inside_of_a_dataset_is_no_place_for_another(source, tmp_path, capsys):
    (tmp_path / "link").symlink_to(source)
    for out in (source / "below", tmp_path / "link/deep/below"):
        assert main(["reshard", str(source), "--shard-count", "1", "--out", str(out)]) == 2
        assert f"{out}: is inside the dataset {source}" in capsys.readouterr().err
    whole(source)


def test_what_was_finished_before_a_shard_turned_out_to_be_another_is_not_taken_up(source, tmp_path):
    root = tmp_path / "ds"
    shutil.copytree(source, root)
    swap_first(root)
    call = ["reshard", str(root), "--shard-records", "2", "--out", str(tmp_path / "new")]
    assert main(call) == 1
    shutil.rmtree(root)
    shutil.copytree(source, root)
    assert main(call) == 0
    assert records(tmp_path / "new") == records(source)


def test_another_ledger_is_no_part_of_it(image_input, tmp_path, capsys):
    raw = image_input(tmp_path / "in", layout="label_csv", images=6)
    (tmp_path / "in/images/005.jpg").write_bytes(b"broken")
    run(raw, tmp_path / "ds", workers=1)
    (file,) = [path for path in (tmp_path / "ds/ledger").iterdir() if b"rejected" in path.read_bytes()]
    file.write_bytes(file.read_bytes().replace(b"005.jpg", b"004.jpg"))
    assert main(["reshard", str(tmp_path / "ds"), "--shard-count", "1", "--out", str(tmp_path / "new")]) == 1
    assert f"{file}: not a readable ledger" in capsys.readouterr().err


def test_a_subset_has_the_same_part_of_every_split_and_class(source, tmp_path, capsys):
    made(["subset", source, "--share", 0.4, "--out", tmp_path / "part"], capsys)
    whole(tmp_path / "part")
    part = examples(tmp_path / "part")
    counts = Counter((key.split("/")[0], int(example["image/class/label"][0])) for key, example in part.items())
    assert counts == {("train", 0): 6, ("train", 1): 6, ("eval", 0): 2, ("eval", 1): 2}
    assert records(tmp_path / "part").items() <= records(source).items()
    assert set(ledger(tmp_path / "part")) == set(part)
    made(["subset", source, "--share", 0.4, "--seed", 1, "--out", tmp_path / "other"], capsys)
    assert set(examples(tmp_path / "other")) != set(part)
    made(["subset", source, "--classes", "Sugar", "--splits", "eval", "--out", tmp_path / "few"], capsys)
    assert {(key.split("/")[0], int(e["image/class/label"][0])) for key, e in examples(tmp_path / "few").items()} == {
        ("eval", 1)
    }


@pytest.mark.parametrize(
    ("options", "output"),
    [
        (["--classes", "Bird"], "no class 'Bird'"),
        (["--splits", "dev"], "no split 'dev'"),
        (["--share", "2"], "--share: 2.0 is out of range"),
        (["--share", "0.5", "--count", "3"], "exclude each other"),
        (["--keys", "/nowhere"], "cannot be read"),
        (["--count", "0"], "--count: 0 is too small"),
        (["--count", "-3"], "--count: -3 is too small"),
    ],
)
def test_what_a_subset_refuses(source, tmp_path, capsys, options, output):
    assert main(["subset", str(source), "--out", str(tmp_path / "no"), *options]) == 2
    assert output in capsys.readouterr().err
    assert not (tmp_path / "no").exists()


def test_a_file_of_keys_is_read_as_keys_are_written(small_dataset, tmp_path, capsys):
    keys = ["é\u2028.jpg", "b \x0b.jpg", "c.jpg", "d.jpg"]
    source = small_dataset(tmp_path, counts={"train": [4]}, key_of=lambda split, number: keys[number])
    text = unicodedata.normalize("NFD", "\ufeff" + "\r\n".join(keys[:3]) + "\n\n")
    (tmp_path / "keys").write_bytes(text.encode())
    made(["subset", source, "--keys", tmp_path / "keys", "--out", tmp_path / "part"], capsys)
    assert set(records(tmp_path / "part")) == set(keys[:3])
    (tmp_path / "keys").write_bytes(f"{text}e.jpg".encode())
    for command in ("subset", "forget"):
        call = [command, str(source), "--keys", str(tmp_path / "keys"), "--out", str(tmp_path / "no")]
        assert main(call) == 2
        assert "keys: not in the dataset: 1 of 4 keys, e.g. e.jpg." in capsys.readouterr().err
    assert not (tmp_path / "no").exists()


def test_two_parts_merge_into_the_whole(source, tmp_path, capsys):
    keys = sorted(records(source))
    (tmp_path / "keys").write_text("\n".join(keys[:15]) + "\n")
    made(["subset", source, "--keys", tmp_path / "keys", "--out", tmp_path / "one"], capsys)
    made(["forget", source, "--keys", tmp_path / "keys", "--out", tmp_path / "rest"], capsys)
    assert sorted(records(tmp_path / "one")) == keys[:15]
    made(["merge", tmp_path / "one", tmp_path / "rest", "--out", tmp_path / "both"], capsys)
    whole(tmp_path / "both")
    assert records(tmp_path / "both") == records(source)
    assert main(["merge", str(source), str(tmp_path / "one"), "--out", str(tmp_path / "twice")]) == 2
    assert "15 keys are in another source, too" in capsys.readouterr().err


def test_one_key_of_another_source_is_too_many_and_a_shard_of_one_record_is_taken(small_dataset, tmp_path, capsys):
    sources = [
        small_dataset(tmp_path / name, task="classification", counts={"train": [1]}, key_of=lambda *_: "same")
        for name in ("one", "other")
    ]
    assert main(["merge", *map(str, sources), "--out", str(tmp_path / "twice")]) == 2
    assert "1 key is in another source, too, e.g. 'same'" in capsys.readouterr().err
    made(["reshard", sources[0], "--out", tmp_path / "new", "--shard-count", 1], capsys)
    assert records(tmp_path / "new") == records(sources[0])


def test_a_merge_puts_no_image_into_two_splits(small_dataset, tmp_path, capsys):
    def dataset(name, images):
        """A dataset of keys and bytes; an image of upper-case bytes has the second class."""
        keys = sorted(images)

        def change(number, example):
            data = images[keys[number]].lower().encode()
            label = int(images[keys[number]].isupper())
            shown = {"image/encoded": data, "image/blake3": checksum_of(data).encode()}
            return {**example, **shown, "image/class/label": label, "image/class/text": (b"Fish", b"Sugar")[label]}

        counts = {split: [sum(key.startswith(split) for key in keys)] for split in ("test", "train")}
        options = {"task": "classification", "counts": counts, "change": change}
        return small_dataset(tmp_path / name, key_of=lambda _, number: keys[number], **options)

    one = dataset("one", {"train/a": "a", "train/b": "b", "train/e": "e", "test/c": "c", "train/f": "f", "test/f": "f"})
    two = dataset("two", {"train/n": "n", "train/b2": "b", "train/c2": "c", "test/a2": "A", "test/e2": "e"})
    found = made(["merge", one, two, "--out", tmp_path / "both"], capsys)
    left = {key: row for key, row in ledger(tmp_path / "both").items() if row.status == "duplicate"}
    assert {key: (row.code, row.split) for key, row in left.items()} == {
        "test/a2": ("conflicting_duplicates", "train"),
        "test/e2": ("exact_duplicate", "train"),
        "train/c2": ("exact_duplicate", "test"),
    }
    assert left["test/e2"].reason == "has the same bytes as train/e, which is kept in train; it was in test"
    assert records(tmp_path / "both") == {
        key: data for place in (one, two) for key, data in records(place).items() if key not in left
    }
    assert (found["left_out"], found["kept_twice"], found["totals"]["inputs"]) == (3, 1, 11)
    assert verify(tmp_path / "both", workers=1, quiet=True).findings == ()
    assert main(["merge", str(one), str(two), "--out", str(tmp_path / "both")]) == 0
    out = capsys.readouterr().out
    assert "  3 images are left out, as duplicates in the ledger: test/a2 has the same bytes as train/a, which" in out
    assert "  1 image has the bytes of another in the same split; all are kept" in out
    # Equal images within one dataset stay: its own ingest decided about them.
    assert made(["merge", one, "--out", tmp_path / "same"], capsys)["totals"]["written"] == 6


def test_what_was_rejected_stays_in_the_ledger(image_input, tmp_path, capsys):
    raw = image_input(tmp_path / "in", layout="label_csv", images=4)
    (tmp_path / "in/images/002.jpg").write_bytes(b"broken")
    run(raw, tmp_path / "ds", workers=1)
    made(["reshard", tmp_path / "ds", "--out", tmp_path / "new", "--shard-count", 1], capsys)
    assert ledger(tmp_path / "new")["002.jpg"].code == "not_an_image"
    assert len(ledger(tmp_path / "new")) == 4


def test_an_input_that_one_source_has_written_has_one_row(image_input, tmp_path, capsys, monkeypatch):
    raw = {**image_input(tmp_path / "in", layout="label_csv", images=4), "rejects": {"max_fraction": 1.0}}
    images = tmp_path / "in/images"
    sound = (images / "002.jpg").read_bytes()
    for name in ("002.jpg", "003.jpg"):
        (images / name).write_bytes(b"broken")
    run(raw, tmp_path / "one", workers=1)
    (images / "002.jpg").write_bytes(sound)
    for name in ("000.jpg", "001.jpg"):
        (images / name).unlink()
    run(raw, tmp_path / "two", workers=1)
    for order in (["one", "two"], ["two", "one"]):
        out = tmp_path / "-".join(order)
        made(["merge", *(tmp_path / name for name in order), "--out", out], capsys)
        whole(out)
        rows = [(row.key, row.status) for row in ImageDataset.open(out).ledger() if row.key.endswith(".jpg")]
        assert rows == [*((f"{i:03d}.jpg", "written") for i in range(3)), ("003.jpg", "rejected")]
    # Earlier versions kept them all, which `verify` reports.
    rows_of = derived._rows
    monkeypatch.setattr(
        derived, "_rows", lambda sources, *given: [row for one in sources for row in rows_of([one], *given)]
    )
    made(["merge", tmp_path / "one", tmp_path / "two", "--out", tmp_path / "rows"], capsys)
    found = [(one.key, one.problem) for one in verify(tmp_path / "rows", workers=1, quiet=True).findings]
    assert found == [(f"{i:03d}.jpg", "another row of this key") for i in range(4)]


READ = [
    ("ingest", {"images": {"encoding": "raw"}}, "images.encoding is 'raw', and that of .* is 'keep'"),
    ("ingest", {"images": {"resize": "stretch", "size": [8, 8]}}, "images.resize is 'stretch'"),
    ("ingest", {"images": {"orientation": "apply"}}, "images.orientation"),
    ("ingest", {"features": {"preset": "tfds"}}, "features.preset"),
    ("transform", {"encoding": "raw"}, r"transform.encoding is 'raw', and that of .* is 'jpeg'"),
    ("transform", {"size": [8, 8]}, r"transform.size is \[8, 8\], and that of .* is \[9, 9\]"),
    ("transform", {"masks": "png"}, "transform.masks"),
    ("transform", {"labels": "one_hot"}, "transform.labels"),
    ("transform", {"text": {"caption": {"vocabulary": 9}}}, "transform.text"),
]


@pytest.mark.parametrize(("kind", "recipe", "problem"), READ)
def test_options_that_readers_use_are_the_same_in_all_sources(source, tmp_path, kind, recipe, problem):
    one, other = (with_recipe(source, kind, changed) for changed in ({}, recipe))
    with pytest.raises(UsageError, match=rf"{source}: its {problem}.*Make both with the same configuration"):
        derive([one, other], tmp_path / "no", Derived("merge", {}), quiet=True)


def test_the_vocabulary_of_another_dataset_is_another(source, tmp_path):
    one, other = (with_recipe(source, "transform", {"text": {"caption": {"vocabulary": 9}}}, a * 64) for a in "ab")
    with pytest.raises(UsageError, match=r"its texts have another vocabulary .* Merge the ingested datasets, then"):
        derive([one, other], tmp_path / "no", Derived("merge", {}), quiet=True)


def test_other_options_do_not_matter(source, small_dataset, tmp_path):
    keys = {"train": [3]}
    more = small_dataset(tmp_path, task="classification", counts=keys, key_of=lambda split, number: f"more/{number}")
    one, other = (
        with_recipe(place, "ingest", {"images": images, "split": {"seed": 1}})
        for place, images in ((source, {"quality": 80, "encoding": "keep"}), (more, {"max_pixels": 10**9}))
    )
    made = derive([one, other], tmp_path / "new", Derived("merge", {}), quiet=True)
    assert made.totals["written"] == 43
    # A model that is trained on it answers images of as many pixels as any of its images may have.
    assert made.recipe["images"] == {"quality": 80, "encoding": "keep", "max_pixels": 10**9}


def with_recipe(root, kind, recipe, parent="0" * 64):
    dataset = ImageDataset.open(root)
    recipe = {"encoding": "jpeg", "resize": "stretch", "size": [9, 9], **recipe} if kind == "transform" else recipe
    manifest = dataclasses.replace(dataset.manifest, kind=kind, recipe=recipe, parent=parent)
    return dataclasses.replace(dataset, manifest=manifest)


FIGURES = {
    "mean": [1.0, 2.0, 3.0], "std": [1.0, 1.0, 1.0], "images": 30, "class_frequency": {"Fish": 0.5}, "size": [24, 36],
    "policy": "keep", "ingested": {"encoding": "jpeg", "quality": 80},
}  # fmt: skip
HELD = {name: FIGURES[name] for name in ("size", "policy", "ingested")}


def transformed(small_dataset, root, figures, first=0):
    """A transformed dataset whose images kept their size."""

    def key_of(split, number):
        return f"{first + number}.png"

    place = small_dataset(root, task="classification", counts={"train": [20], "eval": [10]}, key_of=key_of)
    found = with_recipe(place, "transform", {"resize": "keep", "size": None})
    (place / "statistics.json").write_text(json.dumps(figures))
    return found


@pytest.mark.parametrize(
    ("choose", "held"),
    [(lambda key: True, FIGURES), (lambda key: len(key) == 5, HELD)],
    ids=["reshard", "subset"],
)
def test_a_transformed_dataset_keeps_the_statistics_that_hold(small_dataset, tmp_path, choose, held):
    source = transformed(small_dataset, tmp_path / "in", FIGURES)
    derive([source], tmp_path / "new", Derived("any", {}, choose), quiet=True)
    assert json.loads((tmp_path / "new" / "statistics.json").read_text()) == held
    if held is HELD:
        with pytest.raises(DatasetError, match=r"statistics\.json: .*no mean and no std"):
            dataset_statistics(tmp_path / "new")


@pytest.mark.parametrize(
    ("change", "size"),
    [({}, [24, 36]), ({"size": [9, 9]}, None), ({"ingested": {"encoding": "jpeg"}}, [24, 36]), ({"ingested": {}}, "")],
)
def test_a_merge_keeps_the_statistics_that_all_have(small_dataset, tmp_path, change, size):
    one = transformed(small_dataset, tmp_path / "one", FIGURES)
    other = transformed(small_dataset, tmp_path / "other", {**FIGURES, **change}, first=100)
    if size == "":
        with pytest.raises(UsageError, match=r"images\.encoding of its ingest is the default, and .* 'jpeg'\. Make"):
            derive([one, other], tmp_path / "new", Derived("merge", {}), quiet=True)
        return
    derive([one, other], tmp_path / "new", Derived("merge", {}), quiet=True)
    assert json.loads((tmp_path / "new" / "statistics.json").read_text()) == {**HELD, "size": size}


def test_a_transformed_dataset_is_not_relabeled(source, tmp_path):
    (tmp_path / "new.csv").write_text("image,label\ntrain/0000,Fish\n")
    with pytest.raises(UsageError, match=r"is a transformed dataset, .* Relabel the ingested dataset, then transform"):
        relabel(with_recipe(source, "transform", {}), str(tmp_path / "new.csv"), str(tmp_path / "no"), quiet=True)


def test_other_classes_do_not_merge(source, small_dataset, tmp_path, capsys):
    other = small_dataset(tmp_path / "other", task="classification", classes=("Fish", "Salt"))
    assert main(["merge", str(source), str(other), "--out", str(tmp_path / "no")]) == 2
    assert "its classes are not those of" in capsys.readouterr().err
    masks = small_dataset(tmp_path / "masks", task="segmentation")
    assert main(["merge", str(source), str(masks), "--out", str(tmp_path / "no")]) == 2
    assert f"its task is not that of {source}: 'segmentation', not 'classification'." in capsys.readouterr().err
