"""Spans, lists of splits and earlier datasets on object stores: the bytes of a local run."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from ingesting import ledger, run, tree
from object_stores import SCHEMES
from PIL import Image

from shardwright.storage import list_names

pytestmark = pytest.mark.slow


def deliver(folder, numbers, start=0):
    for number in numbers:
        file = folder / "images" / f"{number:02d}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        values = np.random.default_rng(start + number).integers(0, 256, (6, 9, 3), dtype=np.uint8)
        Image.fromarray(values).save(file, compress_level=0)  # All have the same size.
    with (folder / "labels.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("image", "label"), *((f"{n:02d}.png", ("cat", "dog")[n % 2]) for n in numbers)])


def raw(root, span="newest", **split):
    return {
        "task": "classification",
        "input": {
            "images": f"{root}/{{SPAN}}/images",
            "labels": {"path": f"{root}/{{SPAN}}/labels.csv"},
            "span": span,
        },
        "split": split or {"method": "hash"},
        "evaluator": {"split": "eval"},
    }


@pytest.mark.parametrize("scheme", SCHEMES[:1])
def test_spans_on_a_bucket_make_the_bytes_of_local_ones(stores, tmp_path, scheme):
    deliver(tmp_path / "in" / "8", range(6))
    deliver(tmp_path / "in" / "9", range(4, 12), start=100)
    deliver(tmp_path / "in" / "10", range(10, 14))
    url = f"{stores.bucket(scheme)}/data"
    stores.copy_of(tmp_path / "in", url)
    before = len(stores.requests)
    assert list_names(url) == ["10", "8", "9"]
    assert len(stores.requests) - before <= 2, "one page of names, however many objects there are"
    assert list_names(f"{url}/missing") == []
    for span in ("newest", 9, [8, 9], "all"):
        name = str(span)
        run(raw(tmp_path / "in", span), tmp_path / "local" / name)
        run(raw(url, span), tmp_path / "remote" / name)
        assert tree(tmp_path / "remote" / name) == tree(tmp_path / "local" / name)


@pytest.mark.slow
@pytest.mark.parametrize("scheme", SCHEMES)
def test_names_come_page_by_page(stores, scheme):
    url = stores.bucket(scheme)
    names = [f"{number:04d}{'/a.png' if number % 2 else ''}" for number in range(1100)]
    stores.fill(f"{url}/in", {**dict.fromkeys(names, b"x"), "0001/b.png": b"x", ".hidden/c": b"x"})
    assert list_names(f"{url}/in") == [f"{number:04d}" for number in range(1100)]


@pytest.mark.parametrize("scheme", SCHEMES)
def test_an_earlier_dataset_and_lists_may_lie_on_a_bucket(stores, tmp_path, scheme):
    deliver(tmp_path / "in" / "1", range(20))
    url = f"{stores.bucket(scheme)}/data"
    stores.copy_of(tmp_path / "in", url)
    first = run(raw(url), f"{url}-first")
    run(raw(url), tmp_path / "first")
    deliver(tmp_path / "in" / "2", range(20))
    table = tmp_path / "in" / "2" / "labels.csv"
    table.write_text(table.read_text().replace("\n0", "\nrenamed-0").replace("\n1", "\nrenamed-1"))
    for file in (tmp_path / "in" / "2" / "images").iterdir():
        file.rename(file.with_name(f"renamed-{file.name}"))
    stores.copy_of(tmp_path / "in", url)
    second = run(raw(url, method="hash", salt="x", keep_from=f"{url}-first"), tmp_path / "second")
    assert second.recipe["split"]["keep_from"] == first.digest
    before, after = ({key: row.split for key, row in ledger(tmp_path / one).items()} for one in ("first", "second"))
    # The checksums that the bucket lists identify images.
    assert after == {f"renamed-{key}": split for key, split in before.items()}
    run(raw(tmp_path / "in", method="hash", salt="x", keep_from=str(tmp_path / "first")), tmp_path / "local")
    assert tree(tmp_path / "local") == tree(tmp_path / "second")
    # Two objects of equal size exchange their names.
    one = next(iter(before))
    other = next(key for key in before if before[key] != before[one])
    deliver(tmp_path / "in" / "3", range(20))
    images = tmp_path / "in" / "3" / "images"
    pixels = (images / one).read_bytes()
    (images / other).replace(images / one)
    (images / other).write_bytes(pixels)
    stores.copy_of(tmp_path / "in", url)
    run(raw(url, method="hash", salt="x", keep_from=f"{url}-first"), tmp_path / "third")
    third = {key: row.split for key, row in ledger(tmp_path / "third").items()}
    assert third == {**before, one: before[other], other: before[one]}
    stores.copy_of(tmp_path / "in" / "2", f"{url}/4")
    Path(tmp_path / "lists").mkdir()
    (tmp_path / "lists" / "train.txt").write_text("\n".join(f"renamed-{n:02d}" for n in range(12)))
    (tmp_path / "lists" / "eval.txt").write_text("\n".join(f"renamed-{n:02d}" for n in range(12, 20)))
    stores.copy_of(tmp_path / "lists", f"{url}-lists")
    lists = {name: f"{url}-lists/{name}.txt" for name in ("train", "eval")}
    listed = run(raw(url, method="predefined", from_lists=lists), tmp_path / "listed")
    assert listed.totals["records/train"] == 12
    assert "://" not in json.dumps(listed.recipe)
