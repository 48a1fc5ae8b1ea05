"""`drift` on the command line: two datasets, a folder, the splits of one; too few images do not pass for unchanged."""

import json

import pytest
from PIL import Image

from shardwright.config.evaluation import SkewConfig
from shardwright.dataset.reader import ImageDataset
from shardwright.drift import monitor
from shardwright.pipelines.cli import main
from shardwright.tfrecords.records import find_feature


@pytest.fixture(scope="module")
def dataset(small_dataset, tmp_path_factory):
    root = tmp_path_factory.mktemp("drift")
    return small_dataset(root, task="classification", counts={"train": [40], "eval": [25]}, image_format="jpeg")


def test_one_dataset_is_compared_split_by_split(dataset, capsys):
    assert main(["drift", str(dataset)]) == 0
    assert "eval (25 images) against train (40 images): nothing has changed" in capsys.readouterr().out
    assert main(["drift", str(dataset), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["drifted"] is False
    assert [c["reference"] for c in found["comparisons"]] == ["train"]


@pytest.mark.slow
def test_a_folder_of_darker_images(dataset, tmp_path, capsys):
    assert main(["export", str(dataset), "--out", str(tmp_path / "files")]) == 0
    folder = tmp_path / "files" / "images"
    capsys.readouterr()
    assert main(["drift", str(dataset), str(folder)]) == 0
    assert "images (65 images) against dataset (65 images): nothing has changed" in capsys.readouterr().out
    assert main(["drift", str(dataset), str(dataset)]) == 0
    assert "/dataset (65 images) against " in capsys.readouterr().out
    assert main(["drift", str(dataset), str(folder), "--count", "30"]) == 0
    chosen = "30 of 65 images, chosen by hash"
    assert f"images ({chosen}) against dataset ({chosen}): nothing has changed" in capsys.readouterr().out
    for file in folder.rglob("*"):
        if file.is_file():
            with Image.open(file) as picture:
                picture.point(lambda level: level // 2).save(file, "jpeg")
    assert main(["drift", str(dataset), str(folder), "--json"]) == 1
    (found,) = json.loads(capsys.readouterr().out)["comparisons"]
    assert "brightness" in {f["measure"] for f in found["findings"] if f["drifted"]}
    drifted = [f["measure"] for f in found["findings"] if f["drifted"]]
    page = tmp_path / "page.html"
    assert main(["drift", str(dataset), str(folder), "--html", str(page)]) == 1
    assert f"{page}: open it in a browser" in capsys.readouterr().out
    shown = page.read_text(encoding="utf-8")
    assert "Drift against" in shown
    assert shown.count('<img src="data:image/jpeg') >= 12 * len(drifted[:1])
    assert main(["drift", str(dataset), str(folder), "--ignore", *drifted]) == 0


def test_a_page_of_the_splits(dataset, tmp_path, capsys):
    page = tmp_path / "page.html"
    assert main(["drift", str(dataset), "--html", str(page), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["drifted"] is False
    shown = page.read_text(encoding="utf-8")
    assert "Nothing has changed more than by chance" in shown
    assert "Split eval compared with train" in shown
    assert '<a href="#skew">Skew of eval</a>' in shown
    assert main(["drift", str(dataset), "--html", str(dataset / "page.html")]) == 2
    assert "--html" in capsys.readouterr().err
    assert not (dataset / "page.html").exists()


def test_all_splits_share_one_bound(small_dataset, tmp_path, monkeypatch):
    many = small_dataset(tmp_path, task="classification", counts={name: [2] for name in ("a", "b", "c", "train")})
    given = []
    monkeypatch.setattr(
        monitor, "compare", lambda one, other, *, alpha, ignore: given.append((one.name, other.name, alpha))
    )
    monitor.check_splits(ImageDataset.open(many), SkewConfig(alpha=0.03))
    assert given == [("a", name, pytest.approx(0.01)) for name in ("b", "c", "train")]


def test_images_that_cannot_be_read_are_named(dataset, tmp_path, capsys):
    folder, page = tmp_path / "new", tmp_path / "page.html"
    folder.mkdir()
    opened = ImageDataset.open(dataset)
    for number, (_, payload) in enumerate(record for split in opened.splits for record in opened.records(split)):
        (folder / f"{number:02d}.jpg").write_bytes(find_feature(payload, "image/encoded")[0])
    assert main(["drift", str(dataset), str(folder)]) == 0
    for number in range(7):
        file = folder / f"{number:02d}.jpg"
        file.write_bytes(file.read_bytes()[: 300 if number else 0])
    capsys.readouterr()
    assert main(["drift", str(dataset), str(folder), "--html", str(page)]) == 1
    text = "7 of 65 images of new cannot be read and are left out: "
    shown = capsys.readouterr().out
    assert text in shown
    assert " and 2 more\nnew (58 images) against dataset (65 images): nothing has changed" in shown
    assert page.read_text(encoding="utf-8").count(text) == 2
    assert main(["drift", str(dataset), str(folder), "--json"]) == 1
    (found,) = json.loads(capsys.readouterr().out)["comparisons"]
    assert sorted(found["current_unreadable"]) == [f"{number:02d}.jpg" for number in range(7)]
    assert found["reference_unreadable"] == []


def test_an_empty_folder_is_named_without_a_key_of_the_configuration(dataset, tmp_path, capsys):
    assert main(["drift", str(dataset), str(tmp_path)]) == 2
    assert capsys.readouterr().err.startswith(f"shardwright: {tmp_path} contains no files. Check the path.")


def test_too_few_images_are_no_good_news(dataset, tmp_path, capsys):
    (tmp_path / "few").mkdir()
    (tmp_path / "few" / "broken.jpg").write_bytes(b"no image")
    assert main(["drift", str(dataset), str(tmp_path / "few")]) == 1
    assert "too few images to decide, 20 of each are needed" in capsys.readouterr().out
    assert main(["drift", str(dataset), str(tmp_path / "few"), "--html", str(tmp_path / "page.html")]) == 1
    assert "too few images for a verdict" in (tmp_path / "page.html").read_text(encoding="utf-8")
    assert main(["drift", str(dataset), str(tmp_path / "few"), "--html", str(dataset / "page.html")]) == 2
    assert not (dataset / "page.html").exists()
    assert main(["drift", str(dataset), str(tmp_path / "gone")]) == 2
    assert main(["drift", str(dataset), "--ignore", "shape"]) == 2
    assert main(["drift", str(tmp_path)]) == 1
