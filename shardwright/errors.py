"""The errors a user is meant to see, each with the exit code it ends the command with.

Whoever raises one says what is wrong, where (file, row, column or YAML path), the value, and how to fix it. Whatever is
not one of these is a defect of ours and keeps its traceback.
"""

import os

from shardwright.escaping import escape


class ShardwrightError(Exception):
    """Base of all errors that are shown without a traceback."""

    exit_code = 1

    def __str__(self) -> str:
        """Returns the message; names in it come from outside, and a notebook obeys escape sequences, too."""
        return escape(super().__str__(), lines=True)


class UsageError(ShardwrightError):
    """The call or the configuration is wrong: missing folder, missing column, unknown class. Exit code 2."""

    exit_code = 2


class ConfigError(UsageError):
    """A configuration value is refused before any work.

    Args:
        path: YAML path of the value, e.g. `split.train`.
        problem: what is wrong with it, the value included.
        fix: what to write instead.
    """

    def __init__(self, path: str, problem: str, fix: str) -> None:
        super().__init__(f"{path}: {problem}. {fix}")
        self.path = path
        self.problem = problem
        self.fix = fix

    def __reduce__(self) -> tuple[type["ConfigError"], tuple[str, str, str]]:
        return (type(self), (self.path, self.problem, self.fix))


class CheckFailed(ShardwrightError):
    """The data or the run failed a check: too many rejects, nothing matched, an anomaly. Exit code 1."""


class StorageError(ShardwrightError):
    """A bucket or a disk goes on refusing: no answer after many attempts, no space. Exit code 1."""


class DatasetError(ShardwrightError):
    """A dataset on disk is half-written or damaged. Exit code 1."""


class NotFound(UsageError, DatasetError):
    """Where a dataset, or the folder of a run, was said to lie there is none at all: the path is wrong. Exit code 2."""


def describe_os_error(error: OSError) -> str:
    """What an error of the system says of a path that nobody looked at before, and what to do."""
    place = error.filename2 if error.filename is None else error.filename
    what = error.strerror or str(error)
    if place is None:
        return f"{what}. Check paths, permissions and free space."
    shown = os.fsdecode(place) if isinstance(place, bytes) else place
    return f"{shown}: {what}. Check the path, permissions and free space."
