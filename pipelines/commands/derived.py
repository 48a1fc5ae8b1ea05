"""`shardwright subset`, `reshard`, `merge`, `forget`: new datasets of the records of others."""

from __future__ import annotations

import argparse
import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from shardwright.config.layout import ShardsConfig
    from shardwright.manifest import LedgerRow, Manifest

_Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"
_SHOWN = 3


def add(commands: _Commands) -> None:
    """Adds the commands to the parser of `shardwright`."""
    subset = commands.add_parser("subset", help="part of a dataset: the same part of every split and class")
    subset.add_argument("dataset", metavar="DIR", help="a dataset")
    subset.add_argument("--share", type=float, metavar="P", help="part of the images, 0 to 1")
    subset.add_argument("--count", type=int, metavar="N", help="how many images instead, about")
    subset.add_argument("--splits", nargs="+", metavar="NAME", help="only of these splits")
    subset.add_argument("--classes", nargs="+", metavar="NAME", help="only images that have one of these classes")
    subset.add_argument("--keys", metavar="FILE", help="only these keys, one a line")
    subset.add_argument("--seed", type=int, default=0, metavar="S", help="another seed, other images (default 0)")
    _common(subset)
    subset.set_defaults(command=_subset)
    reshard = commands.add_parser("reshard", help="the same records in other shards")
    reshard.add_argument("dataset", metavar="DIR", help="a dataset")
    _common(reshard)
    reshard.set_defaults(command=_reshard)
    merge = commands.add_parser("merge", help="several datasets as one")
    merge.add_argument("datasets", metavar="DIR", nargs="+", help="datasets of the same classes and features")
    _common(merge)
    merge.set_defaults(command=_merge)
    forget = commands.add_parser("forget", help="a dataset without some images, and without a word of them")
    forget.add_argument("dataset", metavar="DIR", help="a dataset")
    forget.add_argument("--keys", metavar="FILE", required=True, help="the keys to forget, one a line")
    _common(forget)
    forget.set_defaults(command=_forget)


def _common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", required=True, metavar="DIR", help="folder to make")
    parser.add_argument("--shard-size", type=float, metavar="MB", help="megabytes a shard (default 150)")
    parser.add_argument("--shard-records", type=int, metavar="N", help="records a shard instead")
    parser.add_argument("--shard-count", type=int, metavar="N", help="shards a split instead")
    parser.add_argument("--json", action="store_true", help="print what was made as JSON")


def _subset(options: argparse.Namespace) -> int:
    from shardwright.config.checks import between
    from shardwright.dataset import Dataset
    from shardwright.derive import Derived, derive
    from shardwright.errors import UsageError
    from shardwright.fingerprint import fingerprint, text_number
    from shardwright.subset import stratified

    if options.share is not None:
        between("--share", options.share, 1e-9, 1)
    if options.share is not None and options.count is not None:
        raise UsageError("--share and --count exclude each other. Give one of them.")
    dataset = Dataset.open(options.dataset)
    chosen = stratified(
        dataset,
        options.share,
        count=options.count,
        splits=options.splits,
        classes=options.classes,
        seed=options.seed,
    )
    if options.keys is not None:
        chosen &= {text_number(key) for key in _keys(options.keys)}
    choice = {"images": fingerprint(sorted(chosen))}
    how = Derived("subset", choice, lambda key: text_number(key) in chosen, row=lambda row: None)
    return _told(derive([dataset], options.out, how, shards=_shards(options), quiet=options.json), options)


def _reshard(options: argparse.Namespace) -> int:
    from shardwright.dataset import Dataset
    from shardwright.derive import Derived, derive

    dataset = Dataset.open(options.dataset)
    how = Derived("reshard", {})
    return _told(derive([dataset], options.out, how, shards=_shards(options), quiet=options.json), options)


def _merge(options: argparse.Namespace) -> int:
    from shardwright.dataset import Dataset
    from shardwright.derive import Derived, derive

    datasets = [Dataset.open(name) for name in options.datasets]
    how = Derived("merge", {})
    return _told(derive(datasets, options.out, how, shards=_shards(options), quiet=options.json), options)


def _forget(options: argparse.Namespace) -> int:
    from shardwright.dataset import Dataset
    from shardwright.derive import Derived, derive
    from shardwright.errors import UsageError
    from shardwright.fingerprint import fingerprint

    dataset = Dataset.open(options.dataset)
    keys = set(_keys(options.keys))
    there = {key for split in dataset.splits for key in dataset.keys(split) if key in keys}
    known = there | {row.key for row in dataset.ledger() if row.key in keys}
    if missing := sorted(keys - known):
        shown = ", ".join(missing[:_SHOWN])
        raise UsageError(f"{options.keys}: {len(missing)} of {len(keys)} keys are not in the dataset, e.g. {shown}.")
    # The new dataset must not tell which they were: only a hash of all that is left.
    left = fingerprint(sorted(key for split in dataset.splits for key in dataset.keys(split) if key not in keys))

    def without(row: LedgerRow) -> LedgerRow | None:
        if row.key in keys:
            return None
        told = any(key in row.reason for key in keys)
        return dataclasses.replace(row, reason="concerns an image that was forgotten") if told else row

    how = Derived("forget", {"left": left}, lambda key: key not in keys, row=without)
    return _told(derive([dataset], options.out, how, shards=_shards(options), quiet=options.json), options)


def _keys(name: str) -> list[str]:
    from shardwright.errors import UsageError

    try:
        lines = Path(name).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{name}: cannot be read ({error}). Give a text file with a key a line.") from None
    keys = [line for line in lines if line.strip()]
    if not keys:
        raise UsageError(f"{name}: holds no keys. Write one a line.")
    return keys


def _shards(options: argparse.Namespace) -> ShardsConfig:
    from shardwright.config.layout import ShardsConfig

    size = None if options.shard_size is None else round(options.shard_size * 1e6)
    return ShardsConfig(target_size=size, count=options.shard_count, records=options.shard_records)


def _told(manifest: Manifest, options: argparse.Namespace) -> int:
    if options.json:
        row = {
            "dataset": options.out,
            "fingerprint": manifest.fingerprint,
            "shards": len(manifest.shards),
            "totals": dict(manifest.totals),
        }
        print(json.dumps(row, indent=1, sort_keys=True, ensure_ascii=False))
        return 0
    splits = ", ".join(
        f"{n} {name.split('/', 1)[1]}" for name, n in sorted(manifest.totals.items()) if "records/" in name
    )
    print(f"{options.out}: {manifest.totals['written']} images ({splits}) in {len(manifest.shards)} shards")
    return 0
