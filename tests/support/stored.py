"""Annotations as they are stored, held to a list: if they change for the same input, `CODE_FORMAT` must change.

Otherwise caches, staging folders and `reuse_from` would take datasets of an older version for those of this one. Pixels
and their checksum are left out: they depend on the version of Pillow that drew them.

A new test, or all tests after a new `CODE_FORMAT`, are recorded by a run of their files in one process:
`SHARDWRIGHT_STORED=record .venv/bin/python -m pytest -n 0 FILE...`
"""

import hashlib
import json
import os
from pathlib import Path

import numpy as np

from shardwright.dataset.reader import ImageDataset
from shardwright.ingest.recipe import CODE_FORMAT
from shardwright.tfrecords.records import decode_example

LIST = Path(__file__).parents[1] / "shardwright/formats/stored.json"
_OF_PIXELS = {"image/encoded", "image/blake3"}


def digest(root):
    """Returns a hash of splits, keys, annotations and ledger codes of a dataset."""
    dataset = ImageDataset.open(root)
    rows = [("ledger", row.key, row.status, row.code) for row in dataset.ledger()]
    for split in dataset.splits:
        for key, data in dataset.records(split):
            features = sorted(decode_example(data).items())
            rows.append((split, key, *(_plain(one) for one in features if one[0] not in _OF_PIXELS)))
    return hashlib.sha256(repr((dataset.manifest.classes, sorted(rows))).encode()).hexdigest()[:16]


def _plain(feature):
    name, values = feature
    if isinstance(values, np.ndarray):
        # The printed digits of a float may differ by platform, its bytes do not.
        return name, str(values.dtype), values.tobytes().hex() if values.dtype.kind == "f" else tuple(values.tolist())
    return name, tuple(values)


def check_stored(name, root):
    """Checks that a dataset holds what the list says for this name."""
    known = json.loads(LIST.read_text(encoding="utf-8")) if LIST.exists() else {"code_format": 0, "stored": {}}
    found, same = digest(root), known["code_format"] == CODE_FORMAT
    if os.environ.get("SHARDWRIGHT_STORED") == "record":
        stored = known["stored"] if same else {}
        assert stored.get(name, found) == found, f"{name}: raise CODE_FORMAT (ingest/recipe.py), then record"
        text = json.dumps({"code_format": CODE_FORMAT, "stored": {**stored, name: found}}, indent=1, sort_keys=True)
        LIST.write_text(text + "\n", encoding="utf-8")
        return
    how = f"See {Path(__file__).name}"
    assert same, f"{LIST.name} is that of code format {known['code_format']}. {how}."
    assert name in known["stored"], f"{name} is not in {LIST.name}. {how}."
    assert found == known["stored"][name], f"{name}: what is stored has changed, so CODE_FORMAT must, too. {how}."
