"""The errors that users see, each with the exit code of the command.

A message names the place (file, row, column or YAML path), the problem with the value, and the fix. Any other exception
is a defect of ours and keeps its traceback.
"""

import errno
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from shardwright.text.escaping import escape
from shardwright.text.redaction import redact

# Numbers of the system's errors for writes that find no room.
NO_ROOM = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EFBIG))

_Error = TypeVar("_Error", bound="ShardwrightError")


@dataclass(frozen=True)
class Reading:
    """One of several readings that fit an input.

    Attributes:
        meaning: for the user.
        options: YAML path -> value that chooses it.
        asked: whether it is a question even where no other reading fits.
    """

    meaning: str
    options: Mapping[str, Any]
    asked: bool = False


class ShardwrightError(Exception):
    """Base of all errors that are shown without a traceback.

    Attributes:
        readings: where several readings of an input fit, all of them; `shardwright init` asks which one is meant.
    """

    exit_code = 1
    readings: tuple[Reading, ...] = ()

    def with_readings(self: _Error, *readings: Reading) -> _Error:
        """Adds the readings that fit."""
        self.readings = readings
        return self

    def __str__(self) -> str:
        """Returns the message; names in it come from outside, and a notebook obeys escape sequences, too.

        URLs in it have no credentials.
        """
        return escape(redact(super().__str__()), lines=True)


class AnnotationError(ValueError):
    """An annotation cannot be right: a run-length code, a box, a size. It costs its image, not the run.

    Args:
        message: the value and the limit.
        code: its name in the ledger; by default that of the class.
    """

    code = "bad_annotation"

    def __init__(self, message: str, code: str = "") -> None:
        super().__init__(message)
        self.code = code or self.code

    def at(self, place: str) -> "AnnotationError":
        """Returns the error with the place of the annotation before the message."""
        return AnnotationError(f"{place}: {self}", self.code)


class UsageError(ShardwrightError):
    """The call or the configuration is wrong: missing folder, missing column, unknown class. Exit code 2."""

    exit_code = 2


class ConfigError(UsageError):
    """A configuration value is refused before any work.

    Args:
        path: YAML path of the value, e.g. `split.train`.
        problem: the problem, with the value.
        fix: what to write instead.
    """

    def __init__(self, path: str, problem: str, fix: str) -> None:
        super().__init__(f"{path}: {problem}. {fix}")
        self.path = path
        self.problem = problem
        self.fix = fix

    def __reduce__(self) -> tuple[type["ConfigError"], tuple[str, str, str]]:
        return (type(self), (self.path, self.problem, self.fix))


class CredentialsError(UsageError):
    """A bucket needs credentials, and there are none that are valid. Exit code 2."""


class CheckFailed(ShardwrightError):
    """The data or the run failed a check: too many rejects, nothing matched, an anomaly. Exit code 1."""


class Stopped(ShardwrightError):
    """A signal stopped the work, which continues from its saved state. Exit code 143, as a shell reports SIGTERM.

    Kubernetes restarts a training that ends with it, and does not count that as a failure (`cloud.jobset_document`).
    """

    exit_code = 143


class StorageError(ShardwrightError):
    """A bucket or a disk does not work: no answer after many attempts, no space. Exit code 1."""


class DatasetError(ShardwrightError):
    """A dataset on disk is half-written or damaged. Exit code 1."""


class OtherLayoutError(DatasetError):
    """Another version of Shardwright wrote the dataset, with a layout that this one does not read. Exit code 1."""


class NotFound(UsageError, DatasetError):
    """There is no dataset, or no folder of a run, at the given path: the path is wrong. Exit code 2."""


def unwritable(place: str, error: OSError, fix: str) -> ShardwrightError:
    """Returns the error about a file that cannot be written: the call is not wrong if only the disk is full.

    Args:
        place: the option or the file, as the message begins.
        error: the system's.
        fix: what to do unless the disk is full.
    """
    problem = f"{place} cannot be written ({error.strerror or error})"
    if error.errno in NO_ROOM:
        return StorageError(f"{problem}. Make room, or give another path.")
    return UsageError(f"{problem}. {fix}")


def describe_os_error(error: OSError) -> str:
    """Returns a message for an error of the system about a path that was not checked before."""
    path = error.filename2 if error.filename is None else error.filename
    problem = error.strerror or str(error)
    if path is None:
        return f"{problem}. Check paths, permissions and free space."
    name = os.fsdecode(path) if isinstance(path, bytes) else path
    return f"{name}: {problem}. Check the path, permissions and free space."
