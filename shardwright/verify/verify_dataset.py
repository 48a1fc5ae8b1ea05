"""Checks a whole dataset: manifest, shards with their indexes, ledger, all other files, and that there are no more.

The manifest and `build.json` contain the checksums of all files and a digest of themselves. So every
bit is covered. On an object store the small files are fetched first; each shard is fetched, checked and deleted.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

from shardwright.dataset.manifest import BUILD_FILE, FILES, MANIFEST_FILE, Manifest
from shardwright.dataset.reader import IS_LINK, ImageDataset, LocatedShard, dataset_inside
from shardwright.dataset.shard_names import LEDGER_FOLDER, facts_path
from shardwright.errors import DatasetError, NotFound, OtherLayoutError, UsageError
from shardwright.running.processes import map_processes, usable_cores
from shardwright.running.progress import progress
from shardwright.storage import buckets, is_folder, is_remote, map_threads, open_file, read_bytes, readers
from shardwright.storage.checksum import checksum_file, image_feature
from shardwright.storage.fingerprint import checksum_matches
from shardwright.storage.paths import split_url
from shardwright.untrusted.json_text import digest, mapped, parse_untrusted_json, relative_path
from shardwright.verify import findings as what
from shardwright.verify.damaged_ledger import check_ledger, read_index
from shardwright.verify.findings import VerifyFinding, VerifyReport
from shardwright.verify.shards import ShardCheck, ShardTask, check_shard, verify_file

_CHUNK = 4 << 20
_SHARDS = "Split-"
# Below this, starting processes takes longer than the work.
_BYTES_WORTH_PROCESSES = 256 << 20
# Each fetched shard takes space on the disk.
_FETCHED_AT_ONCE = 4
# Options of `images` with which stored bytes may differ from the file's.
_CHANGING = frozenset(("orientation", "resize", "encoding", "unsupported_formats", "strip_metadata"))
_EMPTY = "an empty folder, which is not part of the dataset"
_NOT_A_FILE = "not a file: a pipe, a socket or a device"
_FILES = mapped(digest, key=relative_path)


def verify(
    directory: str | os.PathLike[str], *, workers: int | None = None, deep: bool = False, quiet: bool = True
) -> VerifyReport:
    """Reads a dataset to the last byte and reports everything that differs from what was written.

    Args:
        directory: the dataset's folder or URL; or a file of TFRecords of any origin, see `verify_file`. Shards of a
            URL are fetched into a temporary folder, and deleted after their check.
        workers: number of processes; by default one per core, and the calling process for a small dataset. On an
            object store: shards that are fetched and checked concurrently, by default four.
        deep: also hash every image and compare with the hash in its record.
        quiet: show no progress.

    Raises:
        NotFound: there is no such folder.
        UsageError: there is no dataset; or `deep` is set and the records contain no hashes.
        ShardwrightError: a worker has died, or the object store does not answer.
    """
    if workers is not None and workers < 1:
        raise UsageError(f"--workers: {workers} is too few. Give 1 or more.")
    path = str(directory)
    if buckets.stat(path) is not None if is_remote(path) else os.path.isfile(path):
        if deep:
            raise UsageError(f"--deep: {directory} is a file, and only a dataset contains hashes. Omit --deep.")
        return verify_file(str(directory))
    if not is_remote(str(directory)):
        root = Path(directory).absolute()
        return _verify(root, str(root), lying_in(root) if root.is_dir() else Lying(), "", workers, deep, quiet)
    url = str(directory).rstrip("/")
    with tempfile.TemporaryDirectory(prefix="shardwright-verify-") as folder:
        there = fetch_all_but_shards(url, Path(folder))
        return _verify(Path(folder), url, there, url, workers, deep, quiet)


def _verify(
    root: Path, shown: str, there: Lying, url: str, workers: int | None, deep: bool, quiet: bool
) -> VerifyReport:
    """Verifies a folder; shards are fetched from `url`, if it is not empty."""
    file = root / MANIFEST_FILE
    if not file.is_file():
        if not is_folder(shown):
            raise NotFound(f"{shown}: there is no such folder. Check the path.")
        raise UsageError(f"{shown}: has no {MANIFEST_FILE}, so it is not a dataset. {dataset_inside(shown)}")
    manifest, problem, is_of_other_layout = _read_manifest(file)
    # Another version has other checksums in build.json, which must not pass for damage.
    found = [] if is_of_other_layout else list(check_build(root, there))
    size = 0
    if manifest is None:
        found.append(VerifyFinding(MANIFEST_FILE, what.MANIFEST, problem))
        # The list of shards is unknown, so those on an object store are not checked.
        tasks = list(_tasks_by_files(root))
    else:
        if deep:
            needed = ("image/encoded", image_feature(manifest.image_checksum))
            if not all(manifest.stored(name) in manifest.features for name in needed):
                raise UsageError(f"--deep: the records contain no {' with '.join(needed)} to compare. Omit --deep.")
            changed = sorted(_CHANGING & manifest.recipe.get("images", {}).keys())
            if manifest.kind != "ingest" or changed:
                how = ", ".join(f"images.{name}" for name in changed) or "a transformation"
                raise UsageError(f"--deep: {how} stores other bytes than the files that were hashed. Omit --deep.")
        dataset, listed = ImageDataset(str(root), manifest), listed_by(root, manifest)
        found += unlisted(there, listed)
        if blocked(root, listed):
            return VerifyReport(shown, tuple(found), 0, 0, 0)
        ledger = check_ledger(dataset)
        for read, findings in ((ledger.bytes, ledger.findings), _check_facts(dataset), check_described(root, listed)):
            size += read
            found += findings
        tasks = list(_tasks(dataset, deep, url))
    records = 0
    with progress(len(tasks), "verifying shards", quiet=quiet) as done:
        for checked in _checked(tasks, url, workers):
            found += checked.findings
            records += checked.records
            size += checked.bytes
            done.advance()
    if manifest is not None:
        found += check_sizes(root, listed, {finding.file for finding in found})
    found.sort(key=lambda finding: (finding.file, finding.record or 0, finding.line or 0, finding.problem))
    return VerifyReport(shown, tuple(found), len(tasks), records, size)


def _read_manifest(file: Path) -> tuple[Manifest | None, str, bool]:
    """Returns the manifest; the problem, if there is one; and whether it is that another version wrote the dataset."""
    try:
        text = read_bytes(str(file)).decode("utf-8")
        manifest = Manifest.from_json(text)
    except (OSError, ValueError, DatasetError, RecursionError) as error:
        return None, str(error), isinstance(error, OtherLayoutError)
    if manifest.to_json() != text:
        return None, "damaged: the same content is written in other bytes", False
    return manifest, "", False


def _tasks(dataset: ImageDataset, deep: bool, url: str) -> Iterator[ShardTask]:
    parts = dataset.manifest.parts
    ledger = tuple(sorted(path for path in parts if path.startswith(LEDGER_FOLDER)))
    for split in dataset.splits:
        for number, shard in enumerate(dataset.shards(split)):
            index = shard.index_file.relative_to(dataset.root).as_posix()
            names, algorithm = dataset.manifest.names, dataset.manifest.image_checksum
            yield ShardTask(dataset.root, shard, number, parts.get(index, ""), ledger, deep, names, url, algorithm)


def _tasks_by_files(root: Path) -> Iterator[ShardTask]:
    """Yields tasks without the manifest: they check the checksums of records, and the records against the index."""
    ledger = tuple(sorted(path.relative_to(root).as_posix() for path in (root / "ledger").glob("*.jsonl")))
    for folder in sorted(root.glob("Split-*")):
        for number, file in enumerate(sorted(path for path in folder.iterdir() if path.is_file())):
            split, path = folder.name.removeprefix("Split-"), file.relative_to(root).as_posix()
            shard = LocatedShard(split, path, 0, file.stat().st_size, "", None, None, str(file))
            index = read_index(shard.index_file)
            keys = [row.key if row else None for row in index.rows] or [None]
            shard = replace(
                shard, records=len(index.rows), checksum=checksum_file(file), first_key=keys[0], last_key=keys[-1]
            )
            yield ShardTask(str(root), shard, number, index.checksum, ledger, deep=False)


def _checked(tasks: Sequence[ShardTask], url: str, workers: int | None) -> Iterator[ShardCheck]:
    if url:
        # A forked process must not use its parent's connections, and fetching takes most of the time.
        return map_threads(check_fetched, tasks, workers or _FETCHED_AT_ONCE, lambda task: task.shard.bytes)
    if workers is None:
        total = sum(task.shard.bytes for task in tasks)
        workers = usable_cores() if total > _BYTES_WORTH_PROCESSES else 1
    lost = "A process that was reading a shard has died; out of memory? Try fewer --workers."
    return map_processes(check_shard, tasks, min(workers, len(tasks)), lost)


def _check_facts(dataset: ImageDataset) -> tuple[int, list[VerifyFinding]]:
    """Returns the bytes of the files of facts, and their damage."""
    size, findings = 0, []
    for shard in dataset.manifest.shards:
        path = facts_path(shard.path)
        if path not in dataset.manifest.parts:
            continue
        file = Path(dataset.root, path)
        try:
            size += file.stat().st_size
            dataset.facts(LocatedShard(**vars(shard), file=os.path.join(dataset.root, shard.path)))
        except OSError as error:
            findings.append(VerifyFinding(path, what.MISSING, f"cannot be read ({error.strerror})"))
        except DatasetError as error:
            findings.append(VerifyFinding(path, what.HASH, str(error).removeprefix(f"{file}: ")))
    return size, findings


@dataclass(frozen=True)
class Lying:
    """What lies in a folder, by relative paths.

    Attributes:
        files: the files.
        others: path -> what is wrong with it, for everything else: links, pipes, what cannot be listed.
        empty: folders without anything in them.
    """

    files: set[str] = field(default_factory=set)
    others: dict[str, str] = field(default_factory=dict)
    empty: set[str] = field(default_factory=set)


def lying_in(root: Path) -> Lying:
    """Walks through a folder without following links."""
    found, folders = Lying(), [""]
    while folders:
        folder = folders.pop()
        try:
            entries = list(os.scandir(root / folder))
        except OSError as error:
            found.others[folder] = f"cannot be listed ({error.strerror})"
            continue
        if not entries:
            found.empty.add(folder)
        for entry in entries:
            path = f"{folder}/{entry.name}" if folder else entry.name
            if entry.is_symlink():
                found.others[path] = IS_LINK
            elif entry.is_dir(follow_symlinks=False):
                folders.append(path)
            elif entry.is_file(follow_symlinks=False):
                found.files.add(path)
            else:
                found.others[path] = _NOT_A_FILE
    return found


@dataclass(frozen=True)
class Listed:
    """The files that a dataset lists.

    Attributes:
        paths: all of them; with `complete` unset, those that are known.
        described: path -> its checksum, and the file that lists it, of those that belong to no shard and no ledger.
        sizes: path -> bytes, where the manifest has them.
        complete: whether `build.json` could be read.
    """

    paths: frozenset[str]
    described: Mapping[str, tuple[str, str]]
    sizes: Mapping[str, int]
    complete: bool


def listed_by(root: Path, manifest: Manifest) -> Listed:
    """Reads which files a dataset has, by its manifest and its `build.json`."""
    described = {path: (checksum, MANIFEST_FILE) for path, checksum in manifest.parts.items() if "/" not in path}
    others = _of_build(root / BUILD_FILE)
    described |= {path: (checksum, BUILD_FILE) for path, checksum in (others or {}).items()}
    shards = (shard.path for shard in manifest.shards)
    paths = frozenset((MANIFEST_FILE, BUILD_FILE, *shards, *manifest.parts, *described))
    return Listed(paths, described, manifest.sizes, others is not None)


def _of_build(file: Path) -> Mapping[str, str] | None:
    """Returns path -> checksum of the files that `build.json` lists; `None` where it is not whole."""
    try:
        # A pipe would wait for a writer.
        if not stat.S_ISREG(file.stat().st_mode):
            return None
        text = file.read_bytes().decode("utf-8")
        return _FILES(parse_untrusted_json(text)[FILES], FILES) if checksum_matches(text) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def check_build(root: Path, found: Lying) -> Iterator[VerifyFinding]:
    """Yields what is wrong with `build.json`, whose files are unknown then."""
    if BUILD_FILE not in found.files:
        if BUILD_FILE not in found.others:
            yield VerifyFinding(BUILD_FILE, what.MISSING, "cannot be read (No such file or directory)")
    elif _of_build(root / BUILD_FILE) is None:
        yield VerifyFinding(BUILD_FILE, what.HASH, "damaged: its digest does not fit its content")


def unlisted(found: Lying, listed: Listed) -> Iterator[VerifyFinding]:
    """Yields everything that lies in the folder and is not a file that the dataset lists."""
    for path, problem in found.others.items():
        yield VerifyFinding(path or ".", what.STRAY, problem)
    folders = {str(folder) for path in listed.paths for folder in PurePosixPath(path).parents}
    for path in found.empty - folders - {""}:
        yield VerifyFinding(path, what.STRAY, _EMPTY)
    # Without build.json nobody knows which files it lists; it is a finding itself.
    for path in found.files - listed.paths if listed.complete else ():
        yield VerifyFinding(path, what.STRAY, f"neither {MANIFEST_FILE} nor {BUILD_FILE} lists this file")


def blocked(root: Path, listed: Listed) -> bool:
    """Returns whether reading the dataset could wait or go on forever: a pipe or a device lies in a file's place."""
    places = (root / path for path in listed.paths)
    return any(place.exists() and not place.is_file() and not place.is_dir() for place in places)


def check_described(root: Path, listed: Listed) -> tuple[int, list[VerifyFinding]]:
    """Compares the files that belong to no shard and no ledger with their checksums; returns their bytes, too."""
    total, findings = 0, []
    for path, (checksum, by) in sorted(listed.described.items()):
        try:
            size = (root / path).stat().st_size
            whole = checksum_file(root / path) == checksum
        except OSError as error:
            findings.append(VerifyFinding(path, what.MISSING, f"cannot be read ({error.strerror})"))
            continue
        total += size
        if not whole:
            findings.append(VerifyFinding(path, what.HASH, f"damaged: its checksum is not that of {by}"))
    return total, findings


def check_sizes(root: Path, listed: Listed, damaged: set[str]) -> Iterator[VerifyFinding]:
    """Yields the files without another finding that are missing, or have another size than the manifest lists."""
    for path, size in listed.sizes.items():
        if path in damaged:
            continue
        try:
            actual = (root / path).stat().st_size
        except OSError as error:
            yield VerifyFinding(path, what.MISSING, f"cannot be read ({error.strerror})")
            continue
        if actual != size:
            yield VerifyFinding(path, what.SIZE, f"{actual} bytes, the manifest lists {size}")


def fetch_all_but_shards(url: str, folder: Path) -> Lying:
    """Fetches the files of a dataset but the shards; of other files, the names only.

    Args:
        url: URL of the dataset.
        folder: an empty folder.

    Raises:
        UsageError: the bucket is missing or access is denied.
        StorageError: the object store does not answer.
    """
    start = len(split_url(url)[2]) + 1
    names = {info.name[start:] for info in buckets.list_objects(f"{url}/") if not info.name.endswith("/")}
    for name in names & {MANIFEST_FILE, BUILD_FILE}:
        _fetch(url, name, folder / name)
    manifest = _read_manifest(folder / MANIFEST_FILE)[0]
    listed = names if manifest is None else listed_by(folder, manifest).paths
    small = [name for name in names & set(listed) if not name.startswith(_SHARDS) and _stays_inside(name)]
    list(map_threads(lambda name: _fetch(url, name, folder / name), small, readers(url)))
    return Lying(files=names)


def check_fetched(task: ShardTask) -> ShardCheck:
    """Fetches a shard, checks it with `check_shard`, and deletes it."""
    file = Path(task.shard.file)
    try:
        if _stays_inside(task.shard.path):
            _fetch(task.url, task.shard.path, file)
        return check_shard(task)
    finally:
        file.unlink(missing_ok=True)


def _fetch(url: str, name: str, target: Path) -> None:
    """Fetches a file, if it exists."""
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        with open_file(f"{url}/{name}") as source, target.open("wb") as out:
            shutil.copyfileobj(source, out, _CHUNK)
    except FileNotFoundError:
        return


def _stays_inside(name: str) -> bool:
    """Returns whether an untrusted file name stays inside the folder that it is joined to."""
    return "\0" not in name and not any(part in ("", ".", "..") for part in name.split("/"))
