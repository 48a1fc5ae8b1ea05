"""Shared by the tests of the ingest: run one, read what it wrote."""

import hashlib
from pathlib import Path

from shardwright.config import parse_config
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


def run(raw, out, **options):
    return ingest(config(raw), out, quiet=True, **options)
