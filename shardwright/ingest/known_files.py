"""Hashes and probe results of files, from this run or from a previous one.

`FileHashes` are the hashes of a listing; those of a million files take forty megabytes. `ProbeRow` is the result of
probing one file, and `KnownFiles` the results of a listing.

`ProbeCache` keeps probe rows by content, each with a checksum, so that a resumed run and next month's run decode only
new files. It is one SQLite file per version of the algorithm. A damaged row is probed again, a damaged file is
re-created, and if it cannot be written the run goes on without it.
"""

from __future__ import annotations

import json
import sqlite3
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from copy import copy
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
from PIL import Image

from shardwright.duplicates.hashes import ImageHashes, as_int64, hashes_of
from shardwright.errors import StorageError, UsageError
from shardwright.images.decode import convert, decode
from shardwright.images.header import ImageError, ImageHeader
from shardwright.images.quality import Quality, measure, pixel_digest, reduced, thumbnail
from shardwright.running.progress import Progress
from shardwright.storage import LOCAL_TOGETHER, FileHash, Listing, Refusal, hash_file, is_remote, map_threads, readers
from shardwright.storage.checksum import DIGEST_BYTES
from shardwright.storage.fingerprint import canonical_json
from shardwright.storage.limits import MOST_BYTES
from shardwright.storage.locks import lock_folder
from shardwright.storage.own_names import check_own_database, is_own

# Version of everything that makes a row of an image's bytes: raised whenever one part gives other values.
ALGORITHM = 2
# Features of every image with `images.verify: full`. An int64 contains the 64 bits of a hash.
PROBE_FEATURES = {
    **{f"image/hash/{name}": "int64" for name in ImageHashes._fields},
    **{f"image/quality/{name}": "float32" for name in Quality._fields},
}
# Pictures that are measured together, and their pixels: decoding empties the processor's caches, and measuring a
# picture directly after another one takes a third less time.
_MOST_DECODED, _MOST_AREA = 16, 1 << 20
# To start threads takes longer than to hash so many files of this machine.
_FEW, _FEW_BYTES = 64, 8 << 20

_Item = TypeVar("_Item")
_Other = TypeVar("_Other")
_TABLE = "CREATE TABLE IF NOT EXISTS probed (content BLOB PRIMARY KEY, row TEXT NOT NULL) WITHOUT ROWID"
_SECONDS_TO_WAIT, _PAUSE = 30.0, 0.01


@dataclass(frozen=True)
class ProbeRow:
    """The result of probing one image. Depends on the file's bytes alone, on no option.

    Attributes:
        hashes: its hashes; `None` where the pixels cannot be decoded.
        quality: its measures, likewise.
        pixels: BLAKE3 of the displayed pixels, where it was asked for.
        code: why it cannot be decoded, as a word; empty where it can.
        reason: the same as a sentence.
    """

    hashes: ImageHashes | None
    quality: Quality | None
    pixels: bytes | None = None
    code: str = ""
    reason: str = ""

    def values(self) -> dict[str, list[Any]]:
        """Returns the features of the image; empty where its pixels cannot be decoded."""
        numbers = (*map(as_int64, self.hashes or ()), *(self.quality or ()))
        return {name: [number] for name, number in zip(PROBE_FEATURES, numbers, strict=False)}

    def to_json(self) -> list[Any] | None:
        """Returns the row as plain values; `None` where the pixels cannot be decoded."""
        if self.hashes is None or self.quality is None:
            return None
        return [list(self.hashes), list(self.quality), self.pixels.hex() if self.pixels else None]

    @staticmethod
    def from_json(values: Sequence[Any]) -> ProbeRow:
        """Reads what `to_json` made."""
        hashes, quality, pixels = values
        return ProbeRow(ImageHashes(*hashes), Quality(*quality), bytes.fromhex(pixels) if pixels else None)

    def to_text(self, digest: bytes) -> str:
        """Returns the row as text: a checksum, which covers the content's digest too, and JSON."""
        body = canonical_json(
            [self.hashes, self.quality, self.pixels.hex() if self.pixels else None, self.code, self.reason]
        )
        return f"{_checksum(digest, body):08x} {body}"

    @staticmethod
    def from_text(digest: bytes, text: str) -> ProbeRow | None:
        """Reads what `to_text` made for the same content; `None` when it is damaged."""
        try:
            checksum, _, body = text.partition(" ")
            if int(checksum, 16) != _checksum(digest, body):
                return None
            hashes, quality, pixels, code, reason = json.loads(body)
            return ProbeRow(
                ImageHashes(*hashes) if hashes else None,
                Quality(*quality) if quality else None,
                bytes.fromhex(pixels) if pixels else None,
                code,
                reason,
            )
        except (ValueError, TypeError):
            return None


class Decoded(NamedTuple):
    """A file whose pixels were decoded.

    Attributes:
        picture: its thumbnail, mode `RGB`, as it is displayed.
        pixels: see `ProbeRow`.
    """

    picture: Image.Image
    pixels: bytes | None

    @property
    def area(self) -> int:
        """Pixels of the thumbnail."""
        return self.picture.width * self.picture.height


def measured(files: Iterable[tuple[_Item, Decoded | _Other]]) -> Iterator[tuple[_Item, ProbeRow | _Other]]:
    """Yields files in their order, with the results of the decoded ones, of which several are measured together."""
    waiting: list[tuple[_Item, Decoded | _Other]] = []
    area = 0
    for item, file in files:
        waiting.append((item, file))
        area += file.area if isinstance(file, Decoded) else 0
        if len(waiting) == _MOST_DECODED or area > _MOST_AREA:
            yield from _measured(waiting)
            waiting, area = [], 0
    yield from _measured(waiting)


def _measured(files: Sequence[tuple[_Item, Decoded | _Other]]) -> Iterator[tuple[_Item, ProbeRow | _Other]]:
    decoded = [file for _, file in files if isinstance(file, Decoded)]
    lumas = [file.picture.convert("L") for file in decoded]
    looked = zip(decoded, lumas, hashes_of(lumas) if lumas else (), strict=True)
    rows = iter([ProbeRow(hashes, measure(one.picture, luma), one.pixels) for one, luma, hashes in looked])
    for item, file in files:
        yield item, next(rows) if isinstance(file, Decoded) else file


def decode_file(data: bytes, header: ImageHeader | None, *, max_pixels: int, pixels: bool) -> Decoded | ProbeRow:
    """Decodes one file to be measured.

    Args:
        data: the whole file.
        header: the result of `decode.header_of`: `None` for a format that has to be converted.
        max_pixels: the most pixels such a file may have.
        pixels: also hash all of its pixels at full size.

    Returns:
        The decoded file; the row of a JPEG or PNG that cannot be decoded.

    Raises:
        ImageError: a file of another format cannot be converted.
    """
    if header is None:
        picture, header = convert(data, max_pixels=max_pixels)
        return Decoded(reduced(picture, header), pixel_digest(picture, header) if pixels else None)
    try:
        return Decoded(thumbnail(data, header), pixel_digest(decode(data, header), header) if pixels else None)
    except ImageError as error:
        return ProbeRow(None, None, None, error.code, error.reason)


def probe_file(data: bytes, header: ImageHeader | None, *, max_pixels: int, pixels: bool) -> ProbeRow:
    """Probes one file: `decode_file` and `measured`."""
    ((_, row),) = measured([(None, decode_file(data, header, max_pixels=max_pixels, pixels=pixels))])
    return row


def _checksum(digest: bytes, body: str) -> int:
    return zlib.crc32(body.encode("utf-8", "surrogatepass"), zlib.crc32(digest))


class FileHashes:
    """Content IDs and CRC-32C of the files of a listing, by position; neither of files that cannot be read.

    The content ID identifies a file. The CRC-32C, at a tenth of the cost, proves that it has not changed when it is
    read again to be written.

    Attributes:
        known: whether the hashes of a file are known, bool (n,).
        content_ids: of each known file, else zeros, uint8 (n, 32).
        crc32c: likewise, uint32 (n,).
    """

    def __init__(self, count: int = 0) -> None:
        self.known = np.zeros(count, np.bool_)
        self.content_ids = np.zeros((count, DIGEST_BYTES), np.uint8)
        self.crc32c = np.zeros(count, np.uint32)

    def __iter__(self) -> Iterator[FileHash | None]:
        return map(self.get, range(len(self.known)))

    def get(self, position: int) -> FileHash | None:
        """Returns the hashes of a file, `None` where they are not known."""
        if not self.known[position]:
            return None
        return FileHash(self.content_ids[position].tobytes(), int(self.crc32c[position]))

    def checksums(self, begin: int, end: int) -> list[str | None]:
        """Returns the content IDs of consecutive files, hex; `None` where they are not known."""
        digits, width = self.content_ids[begin:end].tobytes().hex(), 2 * DIGEST_BYTES
        known = enumerate(self.known[begin:end].tolist())
        return [digits[i * width : (i + 1) * width] if there else None for i, there in known]

    def set(self, position: int, content: FileHash) -> None:
        """Sets the hashes of a file."""
        self.known[position] = True
        self.content_ids[position] = np.frombuffer(content.content_id, np.uint8)
        self.crc32c[position] = content.crc32c

    def unknown(self) -> list[int]:
        """Returns the positions of the files whose hashes are not known."""
        return np.flatnonzero(~self.known).tolist()


def hash_into(contents: FileHashes, listing: Listing, todo: Sequence[int], algorithm: str, progress: Progress) -> None:
    """Hashes the files at some positions of a listing; the hashes of those that cannot be read stay unknown."""
    # From a bucket each is a request.
    remote = is_remote(listing.root)
    few = not remote and len(todo) <= _FEW and sum(listing.sizes[i] for i in todo) <= _FEW_BYTES
    threads = 1 if few else readers(listing.root)
    together = 1 if remote else max(1, min(LOCAL_TOGETHER, len(todo) // (threads * threads)))
    hashed = map_threads(
        # A file that is too large to be read, such as an XML file, is rejected as unreadable and not hashed.
        lambda some: [
            hash_file(listing.path(i), listing.pin(i), algorithm) if listing.sizes[i] <= MOST_BYTES else None
            for i in some
        ],
        (todo[begin : begin + together] for begin in range(0, len(todo), together)),
        threads=threads,
        weigh=(lambda some: sum(listing.sizes[i] for i in some)) if remote else None,
    )
    for i, content in zip(todo, chain.from_iterable(hashed), strict=True):
        if content is not None:
            contents.set(i, content)
        progress.advance()


@dataclass
class KnownFiles:
    """The known hashes and probe results of the files of a listing, by position.

    Attributes:
        content: the hashes of the files.
        sound: whether it could be decoded, and its probe results are known, bool (n,).
        hashes: the four hashes of sound images in the order of `ImageHashes`, uint64 (n, 4); (0, 4) where
            files are not probed.
        quality: the measures in the order of `Quality`, float64 (n, 7); likewise.
        pixels: BLAKE3 of the displayed pixels, uint8 (n, 32); (0, 32) where not asked for.
        rejected: position -> why the file cannot be decoded.
        notes: for the user.
    """

    content: FileHashes
    sound: npt.NDArray[np.bool_]
    hashes: npt.NDArray[np.uint64]
    quality: npt.NDArray[np.float64]
    pixels: npt.NDArray[np.uint8]
    rejected: dict[int, Refusal] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @staticmethod
    def nothing(count: int, *, probed: bool, pixels: bool) -> KnownFiles:
        """Returns the state in which nothing is known yet of any file.

        Args:
            count: how many files there are.
            probed: whether files are probed.
            pixels: whether all of their pixels are hashed.
        """
        rows = count if probed else 0
        return KnownFiles(
            FileHashes(count),
            np.zeros(count, np.bool_),
            np.zeros((rows, len(ImageHashes._fields)), np.uint64),
            np.zeros((rows, len(Quality._fields))),
            np.zeros((rows if pixels else 0, DIGEST_BYTES), np.uint8),
        )

    def row(self, position: int) -> ProbeRow | None:
        """Returns the probe results of the file at a position; `None` where they are not known."""
        if not len(self.hashes) or not self.sound[position]:
            return None
        pixels = self.pixels[position].tobytes() if len(self.pixels) else None
        hashes, quality = self.hashes[position].tolist(), self.quality[position].tolist()
        return ProbeRow(ImageHashes(*hashes), Quality(*quality), pixels)

    def add_row(self, position: int, row: ProbeRow) -> None:
        """Sets the probe results of the file at a position, if they are complete."""
        if row.hashes is None or row.quality is None or not len(self.hashes):
            return
        if len(self.pixels):
            if row.pixels is None:
                return
            self.pixels[position] = np.frombuffer(row.pixels, np.uint8)
        self.sound[position] = True
        self.hashes[position] = row.hashes
        self.quality[position] = row.quality

    def joined(self, read: npt.NDArray[np.int64], probed: KnownFiles) -> KnownFiles:
        """Returns these results and those of files that were probed since. The large arrays are shared.

        Args:
            read: positions of the probed files.
            probed: their results, in that order.
        """
        content = copy(self.content)
        content.known = content.known.copy()
        rejected = {int(read[i]): refusal for i, refusal in probed.rejected.items()}
        result = replace(self, content=content, sound=self.sound.copy(), rejected=rejected)
        for name in ("known", "content_ids", "crc32c"):
            getattr(content, name)[read] = getattr(probed.content, name)
        for name in ("sound", "hashes", "quality", *(["pixels"] if len(self.pixels) else [])):
            getattr(result, name)[read] = getattr(probed, name)
        return result


def cache_file(folder: str) -> Path:
    """Returns the path of the rows of this version of the algorithm."""
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
        """Opens or creates the cache in a folder; one that keeps nothing where it cannot be created."""
        if folder is None:
            return ProbeCache(None)
        file = cache_file(folder)
        with suppress(OSError, UsageError):
            # The mark by which it is known as ours, when it is deleted.
            lock_folder(file.parent, waiting=partial(time.sleep, _PAUSE), working=False, needed=False).close()
        return ProbeCache(file if _run(file, _create) else None)

    def holds_rows(self) -> bool:
        """Returns whether it contains any row; if not, there is no need to look for one."""
        if self._file is not None:
            with suppress(sqlite3.Error, UsageError), _connected(self._file, "ro") as connection:
                return connection.execute("SELECT 1 FROM probed LIMIT 1").fetchone() is not None
        return False

    @contextmanager
    def reading(self) -> Iterator[Callable[[bytes], ProbeRow | None]]:
        """Yields a function that gives the sound row of a content, or `None` where there is none."""
        with ExitStack() as stack:
            connection = None
            if self._file is not None:
                with suppress(sqlite3.Error, UsageError):
                    connection = stack.enter_context(_connected(self._file, "ro"))
            yield partial(_find, connection)

    def keep(self, rows: Mapping[bytes, ProbeRow]) -> None:
        """Keeps rows, all or none."""
        if self._file is None or not rows:
            return
        texts = [(content, row.to_text(content)) for content, row in rows.items()]

        def insert(connection: sqlite3.Connection) -> None:
            _create(connection)
            connection.executemany("INSERT OR REPLACE INTO probed VALUES (?, ?)", texts)

        _run(self._file, insert)


def forget_rows(folder: str, contents: Iterable[bytes]) -> int:
    """Deletes the rows of contents from the files of every version in a folder, so that no byte of them is left.

    Returns:
        How many rows there were.

    Raises:
        StorageError: a file cannot be changed, so rows may be left in it.
    """
    count = [0]
    rows = [(content,) for content in contents]
    if not rows:
        return 0

    def delete(connection: sqlite3.Connection) -> None:
        connection.execute("PRAGMA secure_delete=ON")
        # After a power failure they do not come back.
        connection.execute("PRAGMA synchronous=FULL")
        _create(connection)
        count[0] += connection.executemany("DELETE FROM probed WHERE content = ?", rows).rowcount

    left = [file for file in sorted(Path(folder).glob("probe-*.sqlite")) if not _run(file, delete)]
    if left:
        raise StorageError(
            f"{left[0]}: cannot be changed, so it still contains measurements of the images: another process uses it, "
            "or it is read-only. Wait for other runs or check its permissions, and run it again, or delete the file."
        )
    return count[0]


def _create(connection: sqlite3.Connection) -> None:
    connection.execute(_TABLE)
    if [column[1] for column in connection.execute("PRAGMA table_info(probed)")] != ["content", "row"]:
        raise sqlite3.DatabaseError("another table of this name")


def _run(file: Path, work: Callable[[sqlite3.Connection], None]) -> bool:
    """Changes a database, and re-creates a damaged one first. Returns whether it was changed."""
    for _ in range(2):
        try:
            with _connected(file, "rwc") as connection, connection:
                work(connection)
            return True
        except (sqlite3.OperationalError, UsageError):
            return False  # No access, no space, or another process holds it for long; or it is not ours.
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
    if is_own(file.parent):
        check_own_database(file)
    uri = f"{file.absolute().as_uri()}?mode={mode}"
    with closing(sqlite3.connect(uri, uri=True, timeout=_SECONDS_TO_WAIT)) as connection:
        # A lost cache costs time, so nothing waits for the disk.
        connection.execute("PRAGMA synchronous=OFF")
        connection.execute("PRAGMA trusted_schema=OFF")
        yield connection
