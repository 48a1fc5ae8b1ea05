"""Checkpoints: what is read is what was written, damage is passed over, and no more is kept than asked for."""

import os
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from object_stores import running_stores
from power_cuts import LOST, restore, simulated_disk

from shardwright.components.image_trainer.training.checkpoints import (
    CheckpointFolder,
    decode_checkpoint,
    encode_checkpoint,
)
from shardwright.components.image_trainer.training.training_progress import Preemption, waiting
from shardwright.errors import DatasetError, Stopped, StorageError, UsageError
from shardwright.staging.staged import clear
from shardwright.storage import buckets
from shardwright.storage.locks import lock_folder
from shardwright.storage.mirror import SILENT_VARIABLE

kinds = st.sampled_from([np.float32, np.uint32, np.int64])
states = st.dictionaries(
    st.text("abc/0", min_size=1, max_size=8),
    kinds.flatmap(
        lambda kind: arrays.arrays(kind, arrays.array_shapes(min_dims=0, max_dims=3, max_side=4, min_side=0))
    ),
    max_size=4,
)


def weights(value):
    return {"weights/00000": np.full((2, 3), value, np.float32), "state/00000": np.array(value, np.uint32)}


def values(folder):
    found = folder.latest()
    return None if found is None else (found.step, found.meta, int(found.arrays["state/00000"]), len(found.best))


@given(st.dictionaries(st.text(), st.floats(allow_nan=False) | st.integers(-(2**60), 2**60) | st.text()), states)
def test_a_state_survives_its_bytes_to_the_bit(meta, state):
    found, read = decode_checkpoint(encode_checkpoint(meta, state))
    assert found == meta
    assert set(read) == set(state)
    for name, array in state.items():
        assert (read[name].dtype, read[name].shape) == (array.dtype, array.shape)
        assert read[name].tobytes() == array.tobytes()


def test_a_power_cut_leaves_the_last_checkpoint_or_the_one_before(tmp_path):
    with simulated_disk(tmp_path) as disk:
        folder = CheckpointFolder(str(tmp_path / "checkpoints"))
        for step in (1, 2):
            folder.save(step, {"step": step}, weights(step))
            assert step_after(disk.after_cut(LOST), tmp_path / "lost" / str(step)) == step
    # A checkpoint is there before the one before it goes.
    found = [step_after(state, tmp_path / "cuts" / str(n)) for n, state in enumerate(disk.states)]
    assert set(found) == {None, 1, 2}
    first = found.index(1)
    assert None not in found[found.index(2) :]
    assert found[first:]


def step_after(state, place):
    restore(state, place)
    latest = CheckpointFolder(str(place / "checkpoints")).latest()
    return None if latest is None else latest.step


@given(st.data())
def test_any_change_of_a_byte_shows(data):
    whole = encode_checkpoint({"step": 3}, weights(1))
    place = data.draw(st.integers(0, len(whole) - 1))
    flipped = bytearray(whole)
    flipped[place] ^= 1 << data.draw(st.integers(0, 7))
    for damaged in (bytes(flipped), whole[:place]):
        with pytest.raises(DatasetError, match="digest"):
            decode_checkpoint(damaged)


def test_the_newest_is_read_and_the_last_ones_are_kept_with_their_best_weights(tmp_path):
    folder = CheckpointFolder(str(tmp_path), keep=2)
    assert values(folder) is None
    folder.save(1, {"n": 1}, weights(1))
    folder.save_best(2, weights(20))
    folder.save(2, {"n": 2}, weights(2), best_step=2)
    folder.save(3, {"n": 3}, weights(3), best_step=2)
    assert folder.steps() == [2, 3]
    assert values(folder) == (3, {"n": 3}, 3, 2)
    assert folder.latest().best["state/00000"] == 20
    folder.save_best(4, weights(40))
    folder.save(4, {"n": 4}, weights(4), best_step=4)
    folder.save(5, {"n": 5}, weights(5), best_step=4)
    assert sorted(file.name[:15] for file in tmp_path.iterdir()) == [
        "best-0000000004",
        "step-0000000004",
        "step-0000000005",
    ]


@pytest.mark.parametrize("damaged", ["step-0000000003-0000000003.ckpt", "best-0000000003.ckpt"])
def test_a_damaged_checkpoint_is_reported_and_the_one_before_is_read(tmp_path, damaged):
    notes = []
    folder = CheckpointFolder(str(tmp_path), note=notes.append)
    folder.save(2, {}, weights(2))
    folder.save_best(3, weights(30))
    folder.save(3, {}, weights(3), best_step=3)
    os.truncate(tmp_path / damaged, 100)
    assert values(folder) == (2, {}, 2, 0)
    assert len(notes) == 1
    assert damaged in notes[0]
    (tmp_path / damaged).unlink()
    assert values(folder)[0] == 2


@pytest.mark.parametrize("times", [0, 1, 3, 4])
def test_a_bucket_that_is_away_is_waited_for_but_not_for_ever(monkeypatch, times):
    there, left, notes, pauses = [], [0], [], []

    def upload(url, path):
        if left[0]:
            left[0] -= 1
            raise StorageError(f"{url}: the store did not answer")
        there.append(url.rpartition("/")[2])

    def away(url):
        raise StorageError(f"{url}: the store did not answer")

    monkeypatch.setattr(buckets, "upload", upload)
    # Old checkpoints cannot be listed: that ends no training.
    monkeypatch.setattr(buckets, "list_objects", away)
    folder = CheckpointFolder("gs://bucket/x", note=notes.append, wait=pauses.append)
    folder.save(3, {}, weights(3))
    left[0] = times
    if times > 3:
        with pytest.raises(StorageError, match=r"did not answer The last checkpoint is of step 3; .* two minutes"):
            folder.save(4, {}, weights(4))
        left[0] = times
        with pytest.raises(StorageError, match="There is no checkpoint yet"):
            CheckpointFolder("gs://bucket/x", wait=pauses.append).save_best(4, weights(4))
        assert len(there) == 1
        return
    folder.save(4, {}, weights(4))
    assert there == ["step-0000000003-0000000000.ckpt", "step-0000000004-0000000000.ckpt"]
    assert pauses == [10, 20, 30][:times]
    assert len(notes) == times
    assert all("does not answer" in note for note in notes)


def test_what_a_kill_leaves_is_no_checkpoint(tmp_path):
    folder = CheckpointFolder(str(tmp_path))
    folder.save(1, {}, weights(1))
    (tmp_path / ".part").write_bytes(b"half")
    (tmp_path / "step-1.ckpt").write_bytes(b"a stranger's")
    assert values(folder)[0] == 1


def test_of_a_finished_training_nothing_is_left(tmp_path):
    folder = CheckpointFolder(str(tmp_path / "training" / "x"))
    with folder.locked():
        folder.save_best(1, weights(1))
        folder.save(1, {}, weights(1), best_step=1)
    (tmp_path / "training" / "x" / ".part").touch()
    folder.remove()
    assert not (tmp_path / "training" / "x").exists()
    folder.remove()


def test_a_training_that_waited_for_one_that_deleted_the_folder_locks_the_new_folder(tmp_path):
    root, name = str(tmp_path / "staging"), f"training/{'a' * 32}"
    folder, entered, leave = CheckpointFolder(f"{root}/{name}"), threading.Event(), threading.Event()

    def second():
        with folder.locked():
            entered.set()
            leave.wait()

    waiting = threading.Thread(target=second)
    with folder.locked():
        waiting.start()
        folder.save(1, {}, weights(1))
        with pytest.raises(UsageError, match="another run is active there"):
            clear(root)
        assert folder.steps() == [1]
        folder.remove()
    assert entered.wait(60)
    try:
        folder.save(1, {}, weights(1))
        with pytest.raises(UsageError, match="another run is active there"):
            clear(root)
    finally:
        leave.set()
        waiting.join()
    assert clear(root) == [f"{root}/{name}"]
    assert os.listdir(root) == []


def test_a_training_on_a_bucket_keeps_its_checkpoints_from_others(monkeypatch, tmp_path):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with running_stores() as stores:
        monkeypatch.setenv(SILENT_VARIABLE, "0.3")
        root, name = f"{stores.bucket('gs')}/staging", f"training/{'a' * 32}"
        first, second = CheckpointFolder(f"{root}/{name}/"), CheckpointFolder(f"{root}/{name}")
        with first.locked():
            first.save(1, {}, weights(1))
            with pytest.raises(UsageError, match="another run is active there"):
                clear(root)
            # As on another machine, where the same training ends first.
            with monkeypatch.context() as elsewhere:
                elsewhere.setattr("shardwright.storage.mirror._held", {})
                second.remove()
        assert first.steps() == [1]
        first.remove()
        assert stores.tree(root) == {}


@pytest.mark.parametrize("backend", ["tensorflow", "jax"])
def test_a_model_whose_weights_have_16_bits_goes_on_from_its_checkpoint(backend):
    import keras

    from shardwright.components.image_trainer.devices.hosts import HostPlace
    from shardwright.components.image_trainer.devices.placement import Placement
    from shardwright.components.image_trainer.training.device_input import DeviceInput
    from shardwright.components.image_trainer.training.learner import Learner
    from shardwright.components.image_trainer.training.train import build_steps

    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(3, dtype="bfloat16")])
    optimizer = keras.optimizers.Adam(0.1)
    optimizer.build(model.trainable_variables)
    learner = Learner(model, None, optimizer, DeviceInput("none", None, None, 2, False), None)
    steps = build_steps(Placement("cpu", backend), HostPlace(), learner)
    state = steps.state()
    assert state["weights/00000"].shape == (2, 3)
    _, read = decode_checkpoint(encode_checkpoint({}, state))
    steps.restore({name: np.zeros_like(array) for name, array in read.items()})
    steps.restore(read)
    assert steps.state().keys() == state.keys()
    for name, array in steps.state().items():
        np.testing.assert_array_equal(array.astype(np.float32), state[name].astype(np.float32))
    assert np.any(steps.state()["weights/00000"])


def test_it_reports_once_that_it_waits_for_another_training_and_continues_after_it(tmp_path, monkeypatch):
    folder, other, sent, pauses = CheckpointFolder(str(tmp_path)), lock_folder(tmp_path), [], []

    def pause():
        pauses.append(1)
        if len(pauses) == 3:
            other.close()

    monkeypatch.setattr("shardwright.components.image_trainer.training.training_progress.pause", pause)
    with folder.locked(waiting(Preemption(), sent.append)):
        assert len(pauses) == 3
    (message,) = sent
    assert "another process runs the same training" in message["note"]


def test_a_training_that_waits_for_another_can_be_stopped(tmp_path):
    preemption = Preemption()
    preemption.signal = "SIGTERM"
    stopped = pytest.raises(Stopped, match="received SIGTERM while it waited")
    with lock_folder(tmp_path), stopped, CheckpointFolder(str(tmp_path)).locked(waiting(preemption, list)):
        pass
