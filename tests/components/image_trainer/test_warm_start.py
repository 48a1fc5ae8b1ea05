"""Weights of an earlier training: their files, and their differences."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardwright.checksum import checksum_of
from shardwright.components.image_trainer.training.warm_start import begin_with, difference, weights_file
from shardwright.errors import UsageError

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
