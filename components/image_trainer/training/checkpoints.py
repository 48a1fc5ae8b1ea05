"""Checkpoints: the whole state of a training after a step, in one file that is whole or counts as absent.

    <folder>/step-0000000120-0000000080.ckpt   the state after step 120
    <folder>/best-0000000080.ckpt              weights of the best epoch so far, which that state names

In both: a line with the BLAKE3 of all that follows, a line of JSON, the numbers of the arrays.

On a disk a file is written under a temporary name, synced and renamed; on an object store an upload is atomic. Damaged
checkpoints are skipped, and the one before is read. The best weights are written before the checkpoint that names them.

`loop.Loop` writes them in a thread, from a copy of the state. Orbax would do as much on JAX alone, with one more
package of many dependencies, and TensorFlow could not go on from its files.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from shardwright.errors import DatasetError, ShardwrightError, StorageError
from shardwright.storage import buckets, durable, is_remote
from shardwright.storage.checksum import checksum_of
from shardwright.storage.locks import lock_folder
from shardwright.storage.mirror import leased, remove_unless_leased
from shardwright.storage.own_names import LOCK_FILE

Arrays = dict[str, npt.NDArray[Any]]

_STEPS = re.compile(r"step-(\d{10})-(\d{10})\.ckpt", re.ASCII)
_BESTS = re.compile(r"best-(\d{10})\.ckpt", re.ASCII)
_PART = ".part"
_OPTIMIZER = "optimizer"
_PAUSE = 0.2
# Seconds before a checkpoint is uploaded again, in addition to the retries of each request
# (`shardwright.storage.buckets`): two minutes in all, since all steps after the last checkpoint would be lost.
_PAUSES = (10.0, 20.0, 30.0)


def pause() -> None:
    """Waits a moment for another training."""
    time.sleep(_PAUSE)


@dataclass(frozen=True)
class Checkpoint:
    """The state after a step.

    Attributes:
        step: steps done.
        meta: plain values.
        arrays: the numbers.
        best: arrays of the best epoch; empty before the first one.
    """

    step: int
    meta: Mapping[str, Any]
    arrays: Arrays
    best: Arrays


def encode_checkpoint(meta: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> bytes:
    """Serializes a checkpoint; the same state gives the same bytes."""
    parts = {name: np.ascontiguousarray(array) for name, array in sorted(arrays.items())}
    table = [[name, array.dtype.str, list(np.shape(arrays[name]))] for name, array in parts.items()]
    head = json.dumps({"meta": dict(meta), "arrays": table}, sort_keys=True, allow_nan=True).encode()
    body = b"".join([head, b"\n", *(array.tobytes() for array in parts.values())])
    return checksum_of(body).encode() + b"\n" + body


def decode_checkpoint(data: bytes) -> tuple[dict[str, Any], Arrays]:
    """Reads the bytes of `encode_checkpoint`.

    Raises:
        DatasetError: the bytes are damaged.
    """
    digest, _, body = data.partition(b"\n")
    if checksum_of(body).encode() != digest:
        raise DatasetError("its digest does not match its content")
    head, _, numbers = body.partition(b"\n")
    header = json.loads(head)
    arrays, place = {}, 0
    for name, dtype, shape in header["arrays"]:
        kind = np.dtype(dtype)
        size = int(np.prod(shape, dtype=np.int64)) * kind.itemsize
        arrays[name] = np.frombuffer(numbers[place : place + size], kind).reshape(shape).copy()
        place += size
    return header["meta"], arrays


class CheckpointFolder:
    """The checkpoints of one training.

    Args:
        place: a folder of this machine, or a URL on an object store.
        keep: number of the newest checkpoints to keep, with the best weights that they name.
        note: gets a message for every damaged file that is skipped, and for every wait for a bucket.
        wait: waits for seconds.
    """

    def __init__(
        self,
        place: str,
        *,
        keep: int = 2,
        note: Callable[[str], None] = lambda message: None,
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        self._place = place.rstrip("/")
        self._keep = keep
        self._note, self._wait = note, wait
        # The newest checkpoint known to be intact.
        self._last: int | None = None

    def locked(self, waiting: Callable[[], None] = pause) -> AbstractContextManager[object]:
        """Locks the folder against clean-up; on this machine also against another process with the same training.

        On a bucket, several machines may run the same training: the last one deletes the checkpoints in `remove`.

        Args:
            waiting: called repeatedly during the wait, to pause or to raise.
        """
        # A worker whose parent was killed still saves its state, and the next training begins with it.
        if is_remote(self._place):
            return leased(self._place)
        return lock_folder(Path(self._place), waiting=waiting, working=False)

    def save(
        self, step: int, meta: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]], best_step: int = 0
    ) -> None:
        """Writes the state after a step, and deletes what is no longer needed.

        Args:
            step: steps done.
            meta: plain values.
            arrays: the numbers.
            best_step: the step of the best weights, written by `save_best`; 0: none yet.

        Raises:
            StorageError: the bucket did not answer for minutes; the previous checkpoint is kept.
        """
        self._write(_step_name(step, best_step), encode_checkpoint(meta, arrays))
        self._last = step
        # If the bucket does not answer now, the next checkpoint deletes the old ones.
        with suppress(StorageError):
            states = self._states()
            for state in states[: -self._keep]:
                self._delete(_step_name(*state))
            needed = {best for _, best in states[-self._keep :]}
            for best in self._bests():
                if best not in needed:
                    self._delete(_best_name(best))

    def save_best(self, step: int, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Writes the weights of the best epoch so far, which ended with a step. Errors as in `save`."""
        self._write(_best_name(step), encode_checkpoint({}, arrays))

    def latest(self) -> Checkpoint | None:
        """Returns the newest intact checkpoint; `None` if there is none."""
        for step, best_step in reversed(self._states()):
            name = _step_name(step, best_step)
            try:
                meta, arrays = decode_checkpoint(self._read(name))
                name = _best_name(best_step)
                best = decode_checkpoint(self._read(name))[1] if best_step else {}
            except (OSError, ValueError, KeyError, DatasetError) as error:
                self._note(f"{self._place}/{name}: damaged ({error}); the checkpoint before it is used")
                continue
            self._last = step
            return Checkpoint(step, meta, arrays, best)
        return None

    def steps(self) -> list[int]:
        """Returns the steps with a checkpoint, ascending."""
        return [step for step, _ in self._states()]

    def remove(self) -> None:
        """Deletes all checkpoints after a finished training; on a bucket the last machine that uses them does so."""
        if is_remote(self._place):
            remove_unless_leased(self._place)
            return
        for state in self._states():
            self._delete(_step_name(*state))
        for step in self._bests():
            self._delete(_best_name(step))
        if os.path.isdir(self._place):
            for name in (_PART, LOCK_FILE):
                self._delete(name)
            try:
                os.rmdir(self._place)
            except OSError:
                return  # The folder contains other files.

    def _states(self) -> list[tuple[int, int]]:
        """Returns step and best step of every checkpoint, ascending."""
        matches = (_STEPS.fullmatch(name) for name in self._names())
        return sorted((int(match[1]), int(match[2])) for match in matches if match)

    def _bests(self) -> list[int]:
        matches = (_BESTS.fullmatch(name) for name in self._names())
        return [int(match[1]) for match in matches if match]

    def _names(self) -> list[str]:
        if is_remote(self._place):
            return [info.name.rpartition("/")[2] for info in buckets.list_objects(f"{self._place}/")]
        return os.listdir(self._place) if os.path.isdir(self._place) else []

    def _read(self, name: str) -> bytes:
        if is_remote(self._place):
            return buckets.read(f"{self._place}/{name}")
        return Path(self._place, name).read_bytes()

    def _write(self, name: str, data: bytes) -> None:
        if is_remote(self._place):
            with tempfile.NamedTemporaryFile() as file:
                file.write(data)
                file.flush()
                self._upload(f"{self._place}/{name}", file.name)
            return
        folder = Path(self._place)
        durable.make_folder(folder)
        # One name for all: the next checkpoint overwrites the remains of a killed process.
        temporary = folder / _PART
        temporary.unlink(missing_ok=True)
        with temporary.open("xb") as file:
            file.write(data)
        durable.replace(temporary, folder / name)

    def _upload(self, url: str, file: str) -> None:
        for seconds in (*_PAUSES, None):
            try:
                buckets.upload(url, file)
                return
            except StorageError as error:
                if seconds is None:
                    last = f"The last checkpoint is of step {self._last}" if self._last is not None else ""
                    there = last or "There is no checkpoint yet"
                    raise StorageError(f"{error} {there}; this one was tried for two minutes.") from None
                self._note(f"{url}: the store does not answer; this checkpoint is tried again in {seconds:.0f} seconds")
                self._wait(seconds)

    def _delete(self, name: str) -> None:
        if is_remote(self._place):
            buckets.delete(f"{self._place}/{name}")
        else:
            Path(self._place, name).unlink(missing_ok=True)


def _step_name(step: int, best_step: int) -> str:
    return f"step-{step:010d}-{best_step:010d}.ckpt"


def _best_name(step: int) -> str:
    return f"best-{step:010d}.ckpt"


def variables(model: Any, optimizer: Any) -> dict[str, list[Any]]:
    """Returns the variables of a training by their groups; without an optimizer those of the model."""
    groups = {"weights": model.trainable_variables, "state": model.non_trainable_variables}
    return groups if optimizer is None else {**groups, _OPTIMIZER: optimizer.variables}


def arrays_of(groups: Mapping[str, list[Any]]) -> Arrays:
    """Returns the numbers of variables, as in a checkpoint; bfloat16, which NumPy lacks, becomes float32."""
    # Numbered: Keras' names depend on how many models a process has built. NumPy 2 warns of a variable of Keras that it
    # is to copy itself.
    numbered = {f"{group}/{i:05d}": v for group, members in groups.items() for i, v in enumerate(members)}
    arrays = {name: np.asarray(variable).copy() for name, variable in numbered.items()}
    return {name: a.astype(np.float32) if a.dtype.kind == "V" else a for name, a in arrays.items()}


def assign(model: Any, optimizer: Any, arrays: Arrays) -> None:
    """Sets the variables of a training, or without an optimizer of a model, to those of a checkpoint.

    Raises:
        ShardwrightError: the arrays are of another model.
    """
    for group, members in variables(model, optimizer).items():
        for index, variable in enumerate(members):
            array = arrays.get(f"{group}/{index:05d}")
            if array is None or tuple(array.shape) != tuple(variable.shape):
                raise ShardwrightError(f"the checkpoint does not fit the model at {variable.path}. Delete it.")
            variable.assign(array.astype(variable.dtype))


def weights_of(arrays: Arrays) -> Arrays:
    """Returns the model's part of a state."""
    return {name: array for name, array in arrays.items() if not name.startswith(f"{_OPTIMIZER}/")}
