"""Splits of an ingest: those of the input, those of an earlier dataset, and the images that growing data moves."""

import csv
import json
import shutil

import numpy as np
import pytest
from ingesting import config, ledger, run, tree
from PIL import Image

from shardwright.dataset.reader import ImageDataset
from shardwright.errors import CheckFailed, ConfigError, DatasetError, UsageError
from shardwright.ingest import IngestRecipe, ingest
from shardwright.ingest import previous_splits as renamed_images
from shardwright.lineage.record import read_lineage
from shardwright.storage import file_pins


def draw(file, number, size=(8, 8), **options):
    file.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.random.default_rng(number).integers(0, 256, (*size, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(file, **options)


def table(root, rows, header=("image", "label")):
    with (root / "labels.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])


def photos(root, numbers, classes=("cat", "dog", "owl"), **columns):
    """Images of patients, three each, in a table with further columns (each a function of the number)."""
    for number in numbers:
        draw(root / "images" / f"p{number // 3:02d}/{number:03d}.png", number)
    rows = [
        [f"p{n // 3:02d}/{n:03d}.png", classes[n % len(classes)], *(value(n) for value in columns.values())]
        for n in numbers
    ]
    table(root, rows, ("image", "label", *columns))


def raw(root, *, split=None, **changes):
    base = {
        "task": "classification",
        "input": {"images": str(root / "images"), "labels": {"path": str(root / "labels.csv")}},
        "shards": {"records": 7},
        "evaluator": {"split": "eval"},
    }
    return {**base, **({"split": split} if split else {}), **changes}


def placed(out):
    """Key -> split."""
    return {key: row.split for key, row in ledger(out).items() if row.status == "written"}


def notes_of(options, out):
    notes = []
    ingest(config(options), out, quiet=True, log=notes.append)
    return notes


def test_plain_splits_add_nothing_to_recipe_and_notes(tmp_path):
    photos(tmp_path, range(120))
    notes = notes_of(raw(tmp_path), tmp_path / "out")
    assert not [note for note in notes if note.startswith("split")]
    assert ImageDataset.open(tmp_path / "out").manifest.recipe["split"] == {}


METHODS = {
    "hash": {"method": "hash"},
    "group": {"method": "group", "group": {"regex": "^([^/]+)/"}},
    "stratified": {"method": "stratified"},
    "kfold": {"method": "kfold", "num_folds": 4, "fold_index": 1},
}


@pytest.mark.parametrize("method", METHODS)
def test_reencoding_resizing_a_new_column_and_a_moved_root_move_no_image(tmp_path, method):
    photos(tmp_path / "one", range(45))
    split = METHODS[method]
    run(raw(tmp_path / "one", split=split), tmp_path / "before")
    other = tmp_path / "elsewhere" / "two"
    shutil.copytree(tmp_path / "one", other)
    for number, file in enumerate(sorted(other.rglob("*.png"))):
        size = (12, 20) if number % 2 else (8, 8)
        draw(file, number, size, format="jpeg", quality=60)
    with (other / "labels.csv").open(encoding="utf-8") as file:
        rows = list(csv.reader(file))
    table(other, [[*row, i] for i, row in enumerate(rows[1:])], (*rows[0], "temperature"))
    run(raw(other, split=split), tmp_path / "after")
    assert len(placed(tmp_path / "after")) == 45
    assert placed(tmp_path / "after") == placed(tmp_path / "before")


@pytest.mark.parametrize(
    ("method", "previous"),
    [*((method, True) for method in METHODS), *((m, False) for m in METHODS if m != "stratified")],
)
def test_a_tenth_more_data_moves_no_old_image(tmp_path, method, previous):
    photos(tmp_path / "old", range(3, 63))
    run(raw(tmp_path / "old", split=METHODS[method]), tmp_path / "before")
    photos(tmp_path / "new", range(66))  # before and behind the others
    split = {**METHODS[method], **({"keep_from": str(tmp_path / "before")} if previous else {})}
    run(raw(tmp_path / "new", split=split), tmp_path / "after")
    before, after = placed(tmp_path / "before"), placed(tmp_path / "after")
    assert len(after) == 66
    assert {key: after[key] for key in before} == before


def renamed(root, names):
    """Gives images other names, in the folder and in the table."""
    rows = list(csv.reader((root / "labels.csv").open(encoding="utf-8")))[1:]
    for old, new in names.items():
        (root / "images" / old).rename(root / "images" / f"{new}.renamed")
    for new in names.values():
        (root / "images" / f"{new}.renamed").rename(root / "images" / new)
    table(root, [[names.get(name, name), label] for name, label in rows])


def test_an_image_with_another_name_stays_in_its_split_and_those_that_are_gone_are_counted(tmp_path, monkeypatch):
    photos(tmp_path, range(30))
    for number, file in enumerate(sorted((tmp_path / "images").rglob("*.png"))):
        draw(file, number, (8, 8 + number))
    run(raw(tmp_path), tmp_path / "before")
    before = placed(tmp_path / "before")
    kept = {"method": "hash", "salt": "other", "keep_from": str(tmp_path / "before")}
    with monkeypatch.context() as patched:
        # If no image is gone, none is read to be compared.
        patched.setattr(renamed_images, "hash_into", None)
        notes = notes_of(raw(tmp_path, split=kept), tmp_path / "same")
    assert not [note for note in notes if "name" in note or "not there" in note]
    # Numbers that move up are names of other images; the sizes of these images differ.
    names = dict(zip(before, [*list(before)[1:], "last.png"], strict=True))
    renamed(tmp_path, names)
    notes = notes_of(raw(tmp_path, split=kept), tmp_path / "moved")
    assert placed(tmp_path / "moved") == {names[key]: split for key, split in before.items()}
    found = next(note for note in notes if "name" in note)
    assert found.startswith("split: 30 images have other names and stay where the same bytes were: ")
    key = next(key for key, split in before.items() if split == "test")
    draw(tmp_path / "images" / names[key], 99, (9, 9))
    renamed(tmp_path, {names[key]: "new.png"})
    gone = "split: 1 image of the earlier dataset is not there today (test 1)"
    rule = "An image with another name and other bytes counts as new, and may be in another split now"
    assert f"{gone}. {rule}" in notes_of(raw(tmp_path, split=kept), tmp_path / "after")
    (tmp_path / "images/new.png").unlink()
    table(tmp_path, [[name, "cat"] for name in names.values() if name != names[key]])
    assert gone in notes_of(raw(tmp_path, split=kept), tmp_path / "less")


def test_bytes_of_an_image_that_is_gone_count_more_than_a_name(tmp_path):
    """The earlier dataset stores other bytes than those of the files, and another checksum."""
    photos(tmp_path, range(30))
    shutil.copy(tmp_path / "images/p00/000.png", tmp_path / "images/p00/twin.png")
    table(tmp_path, [[key.relative_to(tmp_path / "images"), "cat"] for key in (tmp_path / "images").rglob("*.png")])
    options = {"images": {"encoding": "jpeg", "checksum": "sha256"}}
    run(raw(tmp_path, **options), tmp_path / "before")
    before = placed(tmp_path / "before")
    one, other = (next(key for key in before if key > "p01" and before[key] == name) for name in ("train", "test"))
    renamed(tmp_path, {one: other, other: one, "p00/000.png": "p00/single.png", "p00/twin.png": "x.png"})
    kept = {"method": "hash", "salt": "other", "keep_from": str(tmp_path / "before")}
    notes = notes_of(raw(tmp_path, split=kept), tmp_path / "after")
    after = placed(tmp_path / "after")
    assert (after.pop(one), after.pop(other)) == ("test", "train")
    assert after.pop("p00/single.png") == after.pop("x.png") == before["p00/twin.png"]
    assert after.items() <= before.items()
    assert not [note for note in notes if "not there" in note]
    run(raw(tmp_path, features={"preset": "kaggle_flowers"}), tmp_path / "without")
    renamed(tmp_path, {other: "other.png"})
    kept["keep_from"] = str(tmp_path / "without")
    notes = notes_of(raw(tmp_path, split=kept), tmp_path / "last")
    assert any(note.endswith(". A renamed image counts as new, and may be in another split now") for note in notes)


def test_files_of_equal_size_that_exchange_their_names_stay_in_their_splits(tmp_path, monkeypatch):
    """Name and size are those of before: nobody noticed that a test image had become a training image."""
    # Files that have not changed for some seconds would be identified by their times, and not read before the plan.
    monkeypatch.setattr(file_pins, "_SETTLED_NANOSECONDS", -(10**12))
    photos(tmp_path, range(30))
    for number, file in enumerate(sorted((tmp_path / "images").rglob("*.png"))):
        values = np.random.default_rng(number).integers(0, 256, (8, 8, 3), dtype=np.uint8)
        Image.fromarray(values).save(file, compress_level=0)
    assert len({file.stat().st_size for file in (tmp_path / "images").rglob("*.png")}) == 1
    run(raw(tmp_path), tmp_path / "before")
    before = placed(tmp_path / "before")
    one, other = (next(key for key in before if before[key] == name) for name in ("train", "test"))
    renamed(tmp_path, {one: other, other: one})
    kept = {"method": "hash", "salt": "other", "keep_from": str(tmp_path / "before")}
    notes = notes_of(raw(tmp_path, split=kept), tmp_path / "after")
    assert placed(tmp_path / "after") == {**before, one: "test", other: "train"}
    assert any(note.startswith("split: 2 images have other names") for note in notes)


def test_an_earlier_dataset_is_named_by_its_digest_and_never_by_its_path(tmp_path):
    photos(tmp_path, range(30))
    first = run(raw(tmp_path), tmp_path / "first")
    run(raw(tmp_path, split={"method": "hash", "salt": "x"}), tmp_path / "other")
    options = {"salt": "y", "method": "hash"}
    second = run(raw(tmp_path, split={**options, "keep_from": str(tmp_path / "first")}), tmp_path / "second")
    assert placed(tmp_path / "second") == placed(tmp_path / "first")
    assert second.recipe["split"]["keep_from"] == first.digest
    assert read_lineage(tmp_path / "second")["parents"] == {"input": second.parent, "previous": first.digest}
    shutil.copytree(tmp_path / "first", tmp_path / "moved")
    again = run(raw(tmp_path, split={**options, "keep_from": str(tmp_path / "moved")}), tmp_path / "again")
    assert tree(tmp_path / "again") == tree(tmp_path / "second")
    assert again.fingerprint == second.fingerprint
    third = run(raw(tmp_path, split={**options, "keep_from": str(tmp_path / "other")}), tmp_path / "third")
    assert third.fingerprint != second.fingerprint
    text = IngestRecipe.of(config(raw(tmp_path, split={**options, "keep_from": str(tmp_path / "first")}))).to_json()
    assert str(tmp_path) not in text
    assert IngestRecipe.from_json(text).split.keep_from == first.digest


def test_a_new_image_that_joins_two_groups_of_an_earlier_dataset_is_rejected(tmp_path):
    photos(tmp_path / "old", range(60))
    run(raw(tmp_path / "old"), tmp_path / "before")
    before = placed(tmp_path / "before")
    train = next(key for key, split in before.items() if split == "train")
    test = next(key for key, split in before.items() if split == "test")
    photos(tmp_path / "new", range(62))
    with (tmp_path / "new" / "labels.csv").open(encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    together = {train, test, "p20/060.png"}
    table(tmp_path / "new", [[*row, "same" if row[0] in together else row[0]] for row in rows], (*header, "patient"))
    split = {"method": "group", "group": {"column": "patient"}, "keep_from": str(tmp_path / "before")}
    options = raw(tmp_path / "new", split=split, rejects={"max_fraction": 0.05})
    notes = notes_of(options, tmp_path / "after")
    row = ledger(tmp_path / "after")["p20/060.png"]
    assert (row.status, row.code, row.split) == ("rejected", "bridges_splits", "")
    assert f"{train} (train)" in row.reason
    assert f"{test} (test)" in row.reason
    after = placed(tmp_path / "after")
    assert {key: after[key] for key in before} == before
    assert "p20/061.png" in after
    totals = ImageDataset.open(tmp_path / "after").manifest.totals
    assert totals["inputs"] == totals["written"] + totals["rejected"] == 62
    assert any("1 group or cluster leaks, being in several splits" in note for note in notes)
    assert any("1 new image joins two splits" in note for note in notes)


def test_duplicates_lie_on_one_side_and_bridge_what_an_earlier_dataset_has_torn(tmp_path):
    photos(tmp_path / "old", range(30))
    for twin in ("a.png", "b.png"):
        shutil.copy(tmp_path / "old/images/p00/000.png", tmp_path / "old/images" / twin)
    rows = [[f"p{n // 3:02d}/{n:03d}.png", "cat", ("train", "val", "test")[n % 3]] for n in range(30)]
    rows += [["a.png", "cat", "train"], ["b.png", "cat", "val"]]
    table(tmp_path / "old", rows, ("image", "label", "fold"))
    notes = notes_of(raw(tmp_path / "old", split={"method": "predefined", "from_column": "fold"}), tmp_path / "torn")
    leak = "split: 1 group or cluster leaks, being in several splits, e.g. a.png (train) and b.png (eval)"
    assert leak in notes
    for number in range(5):
        (tmp_path / "old" / f"{number}").mkdir()
        split = {"method": "hash", "salt": str(number)}
        run(raw(tmp_path / "old", split=split), tmp_path / "old" / f"{number}" / "out")
        sides = placed(tmp_path / "old" / f"{number}" / "out")
        assert sides["a.png"] == sides["b.png"] == sides["p00/000.png"]
    shutil.copy(tmp_path / "old/images/a.png", tmp_path / "old/images/new.png")
    shutil.copy(tmp_path / "old/images/p00/001.png", tmp_path / "old/images/follower.png")
    table(tmp_path / "old", [*rows, ["new.png", "cat", ""], ["follower.png", "cat", ""]], ("image", "label", "fold"))
    run(raw(tmp_path / "old", split={"method": "hash", "keep_from": str(tmp_path / "torn")}), tmp_path / "after")
    found = ledger(tmp_path / "after")
    assert found["new.png"].code == "bridges_splits"
    assert "a.png (train) and b.png (eval)" in found["new.png"].reason
    assert found["follower.png"].split == found["p00/001.png"].split == "eval"
    assert {key: found[key].split for key in placed(tmp_path / "torn")} == placed(tmp_path / "torn")


def test_an_image_that_now_stands_for_an_old_one_takes_its_place(tmp_path):
    photos(tmp_path, range(40))
    options = raw(tmp_path, duplicates={"exact": "first"})
    run(options, tmp_path / "before")
    before = placed(tmp_path / "before")
    with (tmp_path / "labels.csv").open(encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    for key, label in list(rows):
        shutil.copy(tmp_path / "images" / key, tmp_path / "images" / f"a{key[4:]}")
        rows.append([f"a{key[4:]}", label])
    table(tmp_path, rows, header)
    run({**options, "split": {"method": "hash", "keep_from": str(tmp_path / "before")}}, tmp_path / "after")
    found = ledger(tmp_path / "after")
    assert {key: row.split for key, row in found.items() if row.status == "duplicate"} == before
    assert placed(tmp_path / "after") == {f"a{key[4:]}": split for key, split in before.items()}
    for key in list(before):
        (tmp_path / "images" / f"a{key[4:]}").unlink()
    table(tmp_path, [row for row in rows if not row[0].startswith("a")], header)
    split = {"method": "hash", "salt": "other", "keep_from": str(tmp_path / "after")}
    run({**options, "split": split}, tmp_path / "back")
    assert placed(tmp_path / "back") == before


def test_groups_of_a_column_lie_whole_in_one_split(tmp_path):
    photos(tmp_path, range(60), patient=lambda n: f"patient {n % 17}" if n % 5 else "")
    notes = notes_of(raw(tmp_path, split={"method": "group", "group": {"column": "patient"}}), tmp_path / "out")
    sides = {}
    for key, split in placed(tmp_path / "out").items():
        number = int(key[-7:-4])
        sides.setdefault(f"patient {number % 17}" if number % 5 else key, set()).add(split)
    assert all(len(side) == 1 for side in sides.values())
    assert set.union(*sides.values()) == {"train", "eval", "test"}
    assert "split: 17 groups; without one: 12 images, e.g. p00/000.png" in notes


def test_an_image_of_two_groups_or_two_splits_is_rejected_by_name(tmp_path):
    photos(tmp_path, range(30))
    rows = [[f"p{n // 3:02d}/{n:03d}.png", "cat", n % 4, "train" if n % 4 else "val"] for n in range(30)]
    header = ("image", "label", "patient", "fold")
    table(tmp_path, [*rows, ["p00/000.png", "cat", 3, "train"]], header)
    run(raw(tmp_path, split={"method": "group", "group": {"column": "patient"}}), tmp_path / "groups")
    row = ledger(tmp_path / "groups")["p00/000.png"]
    assert (row.status, row.code) == ("rejected", "conflicting_groups")
    assert "'0' and '3'" in row.reason
    run(raw(tmp_path, split={"method": "predefined", "from_column": "fold"}), tmp_path / "column")
    row = ledger(tmp_path / "column")["p00/000.png"]
    assert (row.status, row.code) == ("rejected", "conflicting_splits")
    assert "eval and train" in row.reason
    assert placed(tmp_path / "column")["p00/001.png"] == "train"


def test_stratified_splits_have_equal_shares_of_every_class(tmp_path):
    photos(tmp_path, range(60))
    notes = notes_of(raw(tmp_path, split={"method": "stratified"}), tmp_path / "out")
    counts = {}
    for key, split in placed(tmp_path / "out").items():
        counts.setdefault((int(key[-7:-4]) % 3, split), []).append(key)
    assert {pair: len(keys) for pair, keys in counts.items()} == {
        (label, split): count for label in range(3) for split, count in (("train", 16), ("eval", 2), ("test", 2))
    }
    assert "split: eval 0.100 (6), test 0.100 (6), train 0.800 (48)" in notes


def test_stratified_splits_of_masks_go_by_the_classes_they_show(tmp_path, image_input):
    options = image_input(tmp_path / "in", images=60)
    manifest = run({**options, "split": {"method": "stratified"}}, tmp_path / "out")
    shown = {}
    for split in ("train", "eval", "test"):
        for key, _ in ImageDataset.open(tmp_path / "out").records(split):
            for index in range(2):
                if (int(key[:3]) + index) % 3:
                    shown[split, index] = shown.get((split, index), 0) + 1
    assert manifest.totals["written"] == 60
    for index in range(2):
        assert abs(shown["eval", index] - 4) <= 1
        assert abs(shown["test", index] - 4) <= 1


def test_every_image_but_those_of_test_is_eval_in_one_fold(tmp_path):
    photos(tmp_path, range(40))
    rounds = []
    for fold in range(3):
        split = {"method": "kfold", "num_folds": 3, "fold_index": fold, "stratify": True, "ratios": {"test": 0.2}}
        run(raw(tmp_path, split=split), tmp_path / f"fold{fold}")
        rounds.append(placed(tmp_path / f"fold{fold}"))
    tests = {frozenset(key for key, split in found.items() if split == "test") for found in rounds}
    assert len(tests) == 1
    assert len(next(iter(tests))) == 8
    evaluated = [key for found in rounds for key, split in found.items() if split == "eval"]
    assert sorted([*evaluated, *next(iter(tests))]) == sorted(rounds[0])
    split = {
        "method": "kfold",
        "num_folds": 3,
        "fold_index": 0,
        "keep_from": str(tmp_path / "fold1"),
        "ratios": {"test": 0.2},
    }
    with pytest.raises(UsageError, match="is not fold 0 of 3"):
        run(raw(tmp_path, split=split), tmp_path / "wrong")


def test_folders_that_mean_splits_are_obeyed_and_logged(tmp_path):
    names = {"Training": "train", "validation": "eval", "test": "test"}
    for number in range(12):
        folder = list(names)[number % 3]
        draw(tmp_path / "images" / folder / ("cat", "dog")[number % 2] / f"{number}.png", number)
    options = {
        "task": "classification",
        "input": {
            "images": str(tmp_path / "images"),
            "labels": {"format": "file_name", "regex": "/(?P<label>cat|dog)/"},
        },
        "split": {"method": "predefined"},
    }
    notes = notes_of(options, tmp_path / "out")
    assert placed(tmp_path / "out") == {key: names[key.split("/")[0]] for key in ledger(tmp_path / "out")}
    assert "split: Training/ is train, test/ is test, validation/ is eval" in notes


def test_a_column_of_splits_is_obeyed_and_split_rest_gets_the_others(tmp_path):
    photos(tmp_path, range(30), fold=lambda n: ("TRAIN", "val", "", "holdout")[n % 4])
    split = {"method": "predefined", "from_column": "fold"}
    with pytest.raises(
        CheckFailed, match=r"14 of 30 images are in no split: p00/002.png, .* Set split.unlisted_images"
    ):
        run(raw(tmp_path, split=split), tmp_path / "out")
    notes = notes_of(raw(tmp_path, split={**split, "unlisted_images": "test"}), tmp_path / "out")
    sides = placed(tmp_path / "out")
    assert all(split == ("train", "eval", "test", "test")[int(key[-7:-4]) % 4] for key, split in sides.items())
    assert "split: TRAIN is train, val is eval" in notes
    assert "split: not known as a split: 'holdout' (7)" in notes
    with pytest.raises(ConfigError, match=r"split.from_column: .*labels.csv has no column 'side'"):
        run(raw(tmp_path, split={"method": "predefined", "from_column": "side"}), tmp_path / "none")


def test_lists_of_names_are_obeyed_and_their_content_is_in_the_fingerprint(tmp_path):
    photos(tmp_path, range(12))
    lists = {"train": tmp_path / "train.txt", "eval": tmp_path / "val.txt"}
    lists["train"].write_text("\ufeffp00/000.png\r\n001.png\n002\n\nno such thing\n", encoding="utf-8")
    lists["eval"].write_text("003.png\n004.png\n")
    split = {
        "method": "predefined",
        "from_lists": {name: str(path) for name, path in lists.items()},
        "unlisted_images": "train",
    }
    notes = notes_of(raw(tmp_path, split=split), tmp_path / "out")
    sides = placed(tmp_path / "out")
    assert {key for key, side in sides.items() if side == "eval"} == {"p01/003.png", "p01/004.png"}
    assert len(sides) == 12
    assert ImageDataset.open(tmp_path / "out").splits == ("eval", "train")
    assert "split: train from a list of 4, of which 1 are not in the input: 'no such thing'" in notes
    first = ImageDataset.open(tmp_path / "out").manifest
    assert str(tmp_path) not in json.dumps(first.recipe)
    lists["eval"].write_text("003.png\n005.png\n")
    assert run(raw(tmp_path, split=split), tmp_path / "out2").fingerprint != first.fingerprint
    lists["eval"].write_text("003.png\n001.png\n")
    run(raw(tmp_path, split=split), tmp_path / "out3")
    assert ledger(tmp_path / "out3")["p00/001.png"].code == "conflicting_splits"
    lists["eval"].unlink()
    with pytest.raises(UsageError, match=r"split.from_lists.eval: .*val.txt cannot be read"):
        run(raw(tmp_path, split=split), tmp_path / "out4")


def test_a_list_may_name_images_with_any_characters(tmp_path):
    keys = ["a/x\u2028y.png", "a/x\x85.png", "b/ z .png", "b/w.png"]
    for number, key in enumerate(keys):
        draw(tmp_path / "images" / key, number)
    (tmp_path / "eval.txt").write_bytes("\r\n".join([*keys[:3], ""]).encode())
    split = {"method": "predefined", "from_lists": {"eval": str(tmp_path / "eval.txt")}, "unlisted_images": "train"}
    notes = notes_of(raw(tmp_path, split=split, input={"images": str(tmp_path / "images")}), tmp_path / "out")
    assert placed(tmp_path / "out") == {**dict.fromkeys(keys[:3], "eval"), keys[3]: "train"}
    assert "split: eval from a list of 3" in notes


def test_nothing_to_train_on_is_an_error_and_another_empty_split_is_logged(tmp_path):
    photos(tmp_path, range(6), fold=lambda n: "test" if n % 2 else "val")
    split = {"method": "predefined", "from_column": "fold"}
    with pytest.raises(CheckFailed, match="no image is in train"):
        run(raw(tmp_path, split=split), tmp_path / "out")
    photos(tmp_path, range(6), fold=lambda n: "train" if n % 2 else "val")
    assert "split: no image is in test" in notes_of(raw(tmp_path, split=split), tmp_path / "out")


def test_an_earlier_dataset_that_is_damaged_or_has_other_splits_is_refused(tmp_path):
    photos(tmp_path, range(30))
    run(raw(tmp_path), tmp_path / "first")
    with pytest.raises(UsageError, match="split.keep_from: .*there is no such folder"):
        run(raw(tmp_path, split={"keep_from": str(tmp_path / "none")}), tmp_path / "out")
    shares = {"train": 0.5, "eval": 0.2, "holdout": 0.3}
    with pytest.raises(UsageError, match="has a split 'test'; this configuration has eval, holdout, train"):
        run(raw(tmp_path, split={"ratios": shares, "keep_from": str(tmp_path / "first")}), tmp_path / "out")
    part = next((tmp_path / "first" / "ledger").iterdir())
    text = part.read_bytes()
    assert b'"split":"eval"' in text
    part.write_bytes(text.replace(b'"split":"eval"', b'"split":"test"', 1))
    with pytest.raises(DatasetError, match=r"split.keep_from: ledger/part-.* is missing or damaged"):
        run(raw(tmp_path, split={"method": "hash", "keep_from": str(tmp_path / "first")}), tmp_path / "out")


def test_the_listing_order_plays_no_part(tmp_path, monkeypatch):
    photos(tmp_path, range(40), patient=lambda n: n % 9)
    split = {"method": "stratified", "group": {"column": "patient"}}
    first = run(raw(tmp_path, split=split), tmp_path / "out")
    with (tmp_path / "labels.csv").open(encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    other = tmp_path / "other"
    shutil.copytree(tmp_path / "images", other / "images")
    table(other, rows[::-1], header)
    second = run(raw(other, split=split), tmp_path / "out2")
    assert placed(tmp_path / "out2") == placed(tmp_path / "out")
    assert [shard.checksum for shard in first.shards] == [shard.checksum for shard in second.shards]


@pytest.mark.parametrize("layout", ["image_label", "image_class"])
def test_groups_are_in_every_row_of_an_image_with_masks(tmp_path, image_input, layout):
    options = image_input(tmp_path / "in", layout=layout, images=40)
    with (tmp_path / "in" / "labels.csv").open(encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    table(tmp_path / "in", [[*row, f"day {int(row[0][:3]) // 8}"] for row in rows], (*header, "day"))
    split = {"ratios": {"train": 0.6, "eval": 0.2, "test": 0.2}, "method": "stratified", "group": {"column": "day"}}
    run({**options, "split": split}, tmp_path / "out")
    sides = {(int(key[:3]) // 8, split) for key, split in placed(tmp_path / "out").items()}
    assert sorted(day for day, _ in sides) == list(range(5))
    assert sorted(split for _, split in sides) == ["eval", "test", "train", "train", "train"]


def test_a_class_that_no_image_of_a_split_has_is_logged(tmp_path):
    photos(tmp_path, range(8), fold=lambda n: "train" if n < 6 else "eval")  # 6 is a cat, 7 a dog
    split = {"method": "predefined", "from_column": "fold"}
    notes = notes_of(raw(tmp_path, split=split), tmp_path / "out")
    assert [note for note in notes if "no image of" in note] == ["split: no image of eval has owl"]
