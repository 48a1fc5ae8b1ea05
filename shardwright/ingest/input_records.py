"""Records of the input files, made by the plan and by the writers of shards.

Writers read every file anyway. So they record its checksum, where the plan had only what a store lists, and the
measures of its pixels, where no earlier pass has decoded it. In staging:

inputs/<split>-<i>-of-<n>.jsonl   the images of a shard, by key
inputs/plan.jsonl                 all other files of the listing, by key
inputs/rest.jsonl                 what the fingerprint of the input covers besides the images

Together they give `origins/inputs.jsonl` and the fingerprint of the input. So the manifest is the same whether images
and files of masks were local or on a bucket.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import islice
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from shardwright.dataset.shard_names import shard_name
from shardwright.duplicates.find import DuplicateDecision
from shardwright.ingest.copying import INPUTS_FILE, input_header, input_line
from shardwright.ingest.identify import add_files, input_fingerprint_of, rest_rows
from shardwright.ingest.known_files import FileHashes
from shardwright.ingest.survey import IngestInput
from shardwright.staging.staging import PlannedShard, Staging
from shardwright.storage import FileHash, buckets, hash_file, map_threads
from shardwright.storage.checksum import new_checksum
from shardwright.storage.fingerprint import canonical_json, checksummed_lines
from shardwright.storage.listing import KeyIndex, StringArray

INPUTS_OF_PLAN = "inputs/plan.jsonl"
REST_OF_INPUT = "inputs/rest.jsonl"
# Rows that are joined together.
_TOGETHER = 1024


class InputRow(NamedTuple):
    """A file of the input.

    Attributes:
        key: its key.
        size: its bytes.
        content_id: hex; empty where it is not known, because the file had no effect or cannot be read.
        crc32c: of its bytes.
        listed: the checksum that the store listed, empty for a local file.
        probe: hashes, measures and hash of all pixels, where they are known.
        same: key of the written image that has the same bytes; its content ID is that of this file, too.
        counts: whether the fingerprint of the input covers its content: not if it was rejected unread.
        masks: key and content ID of the files of its masks that were read for the first time.
    """

    key: str
    size: int
    content_id: str = ""
    crc32c: int = 0
    listed: str = ""
    probe: list[Any] | None = None
    same: str = ""
    counts: bool = True
    masks: Sequence[tuple[str, str]] = ()

    def to_json(self) -> str:
        """Returns the row as one line of JSON, without the line end."""
        return canonical_json({"key": self.key, "row": self[1:]})

    @staticmethod
    def from_json(line: str) -> InputRow:
        """Reads one line of `to_json`."""
        row = json.loads(line)
        return InputRow(row["key"], *row["row"])


def inputs_of(planned: PlannedShard) -> str:
    """Returns the name of a shard's file of input rows, in staging."""
    return f"inputs/{planned.split}-{shard_name(planned.number, planned.total)}.jsonl"


def rows_of_plan(surveyed: IngestInput, planned: npt.NDArray[np.bool_], same: DuplicateDecision) -> Iterator[InputRow]:
    """Yields the rows of files that are in no shard. An object of unknown content is read here.

    Args:
        surveyed: the input.
        planned: which files are in a shard, bool (n,).
        same: the duplicates.
    """
    listing, contents, algorithm = surveyed.listing, surveyed.contents, surveyed.recipe.images.checksum
    for i in np.flatnonzero(~planned).tolist():
        row = InputRow(listing.keys[i], listing.sizes[i], listed=listing.checksum(i), counts=i not in surveyed.rejected)
        content, kept = contents.get(i), same.kept_image(i)
        if content is None and row.counts and surveyed.identified[i]:
            if kept != i and planned[kept] and not contents.known[kept]:
                yield row._replace(same=listing.keys[kept])
                continue
            content = contents.get(kept) if kept != i else None
            content = content or hash_file(listing.path(i), listing.pin(i), algorithm)
        yield row if content is None else row._replace(content_id=content.content_id.hex(), crc32c=content.crc32c)


def rest_lines(surveyed: IngestInput) -> Iterator[str]:
    """Yields what the fingerprint of the input covers besides the images, as lines of JSON.

    A list is a row of it. A mapping is a file that the writers read, whose content ID completes the row.
    """
    for row in rest_rows(surveyed):
        yield canonical_json(row) + "\n"
    files = surveyed.source.attachments()
    if files is None or surveyed.attached is None:
        return
    for i, content in enumerate(surveyed.attached):
        key, size = files.keys[i], files.sizes[i]
        if surveyed.attached_later[i]:
            yield canonical_json({"key": key, "size": size, "path": files.path(i), "pin": files.pin(i)}) + "\n"
        else:
            yield canonical_json([key, size, content.content_id.hex() if content else None]) + "\n"


def record_inputs(staging: Staging, shards: tuple[PlannedShard, ...], *, keep: bool) -> str:
    """Joins the rows of all files.

    Args:
        staging: where all shards are finished.
        shards: every shard.
        keep: whether `origins/inputs.jsonl` is written, into staging.

    Returns:
        The fingerprint of the input.
    """
    with staging.path(INPUTS_OF_PLAN).open(encoding="utf-8") as planned:
        wanted = {row.same for row in map(InputRow.from_json, planned)} - {""}
    contents = {row.key: row for row in _rows(staging, shards) if row.key in wanted} if wanted else {}
    total = new_checksum()

    def lines() -> Iterator[str]:
        yield input_header()
        rows = _rows(staging, shards)
        while some := list(islice(rows, _TOGETHER)):
            if contents:
                known = (contents[row.same] if row.same else row for row in some)
                some = [same._replace(key=row.key, listed=row.listed) for same, row in zip(known, some, strict=True)]
            identities = (row.content_id if row.content_id and row.counts else None for row in some)
            add_files(total, [row.key for row in some], [row.size for row in some], identities)
            for row in some if keep else ():
                if row.content_id:
                    yield input_line(row.key, row.size, row.content_id, row.crc32c, row.listed, row.probe)

    if keep:
        staging.write_lines(INPUTS_FILE, checksummed_lines(lines()))
    else:
        deque(lines(), maxlen=0)
    return input_fingerprint_of(total, _rest_of(staging, shards))


def _rest_of(staging: Staging, shards: tuple[PlannedShard, ...]) -> str:
    """Returns the checksum of all of the input but the images. Reads the files that no writer had to read."""

    def rows() -> Iterator[Any]:
        with staging.path(REST_OF_INPUT).open(encoding="utf-8") as lines:
            yield from map(json.loads, lines)

    keys = StringArray(row["key"] for row in rows() if isinstance(row, dict))
    contents, index = FileHashes(len(keys)), KeyIndex(keys)
    if len(keys):
        for row in _rows(staging, shards):
            for key, content_id in row.masks:
                contents.set(index.find(key), FileHash(bytes.fromhex(content_id), 0))
    unread = (row for row in rows() if isinstance(row, dict) and not contents.known[index.find(row["key"])])
    for key, content in map_threads(
        lambda row: (row["key"], hash_file(row["path"], row["pin"])), unread, buckets.CONNECTIONS, itemgetter("size")
    ):
        if content is not None:
            contents.set(index.find(key), content)
    total = new_checksum()
    for row in rows():
        if isinstance(row, dict):
            content = contents.get(index.find(row["key"]))
            add_files(total, [row["key"]], [row["size"]], [content.content_id.hex() if content else None])
        else:
            total.update(canonical_json(row).encode("utf-8") + b"\n")
    return total.hexdigest()


def _rows(staging: Staging, shards: tuple[PlannedShard, ...]) -> Iterator[InputRow]:
    lines = staging.merged_lines(map(inputs_of, shards), (INPUTS_OF_PLAN,))
    while some := list(islice(lines, _TOGETHER)):
        # Parsed together, in half the time.
        yield from (InputRow(row["key"], *row["row"]) for row in json.loads(f"[{','.join(some)}]"))
