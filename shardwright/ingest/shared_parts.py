"""Parts of a look at the pixels that workers on any machine take, and their results, as files of a staging folder.

    look/00000.json    the files of a part (`Part`)
    look/00000.jsonl   their results, a line each (`Seen`), written by the worker

A part whose results are there is not given out again, so a look that was interrupted goes on where it was.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from shardwright.errors import CheckFailed
from shardwright.ingest.known_files import ALGORITHM
from shardwright.ingest.probe import Look, Part, Seen
from shardwright.staging.staging import Staging
from shardwright.storage import map_threads, read_bytes, readers
from shardwright.storage.checksum import new_checksum
from shardwright.storage.fingerprint import fingerprint


def look_fingerprint(content: str, look: Look, parts: Sequence[Part]) -> str:
    """Returns the name of the staging folder of a look: the same content of the same files has the same results.

    Args:
        content: the content fingerprint of the input.
        look: what is looked for.
        parts: the files.
    """
    files = new_checksum()
    for part in parts:
        files.update(part.to_text().encode("utf-8"))
    return fingerprint(["look", ALGORITHM, content, vars(look.options), files.hexdigest()])


def share_parts(staging: Staging, parts: Sequence[Part]) -> list[int]:
    """Writes the parts whose results are not there yet; returns their numbers."""

    def share(number: int) -> bool:
        if staging.is_shared(_results(number)):
            return False
        staging.share(_files(number), parts[number].to_text().encode("utf-8"))
        return True

    shared = map_threads(share, range(len(parts)), _requests(staging))
    return [number for number, missing in enumerate(shared) if missing]


def look_at_part(number: int, look: Look, staging: Staging) -> None:
    """Probes the files of a part, and writes the results."""
    part = Part.from_text(read_bytes(staging.location(_files(number))).decode("utf-8"))
    _, seen = look(part)
    staging.share(_results(number), "".join(f"{one.to_text()}\n" for one in seen).encode("utf-8"))


def shared_results(staging: Staging, look: Look, parts: Sequence[Part]) -> Iterator[tuple[int, list[Seen]]]:
    """Yields the beginning of each part, and the results of its files; looks again where they are damaged.

    Raises:
        CheckFailed: no worker has written those of a part.
    """

    def read(number: int) -> list[Seen]:
        place = staging.location(_results(number))
        try:
            return [Seen.from_text(line) for line in read_bytes(place).decode("utf-8").splitlines()]
        except OSError:
            raise CheckFailed(
                f"{place}: Beam's workers have not written it. If they are on other machines, run.staging must be a "
                "folder that all of them share. Run it again."
            ) from None
        except (ValueError, TypeError):
            return []

    for part, seen in zip(parts, map_threads(read, range(len(parts)), _requests(staging)), strict=True):
        yield (part.begin, seen) if len(seen) == len(part.look) else look(part)


def _requests(staging: Staging) -> int:
    return readers(staging.mirror.url if staging.mirror else staging.root)


def _files(number: int) -> str:
    return f"look/{number:05d}.json"


def _results(number: int) -> str:
    return f"look/{number:05d}.jsonl"
