"""Checks a whole dataset: manifest, shards with their indexes, ledger, build and lineage files, stray files.

The manifest contains the BLAKE3 of every shard, index and part of the ledger, and a digest of itself. `build.json` and
`lineage.json`, which may differ between equal datasets, contain a digest each. `build.json` has the checksums of the
files that describe the dataset for other programs. So every bit is covered. On an object store the small files are
fetched first; each shard is fetched, checked and deleted.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from shardwright.checksum import checksum_file, image_feature
from shardwright.dataset.manifest import BUILD_FILE, FILES, MANIFEST_FILE, ORIGINS_FOLDER, Manifest
from shardwright.dataset.reader import IS_LINK, ImageDataset, LocatedShard, links
from shardwright.dataset.shard_names import LEDGER_FOLDER, facts_path
from shardwright.errors import DatasetError, NotFound, OtherLayoutError, UsageError
from shardwright.fingerprint import checksum_matches, read_checksummed_lines
from shardwright.lineage.record import LINEAGE_FILE
from shardwright.processes import map_processes, usable_cores
from shardwright.progress import progress
from shardwright.storage import buckets, is_folder, is_remote, map_threads, open_file, read_bytes, readers
from shardwright.storage.paths import split_url
from shardwright.untrusted import digest, file_name, mapped, parse_untrusted_json
from shardwright.verify import findings as what
from shardwright.verify.findings import VerifyFinding, VerifyReport
from shardwright.verify.ledger import check_ledger, read_index
from shardwright.verify.shards import ShardCheck, ShardTask, check_shard, verify_file

_CHUNK = 4 << 20
_SHARDS = "Split-"


def is_read(name: str) -> bool:
    """Returns whether readers look for shards, indexes, facts or the ledger under a file name of a dataset."""
    return name.startswith(_SHARDS) or name.split("/")[0] in ("index", "ledger", "facts")


def fetch_all_but_shards(url: str, folder: Path) -> list[str]:
    """Fetches all files but the shards.

    Args:
        url: URL of the dataset.
        folder: an empty folder.

    Returns:
        The names of all files, including shards, relative to the dataset.

    Raises:
        UsageError: the bucket is missing or access is denied.
        StorageError: the object store does not answer.
    """
    start = len(split_url(url)[2]) + 1
    names = [info.name[start:] for info in buckets.list_objects(f"{url}/") if not info.name.endswith("/")]
    small = [name for name in names if not name.startswith(_SHARDS) and _stays_inside(name)]
    list(map_threads(lambda name: _fetch(url, name, folder / name), small, readers(url)))
    return names


def check_fetched(task: ShardTask) -> ShardCheck:
    """Fetches a shard, checks it with `check_shard`, and deletes it."""
    file = Path(task.shard.file)
    try:
        if _stays_inside(task.shard.path):
            _fetch(task.url, task.shard.path, file)
        return check_shard(task)
    finally:
        file.unlink(missing_ok=True)


def _stays_inside(name: str) -> bool:
    """Returns whether an untrusted file name stays inside the folder that it is joined to."""
    return "\0" not in name and not any(part in ("", ".", "..") for part in name.split("/"))


def _fetch(url: str, name: str, target: Path) -> None:
    """Fetches a file, if it exists."""
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        with open_file(f"{url}/{name}") as source, target.open("wb") as out:
            shutil.copyfileobj(source, out, _CHUNK)
    except FileNotFoundError:
        return


# Below this, starting processes takes longer than the work.
_BYTES_WORTH_PROCESSES = 256 << 20
# Each fetched shard takes space on the disk.
_FETCHED_AT_ONCE = 4
# Options of `images` with which stored bytes may differ from the file's.
_CHANGING = frozenset(("orientation", "resize", "encoding", "unsupported_formats", "strip_metadata"))


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
    if _is_file(str(directory)):
        if deep:
            raise UsageError(f"--deep: {directory} is a file, and only a dataset contains hashes. Omit --deep.")
        return verify_file(str(directory))
    if not is_remote(str(directory)):
        root = Path(directory).absolute()
        return _verify(root, str(root), _files_of(root), "", workers, deep, quiet)
    url = str(directory).rstrip("/")
    with tempfile.TemporaryDirectory(prefix="shardwright-verify-") as folder:
        names = fetch_all_but_shards(url, Path(folder))
        return _verify(Path(folder), url, names, url, workers, deep, quiet)


def _is_file(path: str) -> bool:
    return buckets.stat(path) is not None if is_remote(path) else os.path.isfile(path)


def _verify(
    root: Path, shown: str, names: Sequence[str], url: str, workers: int | None, deep: bool, quiet: bool
) -> VerifyReport:
    """Verifies a folder; shards are fetched from `url`, if it is not empty."""
    file = root / MANIFEST_FILE
    if not file.is_file():
        if not is_folder(shown):
            raise NotFound(f"{shown}: there is no such folder. Check the path.")
        raise UsageError(
            f"{shown}: has no {MANIFEST_FILE}, so it is not a dataset. Give a folder that "
            "`shardwright ingest` wrote, or a file of TFRecords."
        )
    manifest, problem, is_of_other_layout = _read_manifest(file)
    # Another version has other checksums in these files, which must not pass for damage.
    found = [] if is_of_other_layout else list(_sealed_findings(root))
    size = 0
    if manifest is None:
        found.append(VerifyFinding(MANIFEST_FILE, what.MANIFEST, problem))
        # The list of shards is unknown, so those on an object store are not checked.
        tasks = list(_tasks_by_files(root))
    else:
        if deep:
            _check_depth(manifest)
        dataset = ImageDataset(str(root), manifest)
        found += [VerifyFinding(path, what.STRAY, IS_LINK) for path in links(str(root), manifest)]
        ledger = check_ledger(dataset)
        size += ledger.bytes
        facts_bytes, facts_findings = _check_facts(dataset)
        size += facts_bytes
        found += [*_strays(dataset, names), *ledger.findings, *facts_findings]
        tasks = [replace(task, url=url) for task in _tasks(dataset, deep)]
    records = 0
    with progress(len(tasks), "verifying shards", quiet=quiet) as done:
        for checked in _checked(tasks, url, workers):
            found += checked.findings
            records += checked.records
            size += checked.bytes
            done.advance()
    found.sort(key=lambda finding: (finding.file, finding.record or 0, finding.line or 0, finding.problem))
    return VerifyReport(shown, tuple(found), len(tasks), records, size)


def _checked(tasks: Sequence[ShardTask], url: str, workers: int | None) -> Iterator[ShardCheck]:
    if url:
        # A forked process must not use its parent's connections, and fetching takes most of the time.
        return map_threads(check_fetched, tasks, workers or _FETCHED_AT_ONCE, lambda task: task.shard.bytes)
    if workers is None:
        total = sum(task.shard.bytes for task in tasks)
        workers = usable_cores() if total > _BYTES_WORTH_PROCESSES else 1
    lost = "A process that was reading a shard has died; out of memory? Try fewer --workers."
    return map_processes(check_shard, tasks, min(workers, len(tasks)), lost)


def _check_depth(manifest: Manifest) -> None:
    needed = ("image/encoded", image_feature(manifest.image_checksum))
    if not all(manifest.stored(name) in manifest.features for name in needed):
        raise UsageError(f"--deep: the records contain no {' with '.join(needed)} to compare. Verify without it.")
    changed = sorted(_CHANGING & manifest.recipe.get("images", {}).keys())
    if manifest.kind != "ingest" or changed:
        how = ", ".join(f"images.{name}" for name in changed) or "a transformation"
        raise UsageError(f"--deep: the hashes are those of the files, and {how} stores other bytes. Verify without it.")


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


def _tasks(dataset: ImageDataset, deep: bool) -> Iterator[ShardTask]:
    parts = dataset.manifest.parts
    ledger = tuple(sorted(path for path in parts if path.startswith(LEDGER_FOLDER)))
    for split in dataset.splits:
        for number, shard in enumerate(dataset.shards(split)):
            index = shard.index_file.relative_to(dataset.root).as_posix()
            names = dataset.manifest.names
            task = ShardTask(dataset.root, shard, number, parts.get(index, ""), ledger, deep, names)
            yield replace(task, algorithm=dataset.manifest.image_checksum)


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


def _sealed_findings(root: Path) -> Iterator[VerifyFinding]:
    for name in (BUILD_FILE, LINEAGE_FILE):
        try:
            whole = checksum_matches(read_bytes(str(root / name)).decode("utf-8"))
        except OSError as error:
            yield VerifyFinding(name, what.MISSING, f"cannot be read ({error.strerror})")
            continue
        except UnicodeDecodeError:
            whole = False
        if not whole:
            yield VerifyFinding(name, what.HASH, "damaged: its digest does not fit its content")
        elif name == BUILD_FILE:
            # The checksums in a damaged one prove nothing.
            yield from _described_findings(root)
    for file in sorted((root / ORIGINS_FOLDER).rglob("*.jsonl")):
        try:
            with open_file(str(file)) as lines:
                for _ in read_checksummed_lines(lines):
                    continue
        except (OSError, ValueError) as error:
            yield VerifyFinding(file.relative_to(root).as_posix(), what.HASH, f"damaged: {error}")


_FILES = mapped(digest, key=file_name)


def _described_findings(root: Path) -> Iterator[VerifyFinding]:
    """Yields the files for other programs that are not those of `build.json`."""
    try:
        files = parse_untrusted_json(read_bytes(str(root / BUILD_FILE)).decode("utf-8"))[FILES]
        _FILES(files, FILES)
    except (OSError, ValueError, KeyError, TypeError):
        return  # There are none, or the file is damaged, which is another finding.
    for name, checksum in sorted(files.items()):
        try:
            whole = checksum_file(root / name) == checksum
        except OSError as error:
            yield VerifyFinding(name, what.MISSING, f"cannot be read ({error.strerror})")
            continue
        if not whole:
            yield VerifyFinding(name, what.HASH, f"its checksum is not that of {BUILD_FILE}")


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


def _files_of(root: Path) -> list[str]:
    """Returns the names of files that readers may take for shards, indexes or the ledger, relative to the root."""
    found = []
    for folder in sorted(root.iterdir()) if root.is_dir() else ():
        if folder.is_dir() and is_read(folder.name):
            found += [
                Path(above, name).relative_to(root).as_posix() for above, _, own in os.walk(folder) for name in own
            ]
    return found


def _strays(dataset: ImageDataset, names: Sequence[str]) -> Iterator[VerifyFinding]:
    """Yields files that readers may take for shards, indexes or the ledger, but the manifest does not list."""
    known = {shard.path for shard in dataset.manifest.shards} | dataset.manifest.parts.keys()
    for path in names:
        if path not in known and is_read(path):
            yield VerifyFinding(path, what.STRAY, "the manifest does not list this file, but readers may read it")
