"""Shared by the tests of the ingest: run one, read what it wrote."""

import hashlib
import re
from functools import cache
from pathlib import Path

from shardwright.config import parse_config
from shardwright.dataset.ledger import REJECTED
from shardwright.dataset.reader import ImageDataset
from shardwright.ingest import ingest
from shardwright.tfrecords.records import decode_example


def config(raw, **changes):
    merged = {**raw, **changes}
    return parse_config(merged, base="/")


def changed(raw, **options):
    return {**raw, "input": {**raw["input"], **options}}


def tree(root):
    free = ("build.json", "lineage.json", "inputs.jsonl")
    return {
        str(p.relative_to(root)): hashlib.sha256(p.read_bytes()).hexdigest()
        for p in Path(root).rglob("*")
        if p.is_file() and p.name not in free
    }


def examples(root):
    dataset = ImageDataset.open(root)
    return {key: decode_example(data) for split in dataset.splits for key, data in dataset.records(split)}


def ledger(root):
    return {row.key: row for row in ImageDataset.open(root).ledger()}


@cache
def documented_codes():
    """The codes of the tables of rejects, by which users look up what to do."""
    text = Path(__file__).parents[2].joinpath("docs/reference/messages.md").read_text(encoding="utf-8")
    tables = text.partition("## Reject codes")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (`.+?`) \|", tables, re.MULTILINE)
    return frozenset(code for row in rows for code in re.findall(r"`(\w+)`", row))


def run(raw, out, **options):
    """Ingests; half of the inputs may be rejected unless the configuration says otherwise."""
    manifest = ingest(config({"rejects": {"max_fraction": 0.5}, **raw}), out, quiet=True, **options)
    codes = {row.code for row in ledger(out).values() if row.status == REJECTED}
    assert codes <= documented_codes(), f"docs/reference/messages.md lacks {codes - documented_codes()}"
    return manifest
