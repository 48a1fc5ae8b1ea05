"""`drift` on the command line: two datasets, a folder, the splits of one; too few images are no good news."""

import json

import pytest
from PIL import Image

from shardwright_pipelines.cli import main


@pytest.fixture(scope="module")
def dataset(small_dataset, tmp_path_factory):
    root = tmp_path_factory.mktemp("drift")
    return small_dataset(root, task="classification", counts={"train": [40], "eval": [25]}, image_format="jpeg")


def test_one_dataset_is_compared_split_by_split(dataset, capsys):
    assert main(["drift", str(dataset)]) == 0
    assert "eval (25 images) against train (40 images): nothing has changed" in capsys.readouterr().out
    assert main(["drift", str(dataset), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["drifted"] is False
    assert [c["reference"] for c in told["comparisons"]] == ["train"]


@pytest.mark.slow
def test_a_folder_of_darker_images(dataset, tmp_path, capsys):
    assert main(["export", str(dataset), "--out", str(tmp_path / "files")]) == 0
    folder = tmp_path / "files" / "images"
    capsys.readouterr()
    assert main(["drift", str(dataset), str(folder)]) == 0
    assert "images (65 images)" in capsys.readouterr().out
    for file in folder.rglob("*"):
        if file.is_file():
            with Image.open(file) as picture:
                picture.point(lambda level: level // 2).save(file, "jpeg")
    assert main(["drift", str(dataset), str(folder), "--json"]) == 1
    (told,) = json.loads(capsys.readouterr().out)["comparisons"]
    assert "brightness" in {f["measure"] for f in told["findings"] if f["drifted"]}
    drifted = [f["measure"] for f in told["findings"] if f["drifted"]]
    assert main(["drift", str(dataset), str(folder), "--ignore", *drifted]) == 0


def test_too_few_images_are_no_good_news(dataset, tmp_path, capsys):
    (tmp_path / "few").mkdir()
    (tmp_path / "few" / "broken.jpg").write_bytes(b"no image")
    assert main(["drift", str(dataset), str(tmp_path / "few")]) == 1
    assert "too few images to tell, 20 of each are needed" in capsys.readouterr().out
    assert main(["drift", str(dataset), str(tmp_path / "gone")]) == 2
    assert main(["drift", str(dataset), "--ignore", "shape"]) == 2
    assert main(["drift", str(tmp_path)]) == 1
