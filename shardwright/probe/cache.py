"""Probe rows kept by content, so that a resumed run and next month's run decode only what they have not seen.

One SQLite file per version of the algorithm. It is a cache: a row that is damaged is probed again, a file that is
damaged is started anew, and where none can be written the run goes on without.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import partial
from pathlib import Path

from shardwright.probe.row import ALGORITHM, ProbeRow

_TABLE = "CREATE TABLE IF NOT EXISTS probed (content BLOB PRIMARY KEY, row TEXT NOT NULL) WITHOUT ROWID"
_SECONDS_TO_WAIT = 30.0


def cache_file(folder: str) -> Path:
    """Where the rows of this version of the algorithm lie."""
    return Path(folder, f"probe-{ALGORITHM}.sqlite")


class ProbeCache:
    """Rows by content. Any number of processes read while one writes.

    Args:
        file: the file; `None` for a cache that keeps nothing.
    """

    def __init__(self, file: Path | None) -> None:
        self._file = file

    @staticmethod
    def open(folder: str | None) -> ProbeCache:
        """The cache in a folder, made where it is missing; one that keeps nothing where it cannot be made."""
        if folder is None:
            return ProbeCache(None)
        file = cache_file(folder)
        with suppress(OSError):
            file.parent.mkdir(parents=True, exist_ok=True)
        return ProbeCache(file if _mended(file, _make) else None)

    def holds_rows(self) -> bool:
        """Whether there is anything to be found; where there is not, no file needs to be asked for."""
        if self._file is not None:
            with suppress(sqlite3.Error), _connected(self._file, "ro") as connection:
                return connection.execute("SELECT 1 FROM probed LIMIT 1").fetchone() is not None
        return False

    @contextmanager
    def reading(self) -> Iterator[Callable[[bytes], ProbeRow | None]]:
        """Yields a function that gives the sound row of a content, or `None` where there is none."""
        with ExitStack() as stack:
            connection = None
            if self._file is not None:
                with suppress(sqlite3.Error):
                    connection = stack.enter_context(_connected(self._file, "ro"))
            yield partial(_find, connection)

    def keep(self, rows: Mapping[bytes, ProbeRow]) -> None:
        """Keeps rows, all or none."""
        if self._file is None or not rows:
            return
        texts = [(content, row.to_text(content)) for content, row in rows.items()]

        def insert(connection: sqlite3.Connection) -> None:
            _make(connection)
            connection.executemany("INSERT OR REPLACE INTO probed VALUES (?, ?)", texts)

        _mended(self._file, insert)


def forget_rows(folder: str, contents: Iterable[bytes]) -> int:
    """Deletes the rows of contents from the files of every version in a folder, so that no byte of them is left.

    Returns:
        How many rows there were.
    """
    count = [0]
    rows = [(content,) for content in contents]

    def delete(connection: sqlite3.Connection) -> None:
        connection.execute("PRAGMA secure_delete=ON")
        _make(connection)
        count[0] += connection.executemany("DELETE FROM probed WHERE content = ?", rows).rowcount

    for file in sorted(Path(folder).glob("probe-*.sqlite")):
        _mended(file, delete)
    return count[0]


def _make(connection: sqlite3.Connection) -> None:
    connection.execute(_TABLE)
    if [column[1] for column in connection.execute("PRAGMA table_info(probed)")] != ["content", "row"]:
        raise sqlite3.DatabaseError("another table of this name")


def _mended(file: Path, work: Callable[[sqlite3.Connection], None]) -> bool:
    """Does something with a database; one that turns out to be damaged is started anew. Tells whether it was done."""
    for _ in range(2):
        try:
            with _connected(file, "rwc") as connection, connection:
                work(connection)
            return True
        except sqlite3.OperationalError:
            return False  # No access, no space, or another process holds it for long.
        except sqlite3.DatabaseError:
            for name in (file, file.with_name(f"{file.name}-journal")):
                with suppress(OSError):
                    name.unlink()
    return False


def _find(connection: sqlite3.Connection | None, content: bytes) -> ProbeRow | None:
    if connection is None:
        return None
    try:
        found = connection.execute("SELECT row FROM probed WHERE content = ?", (content,)).fetchone()
    except sqlite3.Error:
        return None
    return ProbeRow.from_text(content, str(found[0])) if found else None


@contextmanager
def _connected(file: Path, mode: str) -> Iterator[sqlite3.Connection]:
    uri = f"{file.absolute().as_uri()}?mode={mode}"
    with closing(sqlite3.connect(uri, uri=True, timeout=_SECONDS_TO_WAIT)) as connection:
        # A lost cache costs time, so nothing waits for the disk.
        connection.execute("PRAGMA synchronous=OFF")
        yield connection
