"""`trainer.callbacks: package.module:function`: what the callbacks see in a training, and what is refused."""

import csv
import json
import os
import sys
from pathlib import Path

import pytest
from recipes import changed
from training import COUNTS, RECIPE, SIZE, ended, spec_of, start, trained

from shardwright.components.image_trainer.spec import TrainRecipe
from shardwright.config import parse_config
from shardwright.errors import ConfigError, UsageError

# As the Trainer gives it to its workers.
PATHS = os.pathsep.join(path for path in sys.path if path)


def config_of(base, callbacks):
    return parse_config({"input": {"images": "x"}, "trainer": {"callbacks": callbacks}}, base=str(base))


def test_the_source_is_part_of_the_recipe(tmp_path):
    (tmp_path / "callbacks_of_mine.py").write_text("def callbacks(): return []\n")
    first = TrainRecipe.from_config(config_of(tmp_path, "callbacks_of_mine:callbacks"))
    assert first.trainer.callbacks == "callbacks_of_mine:callbacks"
    (tmp_path / "callbacks_of_mine.py").write_text("def callbacks(): return [1]\n")
    assert TrainRecipe.from_config(config_of(tmp_path, "callbacks_of_mine:callbacks")) != first
    with pytest.raises(UsageError, match=r"trainer\.callbacks: the source of module 'no_such_thing' was not found"):
        TrainRecipe.from_config(config_of(tmp_path, "no_such_thing:callbacks"))
    with pytest.raises(ConfigError, match=r"trainer\.callbacks: 'mine' is not an import path"):
        config_of(tmp_path, "mine")


@pytest.fixture(scope="module")
def data(tmp_path_factory, write_shapes):
    return write_shapes(tmp_path_factory.mktemp("callbacks") / "data", size=SIZE, counts=COUNTS)


@pytest.mark.slow
@pytest.mark.two_stacks
@pytest.mark.parametrize("environment", [{}, {"SHARDWRIGHT_CPU_DEVICES": "2"}], ids=["tensorflow", "jax"])
def test_keras_callbacks_see_a_training_and_end_it(data, tmp_path, environment):
    recipe = changed(RECIPE, epochs=4, callbacks="own_callbacks:recorded")
    summary = trained(spec_of(tmp_path, data, recipe), PYTHONPATH=PATHS, **environment)
    assert summary.backend == ("jax" if environment else "tensorflow")
    assert (len(summary.epochs), summary.stopped_early) == (2, True)
    rows = [json.loads(line) for line in (tmp_path / "called.jsonl").read_text().splitlines()]
    epoch = ["on_epoch_begin", *["on_train_batch_end"] * 5, "on_epoch_end"]
    assert [row["method"] for row in rows] == ["on_train_begin", *epoch, *epoch, "on_train_end"]
    assert rows[0]["params"] == {"epochs": 4, "steps": 5, "verbose": 0}
    ends = [row for row in rows if row["method"] == "on_epoch_end"]
    for row, shown in zip(ends, summary.epochs, strict=True):
        assert row["logs"]["loss"] == pytest.approx(shown["loss"])
        assert row["logs"]["val_mean_dice"] == pytest.approx(shown["metrics"]["mean_dice"])
    # The weights are those of the end of the epoch, on every backend.
    assert len({rows[0]["weights"], *(row["weights"] for row in ends)}) == 3
    with (tmp_path / "epochs.csv").open() as file:
        assert [float(row["loss"]) for row in csv.DictReader(file)] == [row["logs"]["loss"] for row in ends]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("fails", "own_callbacks:fails failed (ValueError: nothing for segmentation)"),
        ("numbers", "own_callbacks:numbers returned int. Return a list of keras.callbacks.Callback."),
        ("breaks", "own_callbacks:breaks: Breaks.on_epoch_end failed (RuntimeError: no such server)"),
        ("none", "own_callbacks has no function 'none'"),
    ],
)
def test_what_fails_is_named(data, tmp_path, name, message):
    code, messages, said = ended(
        start(spec_of(tmp_path, data, changed(RECIPE, callbacks=f"own_callbacks:{name}")), PYTHONPATH=PATHS)
    )
    assert code == 1, said
    assert messages[-1]["error"].startswith(f"trainer.callbacks: {message}")
    assert not Path(tmp_path, "model.keras").exists()
