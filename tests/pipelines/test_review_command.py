"""`shardwright review` with models whose answers are known: the colors of the image."""

import csv
import dataclasses
import html
import json
import re
from pathlib import Path

import numpy as np
import pytest
from ingesting import examples
from PIL import Image
from recipes import train_recipe

from shardwright import make_dataset
from shardwright.components.image_trainer.spec import TrainSpec
from shardwright.dataset.reader import ImageDataset
from shardwright.evaluation.thresholds import Thresholds
from shardwright.pipelines.cli import main
from shardwright.verify import verify

pytestmark = pytest.mark.slow

RECIPE = train_recipe("unet", 8, 2, 4, 1e-3, 1, "eval")
EVIL = "<img src=x onerror=alert(1)>"
CLASSES = ("=Fish", EVIL)
SPEC = TrainSpec(RECIPE, "d", "d", "classification", CLASSES, 8, 8, "stretch", None, None, "run", "export")
OF_COLOR = {"red": (220, 20, 20), "green": (20, 220, 20)}


def save(folder: Path, model, spec: TrainSpec) -> str:
    from shardwright.components.image_trainer.export.export_model import save_model
    from shardwright.components.image_trainer.export.signatures import FlippedMean

    chosen = Thresholds.fixed(len(spec.classes))
    save_model(FlippedMean(model, spec), dataclasses.replace(spec, export=str(folder)), chosen)
    return str(folder)


@pytest.fixture(scope="module")
def classifier(tmp_path_factory):
    """Red is the first class, green the second one."""
    import tensorflow as tf

    def model(images, training):
        return tf.nn.softmax(6 * tf.reduce_mean(images[..., :2], (1, 2)))

    return save(tmp_path_factory.mktemp("labels") / "1", model, SPEC)


@pytest.fixture(scope="module")
def segmenter(tmp_path_factory):
    spec = dataclasses.replace(SPEC, task="segmentation", classes=("Fish", "Sugar"), height=12, width=16)
    return save(tmp_path_factory.mktemp("masks") / "1", lambda images, training: images[..., :2], spec)


def paint(file: Path, pixels):
    file.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.asarray(pixels, np.uint8)).save(file)


def labeled(root: Path, wrong=("07.png", "20.png")) -> str:
    """A dataset of red and green images, two of which have the other class; all are in the split eval."""
    random = np.random.default_rng(0)
    with open(root / "labels.csv", "w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(("image", "label"))
        for number in range(24):
            color, key = list(OF_COLOR.values())[number % 2], f"{number:02d}.png"
            paint(
                root / "images" / key, np.clip(np.full((8, 8, 3), color) + random.integers(-20, 20, (8, 8, 3)), 0, 255)
            )
            table.writerow((key, CLASSES[(number + (key in wrong)) % 2]))
    return dataset_of(root, "classification", {"path": str(root / "labels.csv"), "format": "label_csv"}, CLASSES)


def dataset_of(root, task, labels, classes=None):
    given = {"images": str(root / "images"), "labels": labels, **({"classes": list(classes)} if classes else {})}
    config = {"task": task, "input": given, "split": {"ratios": {"eval": 1.0}}, "evaluator": {"split": "eval"}}
    make_dataset(config, root / "dataset")
    return str(root / "dataset")


def page_data(page):
    """What the script of the page gets."""
    return json.loads(re.search('<script type="application/json" id="data">(.*?)</script>', page)[1])


def corrections(data, mark):
    """The table that the page saves if all images get a mark."""
    return [data["header"], *(row for rows in data["rows"] for row in rows[mark])]


def test_wrong_classes_come_first_and_are_corrected(classifier, tmp_path, capsys):
    dataset, out = labeled(tmp_path), tmp_path / "review"
    call = ["review", classifier, "--dataset", dataset, "--count", "4", "--export-format", "csv", "--out", str(out)]
    assert main([*call, "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert (made["images"], made["shown"], made["failures"]) == (24, 4, [])
    assert made["told"] == "Accuracy 0.92 on 24 images of eval"
    with open(made["ranking"], encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["image"] for row in rows[:2]} == {"07.png", "20.png"}
    assert len(rows) == 24
    # No spreadsheet takes a class for a formula.
    assert {row["prediction"] for row in rows} == {"'=Fish", EVIL}
    page = Path(made["page"]).read_text(encoding="utf-8")
    assert EVIL not in page
    assert html.escape(EVIL) in page
    data = page_data(page)
    assert set(data["keys"][:2]) == {"07.png", "20.png"}
    with open(tmp_path / "corrections.csv", "w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(corrections({**data, "rows": data["rows"][:2]}, "prediction"))
    again = ["relabel", dataset, str(tmp_path / "corrections.csv"), "--unlisted-images", "keep", "--out"]
    assert main([*again, str(tmp_path / "corrected")]) == 0
    before, after = examples(dataset), examples(tmp_path / "corrected")
    label = "image/class/label"
    changed = {key for key in before if before[key][label].tolist() != after[key][label].tolist()}
    assert changed == {"07.png", "20.png"}
    assert all(after[f"{number:02d}.png"][label].tolist() == [number % 2] for number in range(24))
    assert main(["diff", dataset, str(tmp_path / "corrected")]) == 1
    assert main(["export", str(tmp_path / "corrected"), "--out", str(tmp_path / "files")]) == 0
    assert main(call) == 2
    assert "contains a review already" in capsys.readouterr().err


def test_a_weak_model_is_told_on_the_terminal_the_page_and_as_json(classifier, tmp_path, capsys):
    """It said how many were suspected, as if these were errors."""
    dataset = labeled(tmp_path, wrong=[f"{number:02d}.png" for number in range(14)])
    call = ["review", classifier, "--dataset", dataset]
    assert main([*call, "--out", str(tmp_path / "first")]) == 0
    (line,) = [one for one in capsys.readouterr().out.splitlines() if one.startswith("Accuracy")]
    assert line.startswith(
        "Accuracy 0.42 on 24 images of eval: a ranking by so weak a model finds little, even an oracle"
    )
    assert line in re.sub("<[^>]*>", "", (tmp_path / "first/review.html").read_text(encoding="utf-8"))
    assert main([*call, "--json", "--out", str(tmp_path / "second")]) == 0
    made = json.loads(capsys.readouterr().out)
    assert made["told"] == line
    # The ranking is no table of annotations; it was refused as one of masks.
    assert main(["relabel", dataset, made["ranking"], "--out", str(tmp_path / "new")]) == 2
    assert "is the ranking of a review, which corrects nothing. Mark the images in its" in capsys.readouterr().err
    assert (made["strength"]["weak"], made["strength"]["images"]) == (True, 24)


def masked(root: Path) -> str:
    """A dataset whose masks are what the model sees, but for one that is shifted and one of the other class."""
    lines = ["Image_Label,EncodedPixels"]
    for number in range(12):
        pixels, left = np.full((12, 16, 3), 10), 1 + number % 8
        pixels[3:9, left : left + 6, number % 2] = 240
        paint(root / "images" / f"{number:02d}.png", pixels)
        columns = range((left + 7) % 10, (left + 7) % 10 + 6) if number == 4 else range(left, left + 6)
        runs = " ".join(f"{12 * column + 4} 6" for column in columns)
        own = ("Fish", "Sugar")[(number + (number == 9)) % 2]
        lines += [f"{number:02d}.png_{name},{runs if name == own else ''}" for name in ("Fish", "Sugar")]
    (root / "labels.csv").write_text("\n".join(lines) + "\n")
    return dataset_of(root, "segmentation", {"path": str(root / "labels.csv")})


def test_wrong_masks_come_first_and_are_corrected(segmenter, tmp_path, capsys):
    dataset = masked(tmp_path)
    call = ["review", segmenter, "--dataset", dataset, "--count", "3", "--out", str(tmp_path / "review")]
    assert main([*call, "--export-format", "labelme", "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert made["suspected"] is None
    page = Path(made["page"]).read_text(encoding="utf-8")
    data = page_data(page)
    assert set(data["keys"][:2]) == {"04.png", "09.png"}
    assert "regions of 100% of the" in page
    shapes = json.loads((tmp_path / "review/annotations/images/09.json").read_text())["shapes"]
    assert [shape["label"] for shape in shapes] == ["Sugar"]
    with open(tmp_path / "corrections.csv", "w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(corrections({**data, "rows": data["rows"][:2]}, "prediction"))
    words = made["next"].split()
    assert words[:3] == ["shardwright", "relabel", dataset]
    words[3], words[-1] = str(tmp_path / "corrections.csv"), str(tmp_path / "corrected")
    assert main(words[1:]) == 0
    after, before = examples(tmp_path / "corrected"), examples(dataset)
    rle = "image/segmentation/{}/rle"
    assert after["09.png"][rle.format("Fish")].tolist() == []
    assert after["09.png"][rle.format("Sugar")].tolist() == before["09.png"][rle.format("Fish")].tolist()
    assert after["04.png"][rle.format("Fish")].tolist()[0] == 12 * 5 + 3
    assert all(np.array_equal(before["03.png"][name], after["03.png"][name]) for name in before["03.png"])
    assert verify(tmp_path / "corrected", workers=1, deep=True, quiet=True).findings == ()


def test_new_images_are_chosen_and_annotated_by_the_model(segmenter, tmp_path, capsys):
    """The dataset has little red and little green; what is bright in both is far from it."""
    (tmp_path / "old").mkdir()
    dataset, new = masked(tmp_path / "old"), tmp_path / "new"
    for number in range(6):
        pixels = np.full((12, 16, 3), 10)
        pixels[:, :, :2] += 0 if number < 4 else 200
        paint(new / f"folder/{number}.png", pixels)
    (new / "broken.jpg").write_bytes(b"\xff\xd8\xff broken")
    out = tmp_path / "review"
    call = ["review", segmenter, "--dataset", dataset, "--images", str(new), "--count", "2"]
    assert main([*call, "--export-format", "coco", "--out", str(out)]) == 1
    shown = capsys.readouterr()
    assert "broken.jpg" in shown.err
    with open(out / "ranking.csv", encoding="utf-8", newline="") as file:
        rows = [row["image"] for row in csv.DictReader(file)]
    assert rows[0] in ("folder/4.png", "folder/5.png")
    # The other bright one is a copy.
    assert rows[1] not in ("folder/4.png", "folder/5.png")
    assert len(rows) == 6
    document = json.loads((out / "annotations/annotations.json").read_text())
    assert {image["file_name"] for image in document["images"]} == set(rows[:2])
    assert [row["name"] for row in document["categories"]] == ["Fish", "Sugar"]
    bright = next(image["id"] for image in document["images"] if image["file_name"] == rows[0])
    assert sum(row["image_id"] == bright for row in document["annotations"]) == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--images", "x", "--folds", "3"], "--images: chooses among new images"),
        (["--count", "0"], "--count: 0 is too small"),
        (["--config", "c.yaml"], "--config: is for the trainings of --folds"),
        (["--split", "train"], "no split 'train'"),
        (["--split", "test"], "no split 'test'"),
        (["--folds", "2"], "--folds 2: train of"),
    ],
)
def test_what_cannot_be_reviewed_is_said_before_anything_is_made(classifier, tmp_path, options, message, capsys):
    dataset = labeled(tmp_path)
    assert main(["review", classifier, "--dataset", dataset, "--out", str(tmp_path / "out"), *options]) in (1, 2)
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_dataset_of_other_classes_is_refused(segmenter, classifier, tmp_path, capsys):
    dataset = labeled(tmp_path)
    assert main(["review", segmenter, "--dataset", dataset, "--out", str(tmp_path / "out")]) == 2
    assert "predicts Fish, Sugar (segmentation)" in capsys.readouterr().err
    assert main(["review", classifier, "--out", str(tmp_path / "out")]) == 2
    assert "Give --dataset DIR" in capsys.readouterr().err
    assert ImageDataset.open(dataset).manifest.classes == CLASSES
