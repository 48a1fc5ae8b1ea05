"""Trainings that are killed or stopped, and continue: the weights are those of an uninterrupted one."""

import dataclasses
import random
import signal

import pytest
from recipes import changed
from training import COUNTS, RECIPE, SIZE, ended, spec_of, start, trained

from shardwright.components.image_trainer.training.checkpoints import CheckpointFolder
from shardwright.components.image_trainer.training.history import read_history, read_summary

pytestmark = pytest.mark.slow

STEPS = RECIPE.trainer.epochs * COUNTS["train"] // RECIPE.trainer.batch_size


@pytest.fixture(scope="module")
def data(tmp_path_factory, write_shapes):
    return write_shapes(tmp_path_factory.mktemp("resumed") / "data", size=SIZE, counts=COUNTS)


@pytest.fixture(scope="module")
def whole(tmp_path_factory, data):
    """An uninterrupted training with `order: fast`: its folder, and its messages."""
    folder = tmp_path_factory.mktemp("whole")
    return folder, trained(spec_of(folder, data))


def test_killed_at_a_random_step_it_ends_with_the_same_weights_to_the_bit(data, whole, tmp_path):
    recipe = changed(RECIPE, order="exact")
    exact = trained(spec_of(tmp_path / "exact", data, recipe))
    spec = spec_of(tmp_path / "killed", data, recipe, every=2)
    step = random.randrange(3, STEPS)
    code, messages, _ = ended(start(spec, end_at=step))
    assert code == -signal.SIGKILL
    assert not any("error" in message for message in messages)
    found = trained(spec)
    assert found.weights == exact.weights
    assert read_history(spec.output) == read_history(tmp_path / "exact")
    # Every second step, and the end of an epoch, has a checkpoint; the step that the kill followed had none yet, and at
    # most two before it were being written.
    saved = [s for s in range(step) if s and (s % 2 == 0 or s % (STEPS // 2) == 0)]
    assert found.resumed in [[s] for s in saved[-3:]] + [[]] * (len(saved) < 3)
    assert exact.resumed == []
    assert found.compilations == exact.compilations == 1
    # Another order.
    assert read_history(spec.output).loss != read_history(whole[0]).loss


def test_after_a_signal_it_saves_first_and_continues_from_there_also_past_a_damaged_checkpoint(data, whole, tmp_path):
    spec = spec_of(tmp_path / "stopped", data, every=2)
    code, messages, _ = ended(start(spec, end_at=7, by=signal.SIGTERM))
    assert (code, messages[-1]["exit_code"]) == (1, 143)
    assert messages[-1]["error"] == (
        "the training was stopped (SIGTERM) and saved its state at step 7 of 10. Run it again to continue from there."
    )
    folder = CheckpointFolder(spec.checkpoints)
    assert folder.steps() == [6, 7]
    newest = max((tmp_path / "stopped" / "checkpoints").glob("step-*"))
    newest.write_bytes(newest.read_bytes()[:-1])
    code, messages, log = ended(start(spec))
    assert code == 0, log
    assert [m["resumed"] for m in messages if "resumed" in m] == [6]
    assert ["digest" in m["note"] for m in messages if "note" in m] == [True]
    assert read_history(spec.output) == read_history(whole[0])
    assert read_summary(spec.output).weights == whole[1].weights


def test_killed_among_steps_that_are_launched_together_it_ends_with_the_same_weights_to_the_bit(data, tmp_path):
    # Five steps an epoch, launched as 3, 1 and 1.
    recipe = changed(RECIPE, order="exact", epochs=3, steps_per_launch=3)
    for backend in ("jax", "tensorflow"):
        specs = [spec_of(tmp_path / backend / name, data, recipe) for name in ("whole", "killed")]
        devices = {"SHARDWRIGHT_CPU_DEVICES": "1"} if backend == "jax" else {}
        whole = trained(specs[0], **devices)
        assert (whole.backend, whole.compilations) == (backend, 2)
        code, _, log = ended(start(specs[1], end_at=9, **devices))
        assert code == -signal.SIGKILL, log
        found = trained(specs[1], **devices)
        assert found.resumed in ([], [5])
        assert found.weights == whole.weights
        one = trained(spec_of(tmp_path / backend / "one", data, changed(recipe, steps_per_launch=1)), **devices)
        assert [row["loss"] for row in whole.epochs] == pytest.approx([row["loss"] for row in one.epochs], rel=1e-3)


def test_a_warm_start_goes_on_learning(data, whole, tmp_path):
    file = str(whole[0] / "model.keras")
    second = dataclasses.replace(
        spec_of(tmp_path / "second", data, changed(RECIPE, epochs=1)), warm_from=file, warm_digest="w" * 64
    )
    assert second.fingerprint != dataclasses.replace(second, warm_from="", warm_digest="").fingerprint
    assert second.fingerprint == dataclasses.replace(second, warm_from="elsewhere").fingerprint
    summary = trained(second)
    assert summary.warm_start == "w" * 64
    assert read_history(second.output).loss[0] < read_history(whole[0]).loss[0]


def test_16_bits_and_another_optimizer_learn_and_the_model_is_kept_in_float32(data, tmp_path):
    import keras

    recipe = changed(
        RECIPE,
        precision="bfloat16",
        optimizer="sgd",
        schedule="linear",
        warm_up=0.0,
        learning_rate=0.05,
        epochs=3,
    )
    spec = spec_of(tmp_path, data, recipe)
    summary = trained(spec)
    losses = [row["loss"] for row in summary.epochs]
    assert losses[-1] < losses[0]
    assert all(0 <= row["input_bound"] <= 1 < row["images_per_second"] for row in summary.epochs)
    model = keras.saving.load_model(tmp_path / "model.keras", compile=False)
    assert {layer.dtype_policy.name for layer in model.layers} == {"float32"}
