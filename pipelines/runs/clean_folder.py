"""`shardwright clean`: removes old runs from a run's folder, but nothing that a blessed model descends from.

It keeps all that the last runs read and wrote, also from the cache, and the datasets that these name; every pushed
model, its ancestors by lineage, and the artifacts that the metadata store records for it; rows of the probe, which make
the next run faster. It removes everything else below `artifacts`, old logs, and the staging folder, unless the last run
failed and would resume from there. A folder is renamed before it is deleted, so that a kill leaves no half folder
behind. It removes nothing if damaged lineage cannot be followed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from shardwright.errors import DatasetError, StorageError, UsageError
from shardwright.lineage.ancestry import ARTIFACTS, PUSHED, Family, find_artifacts
from shardwright.lineage.blessing import Blessing, read_blessing
from shardwright.pipelines.runs.metadata_store import PastRun, past_runs, steps_to
from shardwright.pipelines.runs.run_folder import LOGS, STAGING, is_model_name, locked_run
from shardwright.staging.staged import is_in_use, staged_folders
from shardwright.storage import durable, list_names
from shardwright.storage.own_names import SET_ASIDE, remove_tree, set_aside

_SUCCEEDED = ("COMPLETE", "CACHED")
_LAST = "Pusher"
_LOG = re.compile(r"[0-9-]+\.log", re.ASCII)
# The folder of an execution's temporary files.
_WORKING = ".system/executor_execution"


@dataclass(frozen=True)
class Removable:
    """A file or folder that is no longer of use.

    Attributes:
        place: relative to the run's folder.
        bytes: its size.
    """

    place: str
    bytes: int


@dataclass(frozen=True)
class CleanResult:
    """The files and folders that were removed, or would be.

    Attributes:
        runs: how many runs there were.
        kept: how many of them are kept.
        old: the files and folders, in order of their paths.
        protected: places that are kept only because a blessed model descends from them.
    """

    runs: int
    kept: int
    old: tuple[Removable, ...]
    protected: tuple[str, ...]

    @property
    def bytes(self) -> int:
        """Size of all of them."""
        return sum(removable.bytes for removable in self.old)


def clean(run_root: str, keep: int, *, superseded: bool = False, dry_run: bool = False) -> CleanResult:
    """Removes old runs from a run's folder.

    Args:
        run_root: the folder.
        keep: number of latest runs to keep; at least 1.
        superseded: also remove models other than the baseline model, and what only they descend from.
        dry_run: remove nothing.

    Raises:
        UsageError: a run is active in the folder, or `keep` is less than 1.
        DatasetError: it is not a folder of a run, or an ancestor of a pushed model is damaged.
        StorageError: something cannot be removed.
    """
    check_keep(keep)
    past_runs(run_root)  # First, so that no lock file is made outside a run's folder.
    with locked_run(run_root):
        runs = past_runs(run_root)
        recent = runs[-keep:]
        places = [place for folder in (ARTIFACTS, PUSHED) for place in find_artifacts(f"{run_root}/{folder}")]
        # Folders that an earlier call began to delete are no longer artifacts.
        places = [place for place in places if "/.deleted-" not in place.removeprefix(run_root)]
        family = Family(places)
        pushed = f"{run_root}/{PUSHED}"
        check_family(family, places, pushed_models(pushed, read_blessing(pushed), places))
        used = {place for run in recent for step in run.steps for place in (*step.inputs, *step.outputs)}
        used |= {f"{ARTIFACTS}/{step.component}/{_WORKING}/{step.execution}" for run in recent for step in run.steps}
        needed = set(_needed_by_models(run_root, family, superseded=superseded, used=used))
        kept = used | needed | set(_datasets_of(run_root, family, used))
        old = list(_removable(run_root, kept, runs, keep, superseded=superseded))
        if not dry_run:
            _remove([Path(run_root, removable.place) for removable in old])
        return CleanResult(len(runs), len(recent), tuple(old), tuple(sorted(needed - used)))


def check_keep(keep: int) -> None:
    """Refuses to keep no run.

    Raises:
        UsageError: `keep` is less than 1.
    """
    if keep < 1:
        raise UsageError(f"--keep: {keep} is too few. Keep 1 or more: the next run reuses their outputs.")


def pushed_models(pushed: str, blessing: Blessing | None, places: Iterable[str]) -> set[str]:
    """Returns the folders of the pushed models, also of those without lineage.

    Args:
        pushed: folder or URL that models are pushed to.
        blessing: the current one.
        places: the artifacts that were found there and elsewhere.
    """
    names = {name for name in list_names(pushed) if is_model_name(name)}
    names |= {place.rpartition("/")[2] for place in places if place.rpartition("/")[0] == pushed}
    names |= set() if blessing is None else {blessing.model}
    return {f"{pushed}/{name}" for name in names}


def check_family(family: Family, places: Iterable[str], models: Collection[str]) -> None:
    """Checks that the ancestors of pushed models are known.

    Args:
        family: all artifacts.
        places: the folders that they were read from.
        models: the folders of the pushed models.

    Raises:
        DatasetError: they are not, so it is unknown which folders a model needs.
    """
    if unknown := sorted(set(models) - family.artifacts.keys()):
        raise DatasetError(
            f"{unknown[0]}: the lineage of this model is missing. Restore its lineage.json, or move the model to "
            "another folder."
        )
    unsure = [place for place in places if place not in family.artifacts or family.artifacts[place].problems]
    if unsure:
        ancestors = (ancestor for place in sorted(models) for ancestor in family.ancestors(family.artifacts[place]))
        for ancestor in ancestors:
            for role, value in ancestor.links.items():
                if family.find(role, value) is None:
                    raise DatasetError(
                        f"{unsure[0]}: is damaged (`shardwright verify`, `shardwright lineage`), and may be the {role} "
                        f"{value[:12]} that {ancestor.place} descends from. Restore it, or move it to another folder."
                    )


def _datasets_of(run_root: str, family: Family, used: Collection[str]) -> Iterator[str]:
    """Yields datasets that artifacts name as parents: the metadata store does not know that of `split.keep_from`."""
    for place in used:
        artifact = family.artifacts.get(f"{run_root}/{place}")
        for role, value in () if artifact is None else artifact.links.items():
            parent = family.find(role, value)
            if parent is not None and parent.digest:
                yield os.path.relpath(parent.place, run_root)


def _needed_by_models(run_root: str, family: Family, *, superseded: bool, used: set[str]) -> Iterator[str]:
    """Yields the blessed models and all that they descend from, relative to the folder."""
    blessing = read_blessing(f"{run_root}/{PUSHED}")
    baseline = "" if blessing is None else f"{PUSHED}/{blessing.model}"
    # Without a baseline model, it is unknown which of them are superseded.
    superseded = superseded and blessing is not None
    for place, artifact in family.artifacts.items():
        relative = os.path.relpath(place, run_root)
        if os.path.dirname(relative) != PUSHED or (superseded and relative != baseline and relative not in used):
            continue
        for ancestor in family.ancestors(artifact):
            yield os.path.relpath(ancestor.place, run_root)
            for step in steps_to(run_root, ancestor.place):
                yield from (*step.inputs, *step.outputs)
        for evaluation in family.evaluations(artifact):
            yield os.path.relpath(evaluation.place, run_root)


def _removable(
    run_root: str, kept: set[str], runs: Sequence[PastRun], keep: int, *, superseded: bool
) -> Iterator[Removable]:
    places = list(_artifacts(run_root))
    if superseded and read_blessing(f"{run_root}/{PUSHED}") is not None:
        places += [f"{PUSHED}/{name}" for name in _names(f"{run_root}/{PUSHED}") if _is_numbered(name)]
    for place in places:
        if place not in kept:
            yield _with_size(run_root, place)
    last = runs[-1].steps if runs else ()
    if not runs or (_LAST in [step.component for step in last] and all(step.state in _SUCCEEDED for step in last)):
        for folder in staged_folders(f"{run_root}/{STAGING}"):
            if not is_in_use(folder):
                yield _with_size(run_root, os.path.relpath(folder, run_root))
    logs = [name for name in _names(f"{run_root}/{LOGS}", os.DirEntry.is_file) if _LOG.fullmatch(name)]
    for name in logs[:-keep]:
        yield _with_size(run_root, f"{LOGS}/{name}")


def _artifacts(run_root: str) -> Iterator[str]:
    """Yields the folders of artifacts and executions, which TFX numbers, and those that an earlier call left."""
    for component in _names(f"{run_root}/{ARTIFACTS}"):
        for key in (*_names(f"{run_root}/{ARTIFACTS}/{component}"), _WORKING):
            for name in _names(f"{run_root}/{ARTIFACTS}/{component}/{key}"):
                if _is_numbered(name):
                    yield f"{ARTIFACTS}/{component}/{key}/{name}"


def _is_numbered(name: str) -> bool:
    """Returns whether TFX or an earlier call named a folder; others are the user's."""
    return is_model_name(SET_ASIDE.sub("", name, count=1))


def _names(folder: str, is_of_kind: Callable[..., bool] = os.DirEntry.is_dir) -> list[str]:
    """Returns the names of the folders in a folder, or of its files; links are neither."""
    try:
        with os.scandir(folder) as entries:
            return sorted(entry.name for entry in entries if is_of_kind(entry, follow_symlinks=False))
    except OSError:
        return []


def _with_size(run_root: str, place: str) -> Removable:
    top = os.path.join(run_root, place)
    total = 0
    for folder, _, files in [("", (), (top,))] if os.path.isfile(top) else os.walk(top):
        for name in files:
            with suppress(OSError):
                total += os.lstat(os.path.join(folder, name)).st_size
    return Removable(place, total)


def _remove(places: Sequence[Path]) -> None:
    folders = []
    for place in places:
        try:
            if place.is_dir():  # Of a real folder: `locked_run` has seen all.
                folders.append(set_aside(place))
            else:
                place.unlink(missing_ok=True)
        except OSError as error:
            raise StorageError(f"{place}: cannot be removed ({error.strerror}). Check its permissions.") from None
    # All new names first: a power failure must not leave half a folder under its old name.
    durable.flush(place.parent for place in places)
    for folder in folders:
        remove_tree(folder)
    durable.flush(place.parent for place in places)
