"""Inputs that `run` refuses before any work, and `ingest` takes."""

import dataclasses

import pytest
from PIL import Image

from shardwright.config import parse_config
from shardwright.errors import ConfigError
from shardwright.pipelines.graph_inputs import render_schema_file, resolve_inputs


def given_input(root, labels):
    (root / "images").mkdir()
    for name in ("a.png", "b.png"):
        Image.new("RGB", (8, 8)).save(root / "images" / name)
    (root / "labels.csv").write_text("image,caption\na.png,x\nb.png,y\n")
    return parse_config(
        {"task": "classification", "input": {"images": str(root / "images"), "labels": labels}}, base=str(root)
    )


@pytest.mark.parametrize("labels", [{"format": "none"}, {"path": "labels.csv"}])
def test_images_without_labels_are_refused_before_any_work(tmp_path, labels):
    config = given_input(tmp_path, labels)
    message = r"input\.labels: the images have no classes.*Use `shardwright ingest`"
    file = tmp_path / "c.yaml"
    with pytest.raises(ConfigError, match=message):
        resolve_inputs(config, file)
    assert not list(tmp_path.glob("*.pbtxt"))
    assert render_schema_file(config, file, force=False).exists()


def test_images_without_a_class_among_others_are_refused_too(tmp_path):
    config = given_input(tmp_path, {"path": "labels.csv"})
    (tmp_path / "labels.csv").write_text("image,label\na.png,x\n")
    config = dataclasses.replace(config, input=dataclasses.replace(config.input, unlisted_images="unlabeled"))
    with pytest.raises(ConfigError, match=r"input\.unlisted_images: 'unlabeled' keeps images without a class"):
        resolve_inputs(config, tmp_path / "c.yaml")


@pytest.mark.parametrize(
    ("transform", "message"),
    [
        ({"preset": "rle_text"}, r"transform\.preset: rle_text stores masks"),
        ({"text": {"caption": {}}}, r"transform\.text\.caption: the images have no such texts"),
        ({"resize": "keep", "size": [8, 8]}, r"transform\.size: \[8, 8\], but transform\.resize is keep"),
        ({"preset": "tfds", "encoding": "raw"}, r"transform\.preset: readers of tfds decode JPEG and PNG"),
        ({"chroma": 411}, r"transform\.chroma: 411 is not known"),
        (
            {"text": {"caption": {"output": "dense", "length": 3}}},
            r"transform\.text\.length: 3, but output: dense has no length",
        ),
    ],
)
def test_a_transform_that_does_not_fit_is_refused_before_any_work(tmp_path, transform, message):
    for name in ("a", "b"):
        (tmp_path / "images" / name).mkdir(parents=True)
        Image.new("RGB", (8, 8)).save(tmp_path / "images" / name / "1.png")
    raw = {"task": "classification", "input": {"images": str(tmp_path / "images")}, "transform": transform}
    with pytest.raises(ConfigError, match=message):
        resolve_inputs(parse_config(raw, base=str(tmp_path)), tmp_path / "c.yaml")
