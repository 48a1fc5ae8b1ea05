"""The folder of a run: one run uses it at a time, and nothing under the names that runs give leads out of it."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from shardwright.lineage.ancestry import ARTIFACTS, METADATA_FILE, PUSHED
from shardwright.lineage.blessing import BLESSING_FILE
from shardwright.storage import list_names
from shardwright.storage.locks import run_lock
from shardwright.storage.own_names import check_own_database, check_own_tree, is_own

STAGING, LOGS, SCHEMAS = "staging", "logs", "schemas"
_NUMBER = re.compile(r"[0-9]+", re.ASCII)


@contextmanager
def locked_run(run_root: str | os.PathLike[str]) -> Iterator[None]:
    """Locks the folder of a run for this process, and checks its own folders and files; the folder may be new.

    Raises:
        UsageError: another run is active there, or a link or another thing that no run makes has a name of ours.
    """
    check_own_database(os.path.join(run_root, METADATA_FILE))
    for name in (ARTIFACTS, STAGING, LOGS, SCHEMAS, PUSHED):
        is_own(os.path.join(run_root, name))
    is_own(os.path.join(run_root, PUSHED, BLESSING_FILE), stat.S_IFREG)
    with run_lock(Path(run_root)):
        yield


def check_artifacts(run_root: str | os.PathLike[str]) -> None:
    """Checks the folders that TFX writes into, under numbers that anybody can guess, and follows links in.

    Raises:
        UsageError: there is a link, or another thing that no run makes.
    """
    pushed = os.path.join(run_root, PUSHED)
    models = [os.path.join(pushed, name) for name in list_names(pushed) if is_model_name(name)]
    for folder in (os.path.join(run_root, ARTIFACTS), *models):
        if is_own(folder):
            check_own_tree(folder)


def is_model_name(name: str) -> bool:
    """Returns whether a folder of pushed models is one that TFX named."""
    return _NUMBER.fullmatch(name) is not None
