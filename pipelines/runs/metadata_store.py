"""Reads the metadata store of a run's folder (ML Metadata on SQLite): its runs, and the steps that made an artifact."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import quote

from ml_metadata import errors as store_errors
from ml_metadata.metadata_store import metadata_store
from ml_metadata.proto import metadata_store_pb2 as protos

from shardwright.errors import DatasetError, NotFound
from shardwright.lineage.ancestry import ARTIFACTS, METADATA_FILE
from shardwright.storage.own_names import check_own_database

# Contexts of TFX: one per run, one per component.
_RUN, _NODE = "pipeline_run", "node"
_PUSHED = "pushed_destination"
_LOCK_SECONDS = 5.0
_INPUTS, _OUTPUTS = (
    (protos.Event.INPUT, protos.Event.DECLARED_INPUT),
    (protos.Event.OUTPUT, protos.Event.DECLARED_OUTPUT),
)


class Step(NamedTuple):
    """One execution of a component.

    Attributes:
        execution: its number.
        component: its name.
        state: `COMPLETE`, `CACHED`, `FAILED`, ...
        inputs: paths of the artifacts it read, relative to the run's folder.
        outputs: paths of the artifacts it wrote.
    """

    execution: int
    component: str
    state: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True)
class PastRun:
    """One run.

    Attributes:
        name: TFX's name for it.
        started: when its first component began, milliseconds since 1970.
        steps: its executions, in order.
    """

    name: str
    started: int
    steps: tuple[Step, ...]


def past_runs(run_root: str) -> list[PastRun]:
    """Returns the runs of a run's folder, from old to new.

    Raises:
        NotFound: there is no such folder.
        DatasetError: there is no metadata store, or a damaged one.
    """
    runs = []
    with _open_store(run_root) as store:
        for context in store.get_contexts_by_type(_RUN):
            executions = sorted(store.get_executions_by_context(context.id), key=lambda one: one.id)
            if executions:
                steps = tuple(_step(store, one) for one in executions)
                runs.append(PastRun(context.name, min(one.create_time_since_epoch for one in executions), steps))
    return sorted(runs, key=lambda run: (run.started, run.steps[0].execution))


def last_model(run_root: str) -> str:
    """Returns the folder of the model that was trained last in a run's folder, blessed or not.

    Raises:
        NotFound: there is no such folder, or no training in it has come to its end.
        DatasetError: there is no metadata store, or a damaged one.
    """
    for run in reversed(past_runs(run_root)):
        for step in run.steps:
            if step.component == "Trainer" and step.state in ("COMPLETE", "CACHED"):
                return next(os.path.join(run_root, place) for place in step.outputs if place.split("/")[-2] == "model")
    raise NotFound(f"{run_root}: no training has finished there. Run the pipeline again.")


def steps_to(run_root: str, place: str) -> list[Step]:
    """Returns the executions that made an artifact, from first to last; none if the store does not know it.

    Raises:
        DatasetError: the metadata store is damaged.
    """
    relative = os.path.relpath(place, run_root)
    found: dict[int, Step] = {}
    seen: set[int] = set()
    with _open_store(run_root) as store:
        wanted = [one.id for one in store.get_artifacts() if relative in _places(one)]
        while wanted:
            events = [event for event in store.get_events_by_artifact_ids(wanted) if event.type in _OUTPUTS]
            seen.update(wanted)
            wanted = []
            for execution in store.get_executions_by_id(
                sorted({event.execution_id for event in events} - found.keys())
            ):
                # A cached execution did nothing; the execution that did the work is in the store, too.
                if execution.last_known_state == protos.Execution.COMPLETE:
                    found[execution.id] = _step(store, execution)
                    wanted += [one for one in _ids(store, execution.id, _INPUTS) if one not in seen]
    return [found[number] for number in sorted(found)]


@contextmanager
def _open_store(run_root: str) -> Iterator[metadata_store.MetadataStore]:
    file = os.path.join(run_root, METADATA_FILE)
    if not os.path.isdir(run_root):
        raise NotFound(f"{run_root}: there is no such folder. Give the folder of `shardwright run`.")
    if not os.path.isfile(file):
        raise DatasetError(
            f"{run_root}: has no {METADATA_FILE}, so it is not the folder of a run. Give that of `shardwright run`."
        )
    check_own_database(file)
    _roll_back(file)
    config = protos.ConnectionConfig()
    config.sqlite.filename_uri = file
    config.sqlite.connection_mode = protos.SqliteMetadataSourceConfig.READONLY
    try:
        yield metadata_store.MetadataStore(config)
    except (store_errors.StatusError, RuntimeError) as error:
        raise DatasetError(
            f"{file}: no readable metadata store ({str(error).splitlines()[0]}). Restore it, or move it to another "
            "folder: the next run starts a new one."
        ) from None


def _roll_back(file: str) -> None:
    """Undoes what a power cut interrupted in a store, which cannot be read before; a transaction of a live run stays.

    Raises:
        DatasetError: the store has no tables yet, or a run has been writing to it for seconds.
    """
    try:
        # SQLite does it at the first reading of a connection that may write.
        with closing(sqlite3.connect(f"file:{quote(file)}?mode=rw", uri=True, timeout=_LOCK_SECONDS)) as connection:
            tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    except sqlite3.Error as error:
        if "locked" in str(error):
            raise DatasetError(f"{file}: is locked by a run that writes to it. Try again later.") from None
        return  # ML Metadata reports what is wrong; a folder that may only be read is often sound.
    if not tables:
        raise DatasetError(f"{file}: contains no run: the first one stopped at its start. Start it again.")


def _step(store: metadata_store.MetadataStore, execution: Any) -> Step:
    nodes = [one.name for one in store.get_contexts_by_execution(execution.id) if one.type == _NODE]
    component = nodes[0].rpartition(".")[2] if nodes else execution.type
    state = protos.Execution.State.Name(execution.last_known_state)
    inputs, outputs = (
        tuple(place for one in store.get_artifacts_by_id(_ids(store, execution.id, ways)) for place in _places(one))
        for ways in (_INPUTS, _OUTPUTS)
    )
    return Step(execution.id, component, state, inputs, outputs)


def _ids(store: metadata_store.MetadataStore, execution: int, ways: tuple[Any, ...]) -> list[int]:
    events = store.get_events_by_execution_ids([execution])
    return sorted({event.artifact_id for event in events if event.type in ways})


def _places(artifact: Any) -> Iterator[str]:
    """Yields where an artifact is, and where it was pushed to, both relative to the run's folder.

    A run with workers on other machines records absolute paths, which are those of before if the folder was moved.
    """
    uri = str(artifact.uri)
    yield uri[uri.rfind(f"/{ARTIFACTS}/") + 1 :]
    if _PUSHED in artifact.custom_properties:
        yield str(artifact.custom_properties[_PUSHED].string_value)
