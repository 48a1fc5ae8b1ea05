"""Weights of an earlier training: their files, and their differences."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardwright.components.image_trainer.spec import SPEC_FILE
from shardwright.components.image_trainer.training.warm_start import (
    KEPT_MODEL,
    begin_with,
    difference,
    earlier_classes,
    weights_file,
)
from shardwright.errors import UsageError
from shardwright.storage.checksum import checksum_of

shapes = st.lists(st.tuples(st.text("ab/", min_size=1), st.lists(st.integers(1, 9), max_size=3).map(tuple)), max_size=6)


@given(shapes, shapes)
def test_models_differ_where_their_shapes_do(mine, theirs):
    assert (difference(mine, theirs) == "") == ([shape for _, shape in mine] == [shape for _, shape in theirs])
    assert difference(mine, mine) == ""


def test_the_first_differences_are_shown():
    mine = [(f"conv_{i}/kernel", (3, 3, i)) for i in range(7)]
    assert (
        difference(mine, [*mine[:6], ("other/kernel", (3, 3, 9))])
        == "conv_6/kernel [3, 3, 6] here, other/kernel [3, 3, 9] there"
    )
    assert difference(mine, mine[:2]).endswith("conv_5/kernel [3, 3, 5] here, nothing there; and 1 more")


def test_a_file_or_the_folder_of_a_model_or_of_a_training(tmp_path):
    kept = tmp_path / "pushed" / "1" / "assets.extra" / "model.keras"
    kept.parent.mkdir(parents=True)
    kept.touch()
    (tmp_path / "model.keras").write_bytes(b"weights")
    assert weights_file(str(tmp_path / "pushed" / "1")) == (str(kept), checksum_of(b""))
    wanted = str(tmp_path / "model.keras"), checksum_of(b"weights")
    assert weights_file(str(tmp_path)) == weights_file(wanted[0]) == wanted
    with pytest.raises(UsageError, match="pushed is not a file and does not contain a model of shardwright"):
        weights_file(str(tmp_path / "pushed"))


def model(width):
    import keras

    return keras.Sequential([keras.Input((3,)), keras.layers.Dense(width), keras.layers.Dense(2)])


def test_the_weights_of_a_file_are_taken_or_refused_with_the_difference(tmp_path):
    earlier, file = model(4), str(tmp_path / "model.keras")
    earlier.save(file)
    ours = model(4)
    begin_with(ours, file)
    for mine, theirs in zip(ours.get_weights(), earlier.get_weights(), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    with pytest.raises(
        UsageError,
        match=r"another architecture, sequential\S* of 26 .*: \S*kernel \[3, 5\] here, \S*kernel \[3, 4\] there",
    ):
        begin_with(model(5), file)
    (tmp_path / "model.keras").write_bytes(b"no model")
    with pytest.raises(UsageError, match="cannot be read"):
        begin_with(ours, file)


def scored(*classes):
    import keras

    return keras.Sequential([keras.Input((3,)), keras.layers.Dense(4), keras.layers.Dense(len(classes), name="scores")])


def exported(folder, made, classes):
    """Writes a model with the names of its classes, as an export does; returns the file of its weights."""
    file = folder / KEPT_MODEL
    file.parent.mkdir(parents=True)
    made.save(file)
    (folder / "assets").mkdir()
    (folder / "assets" / "classes.json").write_text(json.dumps(classes))
    return str(file)


@pytest.mark.parametrize(
    ("classes", "noted"),
    [
        (("daisy", "rose", "tulip"), None),
        (("a_tulip", "daisy", "rose"), "kept: daisy, rose; new, with initial weights: a_tulip; gone: tulip"),
        (("tulip", "rose", "daisy"), "kept: tulip, rose, daisy"),
        (("daisy", "lily", "rose", "tulip"), "kept: daisy, rose, tulip; new, with initial weights: lily"),
        (("tulip",), "kept: tulip; gone: daisy, rose"),
    ],
)
def test_the_outputs_go_by_the_names_of_the_classes(tmp_path, classes, noted):
    before = ("daisy", "rose", "tulip")
    earlier, ours = scored(*before), scored(*classes)
    for weight in earlier.weights:
        weight.assign(np.random.default_rng(1).normal(size=weight.shape))
    first = ours.get_weights()
    notes = begin_with(ours, exported(tmp_path, earlier, before), classes)
    assert [note.split("by name; ")[1] for note in notes] == ([noted] if noted else [])
    for mine, theirs in zip(ours.get_weights()[:2], earlier.get_weights()[:2], strict=True):
        np.testing.assert_array_equal(mine, theirs)
    for mine, initial, theirs in zip(ours.get_weights()[2:], first[2:], earlier.get_weights()[2:], strict=True):
        for at, name in enumerate(classes):
            wanted = theirs[..., before.index(name)] if name in before else initial[..., at]
            np.testing.assert_array_equal(mine[..., at], wanted)


def test_a_custom_model_with_other_classes_is_refused_with_both(tmp_path):
    file = exported(tmp_path, scored("b", "c"), ("b", "c"))
    assert begin_with(scored("b", "c"), file, ("b", "c"), own=True) == ()
    with pytest.raises(UsageError, match="has the classes b, c, and the data has c, b. .*custom model"):
        begin_with(scored("c", "b"), file, ("c", "b"), own=True)


def test_the_names_are_those_of_the_export_or_of_the_training(tmp_path):
    exported(tmp_path, scored("b", "c"), ("b", "c"))
    assert earlier_classes(str(tmp_path / KEPT_MODEL)) == ("b", "c")
    assert earlier_classes(str(tmp_path / "model.keras")) is None
    (tmp_path / SPEC_FILE).write_text('{"classes": ["x", "y"]}')
    assert earlier_classes(str(tmp_path / "model.keras")) == ("x", "y")
    for damaged in ("[1, 2]", '{"classes": []}', '{"classes": "xy"}', "no JSON"):
        (tmp_path / SPEC_FILE).write_text(damaged)
        assert earlier_classes(str(tmp_path / "model.keras")) is None
        (tmp_path / "assets" / "classes.json").write_text(damaged)
        with pytest.raises(UsageError, match="classes.json (cannot be read|is not a list of classes)"):
            earlier_classes(str(tmp_path / KEPT_MODEL))


def test_a_file_without_names_is_taken_in_order_and_the_log_says_so(tmp_path):
    file = str(tmp_path / "model.keras")
    scored("b", "c").save(file)
    (note,) = begin_with(scored("x", "y"), file, ("x", "y"))
    assert note.endswith("model.keras does not name its classes, so their order is taken to be today's")


def test_the_layer_of_the_outputs_has_the_name_that_is_sought():
    from shardwright.components.image_trainer.models.build import build_model

    for name in ("unet", "deeplab", "cnn"):
        layers = build_model(name, height=16, width=16, classes=7, filters=4, seed=1).layers
        assert [layer.name for layer in layers if any(w.shape[-1] == 7 for w in layer.weights)] == ["scores"]
