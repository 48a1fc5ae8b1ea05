"""`shardwright subset`, `reshard`, `merge`: make datasets of the records of others."""

from __future__ import annotations

import shlex
from argparse import Namespace
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from shardwright.config.options import at_least, between
from shardwright.config.shards import ShardsConfig
from shardwright.dataset.manifest import Manifest
from shardwright.dataset.reader import ImageDataset
from shardwright.display.html import plain
from shardwright.edit import merge as merging
from shardwright.edit.derive import Derived, derive
from shardwright.edit.subset import stratified
from shardwright.errors import UsageError
from shardwright.pipelines.commands.parsers import refuse_unused
from shardwright.pipelines.commands.results import dataset_row, finish
from shardwright.running.progress import counted
from shardwright.staging.commit import is_committed
from shardwright.storage.fingerprint import fingerprint, text_number
from shardwright.storage.listing import key_of, name_lines

MoreOutput: TypeAlias = Callable[[], tuple[dict[str, Any], list[str]]]

_SHOWN = 3
_LINE = 1000


def subset(options: Namespace) -> int:
    """Makes a dataset of a part of another one."""
    if options.share is not None:
        between("--share", options.share, 1e-9, 1)
    if options.count is not None:
        at_least("--count", options.count, 1)
    if options.share is not None and options.count is not None:
        raise UsageError("--share and --count exclude each other. Give one of them.")
    if options.share is None and options.count is None:
        refuse_unused(options, "a call without --share or --count", "--seed")
    dataset = ImageDataset.open(options.dataset)
    chosen = stratified(
        dataset,
        options.share,
        count=options.count,
        splits=options.splits,
        classes=options.classes,
        seed=options.seed,
    )
    numbers = chosen.numbers
    if options.keys is not None:
        keys = set(read_keys(options.keys))
        check_keys(options.keys, keys, (key for split in dataset.splits for key in dataset.keys(split)))
        numbers &= {text_number(key) for key in keys}
    choice = {"images": fingerprint(sorted(numbers))}
    how = Derived("subset", choice, lambda key: text_number(key) in numbers, row=lambda row: None, proven=chosen.proven)
    return write_derived([dataset], how, options)


def reshard(options: Namespace) -> int:
    """Writes the same records in other shards."""
    return write_derived([ImageDataset.open(options.dataset)], Derived("reshard", {}), options)


def merge(options: Namespace) -> int:
    """Merges several datasets into one."""
    existed = is_committed(options.out)
    datasets = [ImageDataset.open(name) for name in options.datasets]
    merged = merging.merge(datasets, options.out, shards=_shards(options), quiet=options.json)
    notes = list(merged.notes())
    more = {"left_out": len(merged.left_out), "kept_twice": merged.kept_twice, "notes": notes}
    return _finish_derived(options, merged.manifest, existed, more, [plain(f"  {note}", _LINE) for note in notes])


def read_keys(name: str) -> list[str]:
    """Reads a file of keys, spelled as the keys of a dataset are.

    Raises:
        UsageError: it cannot be read, or is empty.
    """
    try:
        text = Path(name).read_bytes().decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        why = (error.strerror or error) if isinstance(error, OSError) else error
        raise UsageError(f"{name}: cannot be read ({why}). Give a text file with one key per line.") from None
    keys = [key_of(line)[0] for line in name_lines(text)]
    if not keys:
        raise UsageError(f"{name}: contains no keys. Write one per line.")
    return keys


def check_keys(name: str, keys: set[str], known: Iterable[str]) -> None:
    """Refuses keys that are not known.

    Args:
        name: the file of the keys.
        keys: the keys.
        known: those of a dataset.

    Raises:
        UsageError: a key is not among them.
    """
    if missing := sorted(keys.difference(known)):
        shown = ", ".join(plain(key) for key in missing[:_SHOWN])
        raise UsageError(f"{name}: not in the dataset: {len(missing)} of {counted(len(keys), 'key')}, e.g. {shown}.")


def _shards(options: Namespace) -> ShardsConfig:
    size = None
    if options.shard_size is not None:
        between("--shard-size", options.shard_size, 1e-6, 1e9)
        size = round(options.shard_size * 1e6)
    return ShardsConfig(target_size=size, count=options.shard_count, records=options.shard_records)


def write_derived(
    sources: Sequence[ImageDataset], how: Derived, options: Namespace, more_output: MoreOutput = lambda: ({}, [])
) -> int:
    """Makes a dataset and prints a summary.

    Args:
        sources: the datasets it is made of.
        how: how.
        options: those of `DERIVED`.
        more_output: called once the dataset is made; returns more to report, as plain values and as lines.
    """
    existed = is_committed(options.out)
    manifest = derive(sources, options.out, how, shards=_shards(options), quiet=options.json)
    return _finish_derived(options, manifest, existed, *more_output())


def _finish_derived(
    options: Namespace, manifest: Manifest, existed: bool, more: Mapping[str, Any], lines: Iterable[str]
) -> int:
    totals = manifest.totals
    splits = ", ".join(f"{n} {name.split('/', 1)[1]}" for name, n in sorted(totals.items()) if "records/" in name)
    again = "; it was there already" if existed else ""
    images, shards = counted(totals["written"], "image"), counted(len(manifest.shards), "shard")
    return finish(
        options,
        {**dataset_row(options.out, manifest), "existed": existed, **more},
        f"{options.out}: {images} ({splits}) in {shards}{again}",
        *lines,
        following=f"shardwright report {shlex.quote(options.out)}",
    )
