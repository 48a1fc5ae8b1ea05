"""`shardwright subset`, `reshard`, `merge`: make datasets of the records of others."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from shardwright.pipelines.commands.parsers import Commands, refuse_unused
from shardwright.pipelines.commands.results import dataset_row, print_json
from shardwright.running.progress import counted

if TYPE_CHECKING:
    from shardwright.config.shards import ShardsConfig
    from shardwright.dataset.manifest import Manifest
    from shardwright.dataset.reader import ImageDataset
    from shardwright.edit.derive import Derived

MoreOutput: TypeAlias = Callable[[], tuple[dict[str, Any], list[str]]]

_SHOWN = 3
_LINE = 1000


def add(commands: Commands) -> None:
    """Adds the commands to the parser of `shardwright`."""
    subset = commands.add("subset")
    subset.add_argument("dataset", metavar="DIR", help="a dataset")
    subset.add_argument("--share", type=float, metavar="P", help="part of the images, 0 to 1")
    subset.add_argument("--count", type=int, metavar="N", help="about this many images instead")
    subset.add_argument("--splits", nargs="+", metavar="NAME", help="only of these splits")
    subset.add_argument("--classes", nargs="+", metavar="NAME", help="only images that have one of these classes")
    subset.add_argument("--keys", metavar="FILE", help="only these keys, one per line")
    subset.add_argument("--seed", type=int, default=0, metavar="S", help="selects the images (default 0)")
    add_output_options(subset)
    subset.set_defaults(command=_subset)
    reshard = commands.add("reshard")
    reshard.add_argument("dataset", metavar="DIR", help="a dataset")
    add_output_options(reshard)
    reshard.set_defaults(command=_reshard)
    merge = commands.add("merge")
    merge.add_argument("datasets", metavar="DIR", nargs="+", help="datasets of the same classes and features")
    add_output_options(merge)
    merge.set_defaults(command=_merge)


def add_output_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options that are common to all commands that make a dataset of others."""
    parser.add_argument("--out", required=True, metavar="DIR", help="folder to make")
    parser.add_argument("--shard-size", type=float, metavar="MB", help="megabytes per shard (default 150)")
    parser.add_argument("--shard-records", type=int, metavar="N", help="records per shard instead")
    parser.add_argument("--shard-count", type=int, metavar="N", help="shards per split instead")
    parser.add_argument("--json", action="store_true", help="print what was made as JSON")


def _subset(options: argparse.Namespace) -> int:
    from shardwright.config.options import at_least, between
    from shardwright.dataset.reader import ImageDataset
    from shardwright.edit.derive import Derived
    from shardwright.edit.subset import stratified
    from shardwright.errors import UsageError
    from shardwright.storage.fingerprint import fingerprint, text_number

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
    how = Derived(
        "subset", choice, lambda key: text_number(key) in numbers, row=lambda row: None, digests=chosen.digests
    )
    return write_derived([dataset], how, options)


def _reshard(options: argparse.Namespace) -> int:
    from shardwright.dataset.reader import ImageDataset
    from shardwright.edit.derive import Derived

    dataset = ImageDataset.open(options.dataset)
    how = Derived("reshard", {})
    return write_derived([dataset], how, options)


def _merge(options: argparse.Namespace) -> int:
    from shardwright.dataset.reader import ImageDataset
    from shardwright.display.html import plain
    from shardwright.edit.merge import merge
    from shardwright.staging.commit import is_committed

    existed = is_committed(options.out)
    datasets = [ImageDataset.open(name) for name in options.datasets]
    merged = merge(datasets, options.out, shards=_shards(options), quiet=options.json)
    more = {"left_out": len(merged.left_out), "kept_twice": merged.kept_twice, "notes": list(merged.notes())}
    lines = [plain(f"  {note}", _LINE) for note in merged.notes()]
    return print_derived(options, merged.manifest, existed, more, lines)


def read_keys(name: str) -> list[str]:
    """Reads a file of keys, spelled as the keys of a dataset are.

    Raises:
        UsageError: it cannot be read, or is empty.
    """
    from shardwright.errors import UsageError
    from shardwright.storage.listing import key_of, name_lines

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
    from shardwright.display.html import plain
    from shardwright.errors import UsageError

    if missing := sorted(keys.difference(known)):
        shown = ", ".join(plain(key) for key in missing[:_SHOWN])
        raise UsageError(f"{name}: not in the dataset: {len(missing)} of {counted(len(keys), 'key')}, e.g. {shown}.")


def _shards(options: argparse.Namespace) -> ShardsConfig:
    from shardwright.config.options import between
    from shardwright.config.shards import ShardsConfig

    size = None
    if options.shard_size is not None:
        between("--shard-size", options.shard_size, 1e-6, 1e9)
        size = round(options.shard_size * 1e6)
    return ShardsConfig(target_size=size, count=options.shard_count, records=options.shard_records)


def no_more_output() -> tuple[dict[str, Any], list[str]]:
    """Returns no further output."""
    return {}, []


def write_derived(
    sources: Sequence[ImageDataset], how: Derived, options: argparse.Namespace, more_output: MoreOutput = no_more_output
) -> int:
    """Makes a dataset and prints a summary.

    Args:
        sources: the datasets it is made of.
        how: how.
        options: those of `add_output_options`.
        more_output: called once the dataset is made; returns more to report, as plain values and as lines.
    """
    from shardwright.edit.derive import derive
    from shardwright.staging.commit import is_committed

    existed = is_committed(options.out)
    manifest = derive(sources, options.out, how, shards=_shards(options), quiet=options.json)
    return print_derived(options, manifest, existed, *more_output())


def print_derived(
    options: argparse.Namespace, manifest: Manifest, existed: bool, more: Mapping[str, Any], lines: Iterable[str]
) -> int:
    """Prints a summary of a dataset.

    Args:
        options: those of `add_output_options`.
        manifest: its manifest.
        existed: whether it was there before.
        more: more to report as JSON.
        lines: the same as lines.
    """
    if options.json:
        print_json({**dataset_row(options.out, manifest), "existed": existed, **more})
        return 0
    splits = ", ".join(
        f"{n} {name.split('/', 1)[1]}" for name, n in sorted(manifest.totals.items()) if "records/" in name
    )
    again = "; it was there already" if existed else ""
    images, shards = counted(manifest.totals["written"], "image"), counted(len(manifest.shards), "shard")
    print(f"{options.out}: {images} ({splits}) in {shards}{again}")
    for line in lines:
        print(line)
    return 0
