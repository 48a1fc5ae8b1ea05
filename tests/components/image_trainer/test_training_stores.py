"""Checkpoints on object stores: a bucket behaves like a folder, and a killed training continues from there."""

import dataclasses
import signal

import numpy as np
import pytest
from object_stores import SCHEMES, running_stores
from recipes import changed
from training import RECIPE, SIZE, ended, spec_of, start, trained

from shardwright.components.image_trainer.training.checkpoints import CheckpointFolder
from shardwright.components.image_trainer.training.history import read_history

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def stores():
    with running_stores() as running:
        yield running


def weights(value):
    return {"weights/00000": np.full((2, 3), value, np.float32)}


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_bucket_keeps_what_a_folder_keeps(stores, scheme):
    place, notes = f"{stores.bucket(scheme)}/staging/training/x", []
    folder = CheckpointFolder(f"{place}/", keep=2, note=notes.append)
    assert folder.latest() is None
    with folder.locked():
        for step in (1, 2, 3):
            folder.save_best(step, weights(10 * step))
            folder.save(step, {"n": step}, weights(step), best_step=step)
    names = [f"{kind}-{step}.ckpt" for kind, step in
             (("best", "0000000002"), ("best", "0000000003"), ("step", "0000000002-0000000002"),
              ("step", "0000000003-0000000003"))]  # fmt: skip
    assert sorted(stores.tree(place)) == names
    # An object may be written again under the same name, when a damaged checkpoint's step comes again.
    stores.write(f"{place}/{names[3]}", b"cut")
    found = CheckpointFolder(place, note=notes.append).latest()
    assert (found.step, found.best["weights/00000"].max()) == (2, 20)
    assert len(notes) == 1
    assert names[3] in notes[0]
    folder.save(3, {"n": 33}, weights(3), best_step=3)
    assert folder.latest().meta == {"n": 33}
    folder.remove()
    assert stores.tree(place) == {}


def test_a_training_that_is_killed_goes_on_from_its_bucket_to_the_same_weights(stores, tmp_path, write_shapes):
    data = write_shapes(tmp_path / "data", size=SIZE, counts={"train": 24, "eval": 4, "test": 2})
    recipe = changed(RECIPE, order="exact", ema=0.9, accumulate=2)
    whole = trained(spec_of(tmp_path / "whole", data, recipe))
    bucket = f"{stores.bucket('gs')}/staging/training/x"
    spec = dataclasses.replace(spec_of(tmp_path / "killed", data, recipe, every=2), checkpoints=bucket)
    code, _, _ = ended(start(spec, end_at=5))
    assert code == -signal.SIGKILL
    # The one that was being written may be lost, and the one that was to be deleted may be there.
    steps = CheckpointFolder(bucket).steps()
    assert steps in ([2, 3], [2, 3, 4], [3, 4])
    # It was known to be at work.
    assert [name for name in stores.tree(bucket) if name.startswith("leases/")]
    found = trained(spec)
    assert found.resumed == steps[-1:]
    assert found.weights == whole.weights
    assert read_history(spec.output) == read_history(tmp_path / "whole")
    assert not (tmp_path / "killed" / "checkpoints").exists()
