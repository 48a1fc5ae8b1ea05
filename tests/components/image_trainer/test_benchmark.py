"""Results that `bench train` makes of a worker's measurements, and the measuring worker."""

import json
import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from training import RECIPE, SIZE, spec_of

from benchmarks import accelerator
from benchmarks.training import ROUNDS, Turn, medians, over_epochs
from shardwright.components.image_trainer.devices.placement import Placement
from shardwright.components.image_trainer.worker import run_worker

rates = st.floats(0.5, 500)
shares = st.floats(0, 1)


@given(st.lists(rates, min_size=4, max_size=4), st.lists(shares, min_size=2, max_size=2), st.integers(1, 50))
def test_the_epochs_of_a_training_are_put_together_by_their_times(found, waited, epochs):
    early, late, fed_early, fed_late = found
    taken = over_epochs(
        {
            "first": 2.5,
            "constant": [early, late],
            "loaded": [fed_early, fed_late],
            "by_constant": [fed_early / early, fed_late / early],
            "waited": waited,
        },
        epochs,
    )
    # By hand: every epoch has one image.
    seconds = [1 / fed_early] + [1 / fed_late] * (epochs - 1)
    shares = [waited[0]] + [waited[1]] * (epochs - 1)
    assert taken["loaded"] == pytest.approx(epochs / sum(seconds))
    assert taken["constant"] == pytest.approx(epochs / (1 / early + (epochs - 1) / late))
    assert taken["by_constant"] == pytest.approx(epochs / early / sum(seconds))
    assert taken["waited"] == pytest.approx(sum(s * w for s, w in zip(seconds, shares, strict=True)) / sum(seconds))
    assert taken["first"] == 2.5


def round_of(slowness, fed=1.25):
    """A round on a machine that is so much slower, where the loader's turn takes `fed` times as long as the others."""
    return {
        "constant": Turn(slowness, 2 * slowness, 0.0),
        "held": Turn(slowness, 2 * slowness, 0.0),
        "loaded": Turn(fed * slowness, 2 * fed * slowness, 0.1 * fed * slowness),
    }


@given(st.lists(st.floats(0.1, 10), min_size=1, max_size=9))
def test_a_machine_that_is_slower_in_some_rounds_changes_no_comparison(slowness):
    found = medians([round_of(each) for each in slowness], images=16)
    for name in ("by_constant", "by_held", "by_constant_cpu", "low", "high"):
        assert found[name] == pytest.approx(0.8)
    assert found["waited"] == pytest.approx(0.1)


def test_of_the_rounds_the_middle_one_counts():
    found = medians([round_of(1.0, fed) for fed in (1.0, 2.0, 4.0)], images=16)
    assert (found["by_constant"], found["low"], found["high"]) == (0.5, 0.375, 0.75)
    # Ten steps of 16 images in one second, and in two.
    assert (found["constant"], found["loaded"]) == (160.0, 80.0)
    assert (found["constant_cpu"], found["loaded_cpu"]) == (12.5, 25.0)


@pytest.mark.slow
def test_a_worker_measures_the_first_epoch_and_a_later_one(tmp_path, write_shapes):
    # Fewer steps than a turn has: it then goes on into the next epoch.
    data = write_shapes(tmp_path / "data", size=SIZE, counts={"train": 9, "eval": 1, "test": 1})
    spec, found = spec_of(tmp_path / "run", data, RECIPE), {}
    spec.write(tmp_path / "spec.json")
    run_worker(
        ("benchmarks.training",),
        tmp_path / "spec.json",
        tmp_path / "speed.log",
        environment={**Placement("cpu", "tensorflow").to_environment({}), ROUNDS: "2"},
        on_message=found.update,
    )
    assert all(found.pop(name) > 0 for name in ("first", "evaluation", "forward"))
    assert found.pop("together") == 1
    ways = {"constant", "held", "loaded"}
    ratios = {"by_constant", "by_held", "by_constant_cpu", "low", "high"}
    assert set(found) == ways | {f"{way}_cpu" for way in ways} | ratios | {"waited"}
    assert all(len(value) == 2 for value in found.values())
    assert all(0 <= share < 1 for share in found["waited"])
    assert all(rate > 0 for name in found if name != "waited" for rate in found[name])


@pytest.mark.slow
def test_the_measurement_of_an_accelerator_carries_itself(tmp_path, write_shapes):
    """In a process that does not find this checkout, with what is installed: as on a machine with a GPU."""
    data = write_shapes(tmp_path / "shapes", size=SIZE, counts={"train": 9, "eval": 1, "test": 1})
    file, outside = tmp_path / "measure.pyz", tmp_path / "outside"
    outside.mkdir()
    assert accelerator.main(["pack", str(file), str(data)]) == 0
    command = [sys.executable, str(file), "run", "--batch", "3", "--rounds", "1", "--precision", "float32"]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, cwd=outside, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    (row,) = json.loads(done.stdout)
    assert (row["dataset"], row["batch"], row["precision"]) == ("shapes", 3, "float32")
    assert all(row[name] > 0 for name in ("alone", "fed", "evaluation", "forward", "evaluation_by_forward"))
    assert row["code"].startswith(row["unpacked"])
    assert not os.listdir(outside)
    assert accelerator.main(["pack", str(file), str(tmp_path / "nothing")]) == 2
