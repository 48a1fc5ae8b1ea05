"""What `bench train` makes of a worker's measurements, and that a worker measures."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from training import RECIPE, SIZE, spec_of

from shardwright_components.image_trainer.placement import Placement
from shardwright_components.image_trainer.speed import over_epochs
from shardwright_components.image_trainer.worker import run_worker

rates = st.floats(0.5, 500)
shares = st.floats(0, 1)


@given(st.lists(rates, min_size=4, max_size=4), st.lists(shares, min_size=2, max_size=2), st.integers(1, 50))
def test_the_epochs_of_a_training_are_put_together_by_their_times(found, waited, epochs):
    early, late, fed_early, fed_late = found
    told = over_epochs(
        {"first": 2.5, "constant": [early, late], "loaded": [fed_early, fed_late], "waited": waited}, epochs
    )
    # By hand: every epoch has one image.
    seconds = [1 / fed_early] + [1 / fed_late] * (epochs - 1)
    shares = [waited[0]] + [waited[1]] * (epochs - 1)
    assert told["loaded"] == pytest.approx(epochs / sum(seconds))
    assert told["constant"] == pytest.approx(epochs / (1 / early + (epochs - 1) / late))
    assert told["waited"] == pytest.approx(sum(s * w for s, w in zip(seconds, shares, strict=True)) / sum(seconds))
    assert told["first"] == 2.5


@pytest.mark.slow
def test_a_worker_measures_the_first_epoch_and_a_later_one(tmp_path, write_shapes):
    # Fewer steps than a turn has: it then goes on into the next epoch.
    data = write_shapes(tmp_path / "data", size=SIZE, counts={"train": 9, "eval": 1, "test": 1})
    spec, found = spec_of(tmp_path / "run", data, RECIPE), {}
    spec.write(tmp_path / "spec.json")
    run_worker(
        "shardwright_components.image_trainer.speed_worker",
        tmp_path / "spec.json",
        tmp_path / "speed.log",
        environment=Placement("cpu", "tensorflow").to_environment({}),
        on_message=found.update,
    )
    first = found.pop("first")
    assert first > 0
    assert set(found) == {"constant", "loaded", "waited", "constant_cpu", "loaded_cpu"}
    assert all(len(value) == 2 for value in found.values())
    assert all(0 <= share < 1 for share in found["waited"])
    assert all(rate > 0 for name in found if name != "waited" for rate in found[name])
