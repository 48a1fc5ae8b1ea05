"""The files of annotations as they were before a run read anything of them.

They are read several times: to tell what they say, to hash them, to cut shards. What is staged is of the fingerprint
only if all of these met the same bytes, so it is looked at last whether they are still what they were at first.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from shardwright.errors import CheckFailed
from shardwright.storage import FileHash, Listing, file_states, hash_file


@dataclass(frozen=True)
class ReadFiles:
    """Files, and what they were.

    Attributes:
        tables: path -> hashes of its bytes; `None` of a file that could not be read.
        further: files that are too many or too large to be hashed once more, such as XML files and TFRecords.
        states: of these, see `file_states`.
    """

    tables: Mapping[str, FileHash | None]
    further: Listing | None = None
    states: bytes = b""

    @staticmethod
    def before(tables: Iterable[str]) -> ReadFiles:
        """Hashes tables that are about to be read."""
        return ReadFiles({path: hash_file(path) for path in tables})

    def and_of(self, further: Listing | None) -> ReadFiles:
        """With further files that are about to be read."""
        if further is None or further is self.further:
            return self
        return dataclasses.replace(self, further=further, states=file_states(further))

    def sha256(self, path: str) -> str | None:
        """Of a table, hex; `None` where it could not be read, or is a folder."""
        known = self.tables.get(path)
        return None if known is None else known.sha256.hex()

    def refuse_changed(self) -> None:
        """Ends a run that may have read other bytes than it hashed.

        Raises:
            CheckFailed: one of the files is not what it was.
        """
        for path, known in self.tables.items():
            if hash_file(path) != known:
                raise _changed(path)
        now = b"" if self.further is None else file_states(self.further)
        if self.further is not None and now != self.states:
            size = len(now) // len(self.further.keys)
            same = (now[i : i + size] == self.states[i : i + size] for i in range(0, len(now), size))
            raise _changed(self.further.path(list(same).index(False)))


def _changed(path: str) -> CheckFailed:
    return CheckFailed(f"{path}: the file has changed while the run was reading the input. Run it again.")
