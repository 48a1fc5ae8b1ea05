"""Makes a dataset of finished shards: checks that the ledger adds up, then publishes the folder by one rename."""

from __future__ import annotations

import dataclasses
import errno
import json
import os
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from itertools import chain, islice, pairwise
from pathlib import Path
from typing import Any, NoReturn

from shardwright.dataset import ledger, shard_names
from shardwright.dataset import manifest as dataset_manifest
from shardwright.dataset.ledger import LedgerRow
from shardwright.dataset.manifest import FILES, ORIGINS_FOLDER, Manifest
from shardwright.dataset.outputs import check_not_in_dataset
from shardwright.dataset.reader import ImageDataset
from shardwright.dataset.record_facts import FactsCollector
from shardwright.dataset.sharding import shard_bounds
from shardwright.dataset.tfds_files import tfds_files
from shardwright.errors import CheckFailed, DatasetError, UsageError
from shardwright.lineage import record
from shardwright.staging import output
from shardwright.staging.output import check_not_doubtful, replace_damaged
from shardwright.staging.staged import PROBED, remove_empty_groups, staged_folders
from shardwright.staging.staging import PlannedShard, ShardResult, Staging
from shardwright.storage import buckets, durable, is_remote
from shardwright.storage.checksum import checksum_file
from shardwright.storage.fingerprint import checksummed_json, fingerprint
from shardwright.storage.own_names import remove_tree, staging_next_to
from shardwright.storage.paths import check_replaceable
from shardwright.storage.whole_files import appear, assembling, discard, write_parts, write_text
from shardwright.text.redaction import published
from shardwright.untrusted.json_text import inside

# A ledger part stays a file that an editor opens.
_ROWS_PER_PART = 100_000
_EXAMPLES = 3
_MANY = 6
# How the line of a written record ends: keys of canonical JSON are sorted, and a text contains no bare quotes.
_SPLIT, _WRITTEN = '"split":', f'"status":"{ledger.WRITTEN}"}}\n'
# Decimals of the share that a message advises: it allows what was counted and hardly more.
_DECIMALS = 4


@dataclass(frozen=True)
class DatasetPlan:
    """The description of a dataset before any shard is written.

    Attributes:
        kind: `ingest` or `transform`.
        task: `segmentation` or `classification`.
        classes: names in the order of their indices.
        recipe: the options that change bytes, as plain values.
        parent: fingerprint of the input, or digest of the parent dataset.
        further_parents: role -> fingerprint of other things it depends on, for `lineage.json`.
        features: name -> `bytes`, `int64` or `float32`.
        names: see `Manifest.names`.
        inputs: rows the ledger must have.
        shards: every shard, by split and number.
        rows: names of the staged row files that belong to no shard (`Staging.write_rows`).
        kept: names of further staged files that the dataset has under the same name.
        max_rejects: share of the inputs that may be rejected; see `allowed_rejects`.
        labels: the annotations of an image, as `Manifest.labels` has them; by default the usual ones of the task.
        content: fingerprint of the input by the checksums of its files, where `parent` was made of what a store lists;
            it takes the place of `parent` in the manifest. Empty where `parent` is that already.
        listed: whether `lineage.json` has `parent` as well, by which later runs recognize the input.
        annotations: what has the annotations, by one of which some image must have a class; empty where none need one.
    """

    kind: str
    task: str
    classes: tuple[str, ...]
    recipe: Mapping[str, Any]
    parent: str
    features: Mapping[str, str]
    inputs: int
    shards: tuple[PlannedShard, ...]
    rows: tuple[str, ...] = ()
    max_rejects: float = 0.0
    names: Mapping[str, str] = field(default_factory=dict)
    labels: str | None = None
    further_parents: Mapping[str, str] = field(default_factory=dict)
    kept: tuple[str, ...] = ()
    content: str = ""
    listed: bool = True
    annotations: str = ""

    @property
    def fingerprint(self) -> str:
        """The plan's fingerprint: that of the dataset, unless `content` is given."""
        return dataset_manifest.dataset_fingerprint(self.kind, self.recipe, self.parent)

    def outline(self) -> Manifest:
        """Returns its manifest without shards, parts and totals."""
        return Manifest(
            kind=self.kind,
            task=self.task,
            classes=self.classes,
            labels=self.labels or (dataset_manifest.MASKS if self.task == "segmentation" else dataset_manifest.SINGLE),
            recipe=self.recipe,
            recipe_fingerprint=fingerprint(dict(self.recipe)),
            parent=self.content or self.parent,
            fingerprint=self.dataset_fingerprint,
            features=self.features,
            names=self.names,
            totals={},
            shards=(),
            parts={},
        )

    def facts(self, planned: PlannedShard) -> FactsCollector:
        """Returns a collector of the facts of a shard, for its writer."""
        return FactsCollector(self.outline(), planned.total)

    @property
    def dataset_fingerprint(self) -> str:
        """The dataset's fingerprint, as its manifest has it."""
        return dataset_manifest.dataset_fingerprint(self.kind, self.recipe, self.content or self.parent)


def check_output(out: str | os.PathLike[str]) -> None:
    """Checks an output folder before any work.

    Raises:
        UsageError: it is a file, contains files but no dataset, or is inside of a dataset.
    """
    check_not_in_dataset(str(out))
    if is_remote(str(out)):
        output.check_output(output.trimmed(str(out)))
        return
    target = Path(out)
    if not target.exists():
        try:
            target.stat()
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise UsageError(f"{target}: its links lead to each other. Name another folder.") from None
        return
    if not target.is_dir():
        raise UsageError(f"{target}: is not a folder. Name a folder that does not exist yet.")
    names = sorted(os.listdir(target))
    if not names:
        check_replaceable(target)
    if names and dataset_manifest.MANIFEST_FILE not in names:
        shown = ", ".join(names[:_EXAMPLES]) + (", …" if len(names) > _EXAMPLES else "")
        raise UsageError(f"{target}: is not empty ({shown}) and is not a dataset. Name another folder.")


def open_if_committed(out: str | os.PathLike[str], expected: str, *, grows: bool = False) -> Manifest | None:
    """Opens an output if its dataset is finished.

    Args:
        out: the output folder.
        expected: fingerprint of the dataset that is to be written there.
        grows: whether that one may take images and splits from another one; the message then has the options.

    Returns:
        The manifest when that very dataset is there already. `None` when the folder is missing or empty, or contains a
        damaged copy of that dataset, which `commit` replaces.

    Raises:
        UsageError: something else is there.
        DatasetError: the dataset there is damaged, and may be another one.
    """
    check_output(out)
    if not is_committed(out):
        if is_remote(str(out)):
            output.check_unclaimed(output.trimmed(str(out)), expected)
        return None
    try:
        found = ImageDataset.open(out).manifest
    except DatasetError as error:
        check_not_doubtful(out, expected, error)
        return None
    if expected in (found.fingerprint, record.listed_fingerprint(str(out))):
        if not is_remote(str(out)):
            # A run that was killed may have renamed it and not flushed its name.
            durable.flush([Path(os.path.realpath(out)).parent])
        return found
    hint = (
        f" Images were added? In the configuration, `reuse_from: {out}` copies what has not changed, and "
        f"`split.keep_from: {out}` leaves each image in its split."
        if grows
        else ""
    )
    raise UsageError(
        f"{out}: contains another dataset (fingerprint {found.fingerprint[:12]}, this one is {expected[:12]}). "
        f"Name another folder, or delete that one.{hint}"
    )


def is_committed(out: str | os.PathLike[str]) -> bool:
    """Returns whether an output is a dataset, this or another one."""
    file = os.path.join(out, dataset_manifest.MANIFEST_FILE)
    return buckets.stat(file) is not None if is_remote(file) else os.path.exists(file)


def commit(staging: Staging, plan: DatasetPlan, out: str | os.PathLike[str], build: Mapping[str, Any]) -> Manifest:
    """Publishes a dataset whose shards are all finished, and removes its staging folder.

    Args:
        staging: where the shards are; locked by the caller.
        plan: what was planned.
        out: folder to make; it may exist when it is empty (TFX makes it), or is this very dataset.
        build: values that may differ between equal datasets (resolved configuration, runner), for `build.json`.

    Returns:
        The manifest.

    Raises:
        CheckFailed: a shard is unfinished, the ledger does not add up, too many rejects, or nothing was written.
        UsageError: `out` contains something else.
    """
    out = output.trimmed(str(out)) if is_remote(str(out)) else os.path.realpath(out)
    try:
        found = open_if_committed(out, plan.fingerprint)
        if found is None:
            publish = _publish_on_bucket if is_remote(out) else _publish
            found = publish(staging, plan, out, build)
    except UsageError:
        # Another dataset was faster: what is staged next to this output is of no use any more.
        if not is_remote(out) and is_committed(out) and os.path.dirname(staging.root) == staging_next_to(out):
            staging.remove()
            remove_staged(staging_next_to(out), out)
        raise
    staging.remove()
    return found


def _publish(staging: Staging, plan: DatasetPlan, out: str, build: Mapping[str, Any]) -> Manifest:
    target = Path(out)
    results = completed_shards(staging, plan.shards)
    with assembling(target, plan.fingerprint) as assembled:
        # A run that stages elsewhere may have published between our check and our lock.
        found = open_if_committed(out, plan.fingerprint)
        if found is not None:
            return found
        manifest = _assemble(assembled, staging, plan, results, build)
        for staged, name in chain.from_iterable(result.placed for result in results):
            staging.place(staged, inside(assembled, name))
        if is_committed(target):
            replace_damaged(assembled, target, plan.fingerprint)
        else:
            appear(assembled, target)
    return manifest


def _publish_on_bucket(staging: Staging, plan: DatasetPlan, out: str, build: Mapping[str, Any]) -> Manifest:
    results = completed_shards(staging, plan.shards)
    assembled = staging.path("assembled")
    remove_tree(assembled)
    assembled.mkdir()
    manifest = _assemble(assembled, staging, plan, results, build)
    small = [path for path in assembled.rglob("*") if path.is_file() and path.name != dataset_manifest.MANIFEST_FILE]
    files = {name: partial(staging.send, staged) for result in results for staged, name in result.placed}
    files |= {path.relative_to(assembled).as_posix(): partial(buckets.upload, path=str(path)) for path in small}
    output.claim(out, plan.fingerprint)
    # Another run may have published and ended between our check and our claim: check again.
    if not is_committed(out):
        output.publish(out, manifest.to_json().encode("utf-8"), files)
    try:
        open_if_committed(out, plan.fingerprint)
    finally:
        output.release(out)
    return manifest


def discard_assembly(out: str | os.PathLike[str], fingerprint: str) -> None:
    """Deletes the files that a killed commit has left next to an output."""
    if is_remote(str(out)):
        # The next run uses the files there; once the manifest exists, the claim has no use.
        url = output.trimmed(str(out))
        if output.claimed(url) == fingerprint and is_committed(url):
            output.release(url)
        return
    discard(Path(os.path.realpath(out)), fingerprint)


def remove_staged(staging_root: str, out: str | os.PathLike[str], names: str = "*") -> None:
    """Deletes what finished and killed runs have left in a staging folder and next to an output, both on this machine.

    Args:
        staging_root: the folder of staging folders; it is deleted, too, when it is empty then.
        out: the output.
        names: pattern of the folders' names; that of a running process stays.
    """
    for folder in [*staged_folders(staging_root), Path(staging_root, PROBED)]:
        if folder.is_dir() and folder.match(names):
            staging = Staging(str(folder), folder.name)
            with suppress(UsageError), staging.locked():
                discard_assembly(out, folder.name)
                staging.remove()
    remove_empty_groups(staging_root)
    with suppress(OSError):  # It stays while another dataset is being made in it.
        os.rmdir(staging_root)


def completed_shards(staging: Staging, shards: Sequence[PlannedShard]) -> list[ShardResult]:
    """Returns the results of shards that are all finished.

    Raises:
        CheckFailed: one is not.
    """
    results = staging.results(shards)
    missing = [shard_names.shard_path(*planned) for planned, result in zip(shards, results, strict=True) if not result]
    if missing:
        raise CheckFailed(
            f"{len(missing)} of {len(results)} shards are not written, e.g. {missing[0]}. Run it again. If other "
            "machines write shards, run.staging must be a folder that all of them share."
        )
    return [result for result in results if result is not None]


def _assemble(
    folder: Path, staging: Staging, plan: DatasetPlan, results: list[ShardResult], build: Mapping[str, Any]
) -> Manifest:
    """Writes all of a dataset but its shards and the files that are placed with them into an empty folder."""
    tally = _Tally()
    bounds = shard_bounds(plan.inputs, max(1, -(-plan.inputs // _ROWS_PER_PART)))
    rows = [end - begin for begin, end in pairwise(bounds)]
    names = [shard_names.ledger_path(number, len(rows)) for number in range(len(rows))]
    lines = tally.counted(staging.ledger_lines(plan.shards, plan.rows))
    checksums = dict(zip(names, write_parts(lines, rows, lambda number: folder / names[number]), strict=True))
    # Rows beyond the expected number would be left in the stream.
    for _ in lines:
        continue
    _check(tally, plan, results)
    manifest = dataclasses.replace(
        plan.outline(),
        totals={**tally.totals(plan), **sum((Counter(result.marks) for result in results), Counter())},
        shards=tuple(result.info for result in results),
    )
    labeled = all(result.has_facts and not result.unlabeled for result in results)
    for name, text in tfds_files(manifest, labeled=labeled).items():
        checksums[name] = write_text(folder / name, text)
    differs = plan.listed and plan.dataset_fingerprint != plan.fingerprint
    record.write_lineage(
        folder,
        kind=plan.kind,
        fingerprint=plan.dataset_fingerprint,
        parents={"input": plan.content or plan.parent, **plan.further_parents},
        recipe=plan.recipe,
        listed={"fingerprint": plan.fingerprint, "input": plan.parent} if differs else {},
    )
    for name in (*plan.kept, record.LINEAGE_FILE):
        if name in plan.kept:
            inside(folder, name).parent.mkdir(exist_ok=True)
            shutil.copyfile(staging.path(name), inside(folder, name))
        checksums[name] = checksum_file(folder / name)
    sizes = {name: os.stat(folder / name).st_size for name in checksums}
    for result in results:
        for staged, name in islice(result.placed, 1, None):
            sizes[name], checksums[name] = result.files[staged]
    equal = [name for name in checksums if not _may_differ(name)]
    manifest = dataclasses.replace(
        manifest, parts={name: checksums[name] for name in equal}, sizes={name: sizes[name] for name in equal}
    ).with_digest()
    others = {name: checksum for name, checksum in checksums.items() if _may_differ(name)}
    versions = {"versions": record.package_versions(), FILES: others, **published(build)}
    write_text(folder / dataset_manifest.BUILD_FILE, checksummed_json(versions))
    write_text(folder / dataset_manifest.MANIFEST_FILE, manifest.to_json())
    return manifest


def _may_differ(name: str) -> bool:
    """Returns whether a file may differ between equal datasets, whose manifests do not: by versions, or by a store."""
    return name == record.LINEAGE_FILE or name.startswith(f"{ORIGINS_FOLDER}/")


@dataclass
class _Tally:
    """Counts the ledger while it is written, and remembers the first rejects for the message."""

    counts: Counter[str] = field(default_factory=Counter)
    codes: Counter[str] = field(default_factory=Counter)
    records: Counter[str] = field(default_factory=Counter)
    examples: list[str] = field(default_factory=list)

    def counted(self, lines: Iterator[str]) -> Iterator[str]:
        """Yields lines of canonical JSON. Those of written records are counted by their ends, which few differ in."""
        ends = Counter[str]()
        for line in lines:
            if line.endswith(_WRITTEN):
                ends[line[line.rindex(_SPLIT) :]] += 1
            else:
                row = json.loads(line)
                self.add(row["key"], row["status"], row["code"], row["reason"])
            yield line
        for end, count in ends.items():
            self.counts[ledger.WRITTEN] += count
            self.records[json.loads(f"{{{end}")["split"]] += count

    def add(self, key: str, status: str, code: str, reason: str) -> None:
        self.counts[status] += 1
        if status != ledger.WRITTEN:
            self.codes[f"{status}/{code}"] += 1
        if status == ledger.REJECTED and len(self.examples) < _EXAMPLES:
            self.examples.append(f"{key}: {code}: {reason}")

    @property
    def rejects(self) -> tuple[str, str]:
        """The number of rejects by reason, and the first of them."""
        counts = ", ".join(f"{code} {n}" for code, n in self.rejected_codes.items())
        return counts, "".join(f"\n  {example}" for example in self.examples)

    @property
    def rejected_codes(self) -> dict[str, int]:
        start = f"{ledger.REJECTED}/"
        return {code[len(start) :]: n for code, n in sorted(self.codes.items()) if code.startswith(start)}

    def totals(self, plan: DatasetPlan) -> dict[str, int]:
        splits = sorted({shard.split for shard in plan.shards})
        return {
            "inputs": sum(self.counts.values()),
            **{status: self.counts[status] for status in ledger.STATUSES},
            **{f"records/{split}": self.records[split] for split in splits},
            **self.codes,
        }


def _check(tally: _Tally, plan: DatasetPlan, results: list[ShardResult]) -> None:
    rows, records = sum(tally.counts.values()), sum(result.info.records for result in results)
    written = tally.counts[ledger.WRITTEN]
    if rows != plan.inputs or written != records:
        raise CheckFailed(
            f"The ledger does not add up: {rows} rows for {plan.inputs} inputs, {written} rows of written records for "
            f"{records} records. Delete the staging folder and run it again."
        )
    if not written:
        _check_something(tally, rows)
    _check_rejects(tally, plan, rows)
    # Of a few images, none may have a class by chance.
    if plan.annotations and plan.classes and written >= _MANY and not any(result.classes for result in results):
        raise CheckFailed(
            f"{plan.annotations}: none of {written:,} images has a class: all annotations are empty. Nothing was "
            "published. Is it the right file, and do input.classes and input.labels fit it? If the images have no "
            "objects, set input.labels.confirmed: [no_objects] (relabel: --confirmed no_objects)."
        )


def check_known_rejects(plan: DatasetPlan, rows: Iterable[LedgerRow]) -> None:
    """Checks before any shard is written that not too many inputs are rejected already.

    Args:
        plan: the dataset to write.
        rows: the known rejects; rows of another status are ignored.

    Raises:
        CheckFailed: there are too many.
    """
    tally = _Tally()
    for row in sorted((row for row in rows if row.status == ledger.REJECTED), key=lambda row: row.key):
        tally.add(row.key, row.status, row.code, row.reason)
    _check_rejects(tally, plan, plan.inputs)


def _check_something(tally: _Tally, rows: int) -> NoReturn:
    counts, shown = tally.rejects
    every = "the only input was" if rows == 1 else f"all {rows} inputs were"
    raise CheckFailed(f"Nothing was written: {every} rejected ({counts}). The first:{shown}")


def allowed_rejects(share: float, inputs: int) -> int:
    """Returns how many inputs may be rejected, rounded down: with a share of 0 none, whatever their number.

    Args:
        share: `rejects.max_fraction`.
        inputs: number of inputs.
    """
    # As the decimal number that was written: 0.29 as a float is less.
    return int(Fraction(str(share)) * inputs)


def needed_share(rejects: int, inputs: int) -> float:
    """Returns the least `rejects.max_fraction` of a few decimals that allows so many rejects."""
    return -(-rejects * 10**_DECIMALS // max(1, inputs)) / 10**_DECIMALS


def _check_rejects(tally: _Tally, plan: DatasetPlan, rows: int) -> None:
    allowed = allowed_rejects(plan.max_rejects, rows)
    if rows and tally.counts[ledger.REJECTED] == rows:
        _check_something(tally, rows)
    unwanted = tally.counts[ledger.REJECTED] - tally.rejected_codes.get(ledger.UNLISTED, 0)
    if unwanted <= allowed:
        return
    counts, shown = tally.rejects
    raise CheckFailed(
        f"{unwanted} of {rows} inputs were rejected, {allowed} are allowed (rejects.max_fraction is "
        f"{plan.max_rejects:g}): {counts}. Nothing was published. Fix or remove these files, or allow them in the "
        f"configuration with `rejects: {{max_fraction: {needed_share(unwanted, rows):g}}}`. The first:{shown}"
    )
