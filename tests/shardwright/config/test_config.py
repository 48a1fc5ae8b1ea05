"""Configurations: all but the images has a default; wrong values are refused with its YAML path."""

import contextlib
import dataclasses
import os
import threading
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from shardwright.config import Config, load_config, parse_config
from shardwright.errors import ConfigError, UsageError


def parse(**sections):
    sections.setdefault("input", {"images": "pictures"})
    return parse_config(sections, base="/data")


def test_only_the_images_are_needed():
    config = parse()
    assert config.task == "segmentation"
    assert config.split.ratios == {"train": 0.8, "eval": 0.1, "test": 0.1}
    assert config.shards.target_size == 150_000_000
    assert config.resolve(config.input.images) == "/data/pictures"
    assert config.resolve("gs://bucket/x") == "gs://bucket/x"


def test_sizes_and_percentages():
    config = parse(shards={"target_size": "1.5MB"}, images={"max_pixels": "2MP"}, rejects={"max_fraction": "2.5%"})
    assert config.shards.target_size == 1_500_000
    assert config.images.max_pixels == 2_000_000
    assert config.rejects.max_fraction == pytest.approx(0.025)
    assert parse(trainer={"learning_rate": "1e-3"}).trainer.learning_rate == pytest.approx(1e-3)


REFUSED = [
    ({"trainer": {"epoch": 3}}, r"trainer\.epoch: unknown key\. Did you mean trainer\.epochs\?"),
    ({"tariner": {}}, r"tariner: unknown key\. Did you mean trainer\?"),
    ({"input": {}}, r"input\.images: missing"),
    ({"input": {"images": ""}}, r"input\.images: empty"),
    ({"input": {"images": 3}}, r"input\.images: 3 is not a text"),
    ({"input": {"images": "x", "labels": {"format": "rle_csv"}}}, r"input\.labels\.path: missing"),
    (
        {"input": {"images": "x", "labels": {"format": "coco_json"}}},
        r"path: missing\. The format .* of a COCO JSON file",
    ),
    (
        {"input": {"images": "x", "labels": {"format": "coco_json", "path": "t", "columns": {"image": "x"}}}},
        r"input\.labels\.columns\.image: a COCO file has no columns",
    ),
    (
        {"input": {"images": "x", "labels": {"format": "coco_json", "path": "t", "rle": {"order": "row"}}}},
        r"input\.labels\.rle\.order: there are no run lengths",
    ),
    ({"input": {"images": "x", "labels": {"format": "file_name"}}}, r"file_name contains no masks"),
    ({"input": {"images": "x", "labels": {"format": "file_name", "path": "t"}}}, r"'t' is not used by file_name"),
    ({"input": {"images": "x", "labels": {"regex": "(?P<label>x"}}}, r"labels\.regex: .* not a regular expression"),
    ({"input": {"images": "x", "labels": {"regex": "(x)"}}}, r"labels\.regex: .* has no group `label`"),
    ({"input": {"images": "x", "labels": {"regex": "(?P<label>x)"}}}, r"segmentation takes no labels from names"),
    (
        {"task": "classification", "input": {"images": "x", "labels": {"regex": "(?P<image>x)", "path": "t"}}},
        r"labels\.regex: .* is for file_name only, without a path",
    ),
    ({"input": {"images": "x", "labels": {"regex": "(?P<label>x)", "path": "t"}}}, r"has no group `image`"),
    ({"input": {"images": "x", "labels": {"format": "mask_images"}}}, r"path: missing\. The format mask_images needs"),
    (
        {"input": {"images": "x", "labels": {"format": "pascal_voc", "path": "t", "columns": {"image": "x"}}}},
        r"columns\.image: pascal_voc has no columns",
    ),
    (
        {"input": {"images": "x", "labels": {"format": "pascal_voc", "path": "t", "regex": "(?P<image>x)"}}},
        r"regex: .* is for file_name, without a path, and mask_images only",
    ),
    (
        {"input": {"images": "x", "labels": {"format": "mask_images", "path": "t", "unlisted_values": "ignore"}}},
        r"labels\.unlisted_values: .*, but without input\.classes every value of a mask is a class\.",
    ),
    (
        {
            "input": {
                "images": "x",
                "classes": ["a"],
                "labels": {"format": "rle_csv", "path": "t", "unlisted_values": "ignore"},
            }
        },
        r"labels\.unlisted_values: there are no mask images",
    ),
    (
        {"task": "classification", "input": {"images": "x", "labels": {"format": "mask_images", "path": "t"}}},
        r"labels\.format: mask_images contains masks, and task is classification",
    ),
    ({"input": {"images": "x", "labels": {"format": "rel_csv"}}}, r"input\.labels\.format: 'rel_csv' is not known"),
    ({"input": {"images": "x", "labels": {"format": "class_folders"}}}, r"contains no masks"),
    (
        {"input": {"images": "x", "labels": {"rle": {"order": "diagonal"}}}},
        r"input\.labels\.rle\.order: 'diagonal' is not known",
    ),
    (
        {"input": {"images": "x", "labels": {"rle": {"encoding": "coco"}}}},
        r"input\.labels\.rle\.encoding: 'coco' is not known",
    ),
    (
        {"input": {"images": "x", "labels": {"rle": {"start": 2}, "path": "t"}}},
        r"input\.labels\.rle\.start: 2 is not known",
    ),
    (
        {"input": {"images": "x", "labels": {"rle": {"start": 1, "encoding": "relative"}, "path": "t"}}},
        r"relative runs have no first position",
    ),
    (
        {"input": {"images": "x", "labels": {"rle": {"order": "row", "encoding": "counts"}, "path": "t"}}},
        r"column by column",
    ),
    (
        {"input": {"images": "x", "labels": {"rle": {"order": "row"}}}},
        r"input\.labels\.rle\.order: there are no run lengths",
    ),
    (
        {"task": "classification", "input": {"images": "x", "labels": {"rle": {"order": "row"}, "path": "t"}}},
        r"input\.labels\.rle\.order: the task classification has no masks",
    ),
    ({"input": {"images": "x", "classes": ["a", "a"]}}, r"input\.classes: 'a' is there twice"),
    ({"input": {"images": "x", "classes": {"a": 1, "b": 1}}}, r"two classes share an id"),
    ({"input": {"images": "x", "classes": ["a\nb"]}}, r"cannot be part of a feature's name"),
    ({"input": {"images": "x", "classes": []}}, r"input\.classes: empty"),
    ({"input": {"images": "x", "unlisted_images": "maybe"}}, r"input\.unlisted_images: 'maybe'"),
    ({"input": {"images": "x", "labels": {"path": "a\0b"}}}, r"input\.labels\.path: 'a\\x00b' contains a NUL"),
    ({"shards": {"count": 1_000_001}}, r"shards\.count: 1000001 is out of range\. Use a value from 1 to 1000000"),
    ({"shards": {"records": 2**63}}, r"shards\.records: a number of more than 63 bits"),
    ({"trainer": {"learning_rate": 10**400}}, r"trainer\.learning_rate: a number of more than 63 bits"),
    ({"run": {"staging": "gs://"}}, r"run\.staging: 'gs://' does not name a bucket"),
    ({"split": {"ratios": {"train": 0.8, "eval": 0.1}}}, r"split\.ratios: the shares add up to 0\.9"),
    ({"split": {"ratios": {"train": "most"}}}, r"split\.ratios\.train: 'most' is not a number"),
    ({"split": {"ratios": {"train": float("inf")}}}, r"split\.ratios\.train: inf is not a number"),
    ({"trainer": {"learning_rate": "nan"}}, r"trainer\.learning_rate: 'nan' is not a number"),
    ({"evaluator": {"threshold": False}}, r"evaluator\.threshold: False is not a number"),
    ({"evaluator": {"min_area": False}}, r"evaluator\.min_area: False is not a whole number"),
    ({"split": {"metod": "group"}}, r"split\.metod: unknown key\. Did you mean split\.method\?"),
    ({"split": {"train": 1}}, r"split\.train: unknown key\. .* write split\.ratios: \{train: 1\}"),
    ({"split": {"ratios": {"Train": 1.0}}}, r"split\.ratios\.Train: not a split's name"),
    (
        {"split": {"ratios": {"train": 0.9, "eval": 0.1}}, "evaluator": {"split": "test"}},
        r"evaluator\.split: 'test' is not a split",
    ),
    ({"split": {"method": "moon"}}, r"split\.method: 'moon' is not known"),
    ({"shards": {"count": 3, "records": 5}}, r"shards: count and records exclude each other"),
    ({"shards": {"count": 0}}, r"shards\.count: 0 is out of range"),
    ({"shards": {"target_size": "3 parsecs"}}, r"shards\.target_size: '3 parsecs' is not a whole number"),
    ({"transform": {"size": [352]}}, r"transform\.size: \[352\] has 1 entries"),
    ({"transform": {"size": "big"}}, r"transform\.size: 'big' is not a list"),
    ({"transform": {"size": [352, 2]}}, r"transform\.size\[1\]: 2 is out of range"),
    ({"transform": {"quality": True}}, r"transform\.quality: True is not a whole number"),
    ({"loader": {"augment": ["spin"]}}, r"loader\.augment: 'spin' is not known"),
    ({"trainer": None, "trainre": 1}, r"trainre: unknown key"),
    ({"trainer": 3}, r"trainer: 3 is not a mapping"),
    ({"trainer": {"model": "cnn"}}, r"trainer\.model: 'cnn' does not solve segmentation"),
    ({"trainer": {"seed": None}}, r"trainer\.seed: null"),
    ({"evaluator": {"min_dice": 1.5}}, r"evaluator\.min_dice: 1\.5 is out of range"),
    ({"gate": {"allow_anomalies": ["no such kind"]}}, r"gate\.allow_anomalies\[0\]: 'no such kind'"),
    ({"task": "detection"}, r"task: 'detection' is not known"),
    ({"run": {"space": "ignore"}}, r"run\.space: 'ignore' is not known"),
    ({"name": "Clouds!"}, r"name: 'Clouds!' is not a pipeline name"),
    ({"base": "/"}, r"base: unknown key"),
]


@pytest.mark.parametrize(("raw", "message"), REFUSED, ids=[m[:40] for _, m in REFUSED])
def test_refused_with_path_value_and_fix(raw, message):
    with pytest.raises(ConfigError, match=message) as caught:
        parse(**raw)
    assert caught.value.exit_code == 2
    assert caught.value.fix


def test_class_forms(tmp_path):
    (tmp_path / "names.json").write_text('{"b": 2, "a": 1}')
    (tmp_path / "names.csv").write_text("x\ny\n")
    (tmp_path / "ids.csv").write_text("x,7\ny,3\n")

    def classes(value: Any) -> Any:
        return parse_config({"input": {"images": "p", "classes": value}}, base=str(tmp_path)).input.classes

    assert list(classes(["Fish", "Flower"]).items()) == [("Fish", None), ("Flower", None)]
    assert list(classes({"Flower": 2, "Fish": 1}).items()) == [("Fish", 1), ("Flower", 2)]
    assert list(classes("names.json").items()) == [("a", 1), ("b", 2)]
    assert list(classes("names.csv").items()) == [("x", None), ("y", None)]
    (tmp_path / "one.csv").write_bytes("x\u2028y\r\nz\x85z".encode())
    assert list(classes("one.csv")) == ["x\u2028y", "z\x85z"]
    assert list(classes("ids.csv").items()) == [("y", 3), ("x", 7)]
    with pytest.raises(ConfigError, match=r"'none\.json' cannot be read"):
        classes("none.json")


def test_files_that_are_no_configuration(tmp_path):
    file = tmp_path / "My Clouds.yaml"
    with pytest.raises(UsageError, match="no such configuration file"):
        load_config(file)
    with pytest.raises(UsageError, match="^gs://bucket/clouds.yaml: no such"):
        load_config("gs://bucket/clouds.yaml")
    file.write_text("input: [")
    with pytest.raises(UsageError, match=r"not valid YAML: .*line 1"):
        load_config(file)
    file.write_text("- a\n- b\n")
    with pytest.raises(UsageError, match="contains list, not a mapping"):
        load_config(file)
    for text in ("[" * 5000 + "]" * 5000, "{a: " * 5000 + "1" + "}" * 5000, "name: 2026-13-45", f"a: {'9' * 5000}"):
        file.write_text(f"{text}\n")
        with pytest.raises(UsageError, match="not valid YAML: .*(100 deep|month|a number of 5,000)"):
            load_config(file)
    file.write_text("name: a\nname: b\ninput: {images: x}\n")
    with pytest.raises(UsageError, match="the key 'name' twice"):
        load_config(file)
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match="cannot be read as UTF-8"):
        load_config(file)
    file.write_text("input: {images: x}\n")
    config = load_config(file, root="elsewhere")
    assert config.name == "my-clouds"
    assert config.run.root == "elsewhere"


def test_a_pipe_without_a_writer_is_empty_and_one_with_a_writer_is_read(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(UsageError, match=r"pipe: is empty\. Start with"):
        load_config(pipe)
    # As a shell's `<(...)` is; without a reader, the writer could not open it.
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    with pipe.open("w", encoding="utf-8") as writing:
        writing.write("input: {images: photographs}\n")
        thread = threading.Timer(0.0, writing.close)
        thread.start()
        assert load_config(pipe).input.images
    thread.join()
    os.close(reading)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
        max_leaves=8,
    ),
    st.sampled_from([f.name for f in dataclasses.fields(Config)]),
)
@example({}, "loader")
def test_any_value_anywhere_parses_or_is_refused(value, section):
    with contextlib.suppress(ConfigError):
        assert isinstance(parse(**{section: value}), Config)


def test_resolved_configuration_is_plain():
    plain = parse(input={"images": "x", "classes": ["a", "b"]}).to_dict()
    assert plain["input"]["classes"] == {"a": None, "b": None}
    assert plain["transform"]["size"] == [352, 544]
