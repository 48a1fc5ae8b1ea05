"""Tables of numbers: features without a class, and nothing that is not a number for each image is let through."""

import json

import numpy as np
import pytest
from ingesting import examples, ledger, run
from PIL import Image

from shardwright.dataset.reader import ImageDataset
from shardwright.errors import CheckFailed, ConfigError, UsageError
from shardwright.pipelines.cli import main

KEYS = [f"i{number}.png" for number in range(6)]
HEAD = "image/meta/head"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "images").mkdir()
    for number, key in enumerate(KEYS):
        Image.new("RGB", (8, 6), (9 * number, 0, 0)).save(tmp_path / "images" / key)
    return tmp_path


def table(folder, text, name="t.csv", **labels):
    (folder / name).write_text(text)
    labels = {"path": str(folder / name), **labels}
    return {"task": "classification", "input": {"images": str(folder / "images"), "labels": labels}}


def rows(*further, count=6):
    return (
        "image,head,age\n"
        + "".join(f"{key},{40 + i / 8},{i}\n" for i, key in enumerate(KEYS[:count]))
        + "".join(f"{row}\n" for row in further)
    )


def test_numbers_are_float32_features_and_images_have_no_class(folder):
    notes: list[str] = []
    manifest = run(table(folder, rows()), folder / "out", log=notes.append)
    assert (manifest.labels, manifest.classes) == ("none", ())
    assert {name: kind for name, kind in manifest.features.items() if "meta" in name} == {
        HEAD: "float32",
        "image/meta/age": "float32",
    }
    found = examples(folder / "out")
    assert [found[key][HEAD].tolist() for key in KEYS] == [[40 + i / 8] for i in range(6)]
    assert any("numbers, since t.csv has no classes, but numbers in 'head', 'age'" in note for note in notes)


def test_load_gives_the_numbers(folder):
    load = pytest.importorskip("shardwright").load
    run({**table(folder, rows()), "split": {"ratios": {"train": 1.0}}}, folder / "out")
    keys = list(ImageDataset.open(folder / "out").keys("train"))
    for order, cache in (("fast", None), ("exact", None), ("fast", "memory")):
        found = load(folder / "out", "train", 4, numbers=["age", "head"], order=order, cache=cache, ids=True, pad=True)
        seen = {}
        for image, numbers, weight, ids in found.as_numpy_iterator():
            assert (image.shape[1:], numbers.dtype, numbers.shape[1:]) == ((6, 8, 3), np.float32, (2,))
            seen |= {keys[i]: pair.tolist() for i, pair, one in zip(ids, numbers, weight, strict=True) if one}
        assert seen == {key: [i, 40 + i / 8] for i, key in enumerate(KEYS)}
    with pytest.raises(UsageError, match=r"no numbers of a column 'weight'. It has: image/meta/age, image/meta/head"):
        load(folder / "out", "train", 4, numbers=["weight"])


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("i5.png,,1", "row 7: column head is empty"),
        ("i5.png,NaN,1", "row 7: column head is 'NaN', not a number"),
        ("i5.png,inf,1", "row 7: column head: 'inf' is not a number within float32"),
        ("i5.png,1e39,1", "row 7: column head: '1e39' is not a number within float32"),
        ("i5.png,wide,1", "row 7: column head: 'wide' is not a number within float32"),
        ("i5.png,1", "row 7: 2 fields, the header has 3 ('i5.png,1')"),
        ("i5.png,44,1\ni5.png,45,1", "row 8: an earlier row has another number in column head; an image has one"),
    ],
)
def test_an_image_without_its_number_is_rejected(folder, row, reason):
    run(table(folder, rows(row, count=5)), folder / "out")
    found = ledger(folder / "out")["i5.png"]
    assert (found.status, found.reason) == ("rejected", f"t.csv, {reason}")
    assert len(examples(folder / "out")) == 5


@pytest.mark.parametrize("row", ["i5.png,40.625,5", "i5.png,40.6250,5.0", "i5.png, +4.0625e1,05e0"])
def test_a_row_that_repeats_another_is_no_conflict(folder, row):
    run(table(folder, rows(row)), folder / "out")
    found = examples(folder / "out")["i5.png"]
    assert (found[HEAD].tolist(), found["image/meta/age"].tolist()) == ([40.625], [5])


def test_json_lines_of_numbers(folder):
    lines = [json.dumps({"file_name": key, "head": 40 + i / 8, "age": i}) for i, key in enumerate(KEYS[:4])]
    lines += ['{"file_name": "i4.png", "head": NaN, "age": 1}', '{"file_name": "i5.png", "head": "44.5", "age": null}']
    run(table(folder, "\n".join(lines) + "\n", "t.jsonl"), folder / "out")
    found = ledger(folder / "out")
    assert found["i4.png"].reason == "t.jsonl, row 5: column head is 'NaN', not a number"
    assert found["i5.png"].reason == "t.jsonl, row 6: column age is empty"
    assert examples(folder / "out")["i3.png"][HEAD].tolist() == [40.375]


def test_a_column_of_text_needs_a_word_and_init_writes_it(folder, capsys):
    text = "image,head,site\n" + "".join(f"{key},{40 + i / 8},north\n" for i, key in enumerate(KEYS))
    raw = table(folder, text)
    with pytest.raises(UsageError, match=r"'head' hold numbers, and 'site' do not.*format: numbers and .*features: "):
        run(raw, folder / "out")
    assert main(["init", ".", "--out", "c.yaml"]) == 0
    assert "'head' are numbers to predict, and 'site' are left out" in capsys.readouterr().out
    written = (folder / "c.yaml").read_text()
    assert "format: numbers" in written
    assert "features: {head: float}" in written
    # Texts are taken where they are named.
    raw["input"]["labels"] |= {"format": "numbers", "features": {"head": "float", "site": "text"}}
    assert run(raw, folder / "named").features["image/meta/site"] == "bytes"


def test_fractions_in_a_column_of_classes_are_a_question(folder, capsys):
    text = "image,target\n" + "".join(f"{key},{i / 8}\n" for i, key in enumerate(KEYS))
    with pytest.raises(UsageError, match="'target' holds numbers with fractions"):
        run(table(folder, text), folder / "out")
    assert main(["init", "images", "t.csv", "--out", "c.yaml"]) == 2
    asked = capsys.readouterr().err
    assert "--set input.labels.format=numbers" in asked
    assert "--set input.labels.format=label_csv" in asked
    assert run(table(folder, text, format="numbers"), folder / "out").features["image/meta/target"] == "float32"
    assert len(run(table(folder, text, format="label_csv"), folder / "classes").classes) == 6


def test_folders_of_classes_next_to_a_table_of_numbers_are_a_question(folder, capsys):
    for i, key in enumerate(KEYS):
        place = folder / "images" / ("cat", "dog")[i % 2]
        place.mkdir(exist_ok=True)
        (folder / "images" / key).rename(place / key)
    (folder / "sizes.csv").write_text(rows())
    assert main(["init", ".", "--out", "c.yaml"]) == 2
    assert "may be classes" in capsys.readouterr().err
    assert main(["init", ".", "sizes.csv", "--out", "c.yaml"]) == 0


def test_what_does_not_fit_is_refused(folder):
    with pytest.raises(ConfigError, match="numbers contains no classes"):
        run({**(raw := table(folder, rows(), format="numbers")), "input": {**raw["input"], "classes": ["a"]}}, folder)
    with pytest.raises(ConfigError, match=r"columns\.label: numbers has no such column"):
        run(table(folder, rows(), format="numbers", columns={"label": "age"}), folder / "out")
    with pytest.raises(UsageError, match="one or more of numbers"):
        run(table(folder, "image\ni0.png\n", format="numbers"), folder / "out")
    with pytest.raises(CheckFailed, match="0 rows of"):
        run(table(folder, rows().replace(".png", "x.png")), folder / "out")


def test_an_export_comes_back_and_run_says_what_it_trains_on(folder, capsys):
    first = run(table(folder, rows()), folder / "out")
    assert main(["export", "out", "--out", "files"]) == 0
    raw = {
        "task": "classification",
        "input": {"images": str(folder / "files/images"), "labels": {"path": str(folder / "files/labels.csv")}},
    }
    again = run(raw, folder / "again")
    assert again.features == first.features
    for key, example in examples(folder / "out").items():
        assert np.array_equal(examples(folder / "again")[key][HEAD], example[HEAD])
    assert main(["init", "images", "t.csv", "--out", "c.yaml"]) == 0
    assert "`shardwright.load` with `numbers`" in (folder / "c.yaml").read_text()
    capsys.readouterr()
    assert main(["run", "c.yaml", "--root", "runs"]) == 2
    assert "the images have numbers, and `run` trains on masks and classes only" in capsys.readouterr().err
