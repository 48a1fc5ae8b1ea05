"""Wrong inputs, as users give them: one clear message, the right exit code, no traceback, nothing published."""

import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from PIL import Image

from shardwright.pipelines import cli


def jpeg(height: int = 20, width: int = 30) -> bytes:
    buffer = io.BytesIO()
    Image.radial_gradient("L").resize((width, height)).convert("RGB").save(buffer, "JPEG")
    return buffer.getvalue()


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Forty good images of 20x30 with one mask each."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "images").mkdir()
    rows = ["Image_Label,EncodedPixels"]
    for i in range(40):
        (tmp_path / f"images/{i:02}.jpg").write_bytes(jpeg())
        rows.append(f"{i:02}.jpg_Fish,1 5 41 7")
    (tmp_path / "train.csv").write_text("\n".join(rows) + "\n")
    configure(tmp_path)
    return tmp_path


def configure(folder: Path, **changes: object) -> None:
    config: dict[str, object] = {
        "input": {"images": "images", "labels": {"path": "train.csv"}, "classes": ["Fish", "Flower"]}
    }
    (folder / "config.yaml").write_text(yaml.safe_dump({**config, **changes}))


def no_folder(folder: Path) -> None:
    configure(folder, input={"images": "nowhere", "labels": {"path": "train.csv"}})


def empty_folder(folder: Path) -> None:
    for file in (folder / "images").iterdir():
        file.unlink()


def no_csv(folder: Path) -> None:
    (folder / "train.csv").unlink()


def csv_without_the_columns(folder: Path) -> None:
    (folder / "train.csv").write_text("a,b\n1,2\n")


def unknown_class(folder: Path) -> None:
    with open(folder / "train.csv", "a") as file:
        file.write("00.jpg_Whale,1 5\n")


def masks_in_an_untold_order(folder: Path) -> None:
    text = (folder / "train.csv").read_text().replace("Image_Label,EncodedPixels", "photo,class,rle")
    (folder / "train.csv").write_text(text.replace("_Fish,", ",Fish,"))
    labels = {"path": "train.csv", "columns": {"image": "photo"}}
    configure(folder, input={"images": "images", "labels": labels})


def coco(text: str) -> Callable[[Path], None]:
    """Masks from a COCO file: `text` is the segmentation of the first twenty images."""

    def replace(folder: Path) -> None:
        images = [{"id": i, "file_name": f"{i:02}.jpg"} for i in range(40)]
        said = [{"image_id": i, "category_id": 1, "segmentation": json.loads(text)} for i in range(20)]
        categories = [{"id": 1, "name": "Fish"}]
        document = {"images": images, "annotations": said, "categories": categories}
        (folder / "train.json").write_text(json.dumps(document) if text != "[]" else text)
        configure(folder, input={"images": "images", "labels": {"path": "train.json"}, "classes": ["Fish"]})

    return replace


def classes_in_folders_or_in_names(folder: Path) -> None:
    (folder / "images/train").mkdir()
    for i in range(40):
        (folder / f"images/{i:02}.jpg").rename(folder / f"images/train/{'cat' if i % 2 else 'dog'}_{i}.jpg")
    configure(folder, task="classification", input={"images": "images"})


def images_that_do_not_exist(folder: Path) -> None:
    rows = "".join(f"no{i:02}.jpg_Fish,1 5\n" for i in range(30))
    with open(folder / "train.csv", "a") as file:
        file.write(rows)


def no_row_matches(folder: Path) -> None:
    (folder / "train.csv").write_text("Image_Label,EncodedPixels\nx.jpg_Fish,1 5\ny.jpg_Fish,\n")


def masks(text: str) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        rows = "".join(f"{i:02}.jpg_Flower,{text}\n" for i in range(20))
        with open(folder / "train.csv", "a") as file:
            file.write(rows)

    return damage


def not_images(folder: Path) -> None:
    for i in range(20):
        (folder / f"images/{i:02}.jpg").write_bytes(b"this is no picture")


def typo(folder: Path) -> None:
    configure(folder, trainer={"epoch": 3})


CASES = [
    (no_folder, 2, ["nowhere"]),
    (empty_folder, 2, ["images", "no files"]),
    (no_csv, 2, ["train.csv"]),
    (csv_without_the_columns, 2, ["train.csv", "'a', 'b'"]),
    (unknown_class, 2, ["Whale", "Fish, Flower", "row 42"]),
    (masks_in_an_untold_order, 2, ["train.csv", "'rle'", "input.labels.rle.order", "column or row"]),
    (images_that_do_not_exist, 1, ["30", "missing_image", "no00.jpg"]),
    (no_row_matches, 1, ["0 ", "x.jpg", "00.jpg"]),
    (masks("1 5 9"), 1, ["20", "bad_rle", "00.jpg", "train.csv", "odd"]),
    (masks("590 20"), 1, ["bad_rle", "600"]),
    (masks("one two"), 1, ["bad_rle", "one"]),
    (classes_in_folders_or_in_names, 2, ["train/cat_1.jpg", "input.labels.format: class_folders or file_name"]),
    (coco("[]"), 2, ["train.json", "it holds list", "images, annotations, categories"]),
    (coco("[[1, 2, 3, 4]]"), 1, ["20", "bad_polygon", "train.json, annotations[", "polygon 1 of 1 has 4 numbers"]),
    (coco('{"size": [30, 20], "counts": [600]}'), 1, ["size_mismatch", "30x20", "turned"]),
    (not_images, 1, ["20", "not_an_image", "00.jpg"]),
    (typo, 2, ["trainer.epoch", "epochs"]),
]


@pytest.mark.parametrize(("damage", "code", "words"), CASES, ids=[f"{i}-{c[0].__name__}" for i, c in enumerate(CASES)])
def test_wrong_input(
    project: Path, capsys: pytest.CaptureFixture[str], damage: Callable[[Path], None], code: int, words: list[str]
) -> None:
    damage(project)
    assert cli.main(["ingest", "config.yaml", "--out", "out", "--workers", "1"]) == code
    said = capsys.readouterr().err
    for word in words:
        assert word in said, said
    assert "Traceback" not in said
    assert not (project / "out").exists()


def test_a_few_bad_inputs_go_to_the_ledger_and_the_rest_is_written(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "images/07.jpg").write_bytes(b"this is no picture")
    with open(project / "train.csv", "a") as file:
        file.write("08.jpg_Flower,1 5 9\nno.jpg_Fish,1 5\n")
    configure(project, rejects={"max_fraction": 0.1})
    assert cli.main(["ingest", "config.yaml", "--out", "out", "--workers", "1"]) == 0
    said = capsys.readouterr().out
    assert "38 written, 3 rejected" in said
