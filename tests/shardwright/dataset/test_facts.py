"""Facts beside the shards: the same however records are passed, all that the report needs, and refused when damaged."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from shardwright.dataset import reader
from shardwright.dataset import record_facts as facts_module
from shardwright.dataset.reader import ImageDataset
from shardwright.dataset.record_facts import ShardFacts
from shardwright.errors import DatasetError
from shardwright.ingest.known_files import PROBE_FEATURES
from shardwright.masks.rle import draw
from shardwright.pipelines.cli import main
from shardwright.report import collect, contact_sheets
from shardwright.report.page import collect_page, render
from shardwright.staging.commit import DatasetPlan
from shardwright.staging.staging import PlannedShard
from shardwright.storage.checksum import checksum_of
from shardwright.tfrecords.encode import byte_strings, encode_example, encode_pieces, ints, pack_arrays
from shardwright.tfrecords.records import decode_example

CLASSES = ("Fish", "Sugar")
SHARD = PlannedShard("train", 0, 1)


def measured(number, example):
    quality = {name: number % 10 / 10 for name in PROBE_FEATURES if name.startswith("image/quality/")}
    hashes = {name: number - 3 for name in PROBE_FEATURES if name.startswith("image/hash/")}
    return {**example, **quality, **hashes}


@pytest.fixture(scope="module")
def dataset(small_dataset, tmp_path_factory):
    root = tmp_path_factory.mktemp("facts")
    return ImageDataset.open(small_dataset(root, counts={"train": [9, 8], "eval": [4]}, change=measured))


def test_facts_are_those_of_the_records(dataset):
    for split in dataset.splits:
        for shard in dataset.shards(split):
            facts = dataset.facts(shard)
            examples = [decode_example(payload) for _, _, payload in dataset.placed_records(shard)]
            assert facts.records == len(examples)
            for name in ("height", "width", "channels", "orientation"):
                assert facts.numbers[name].tolist() == [int(one[f"image/{name}"][0]) for one in examples]
            assert facts.numbers["bytes"].tolist() == [len(one["image/encoded"][0]) for one in examples]
            assert facts.labels == [one["image/class/label"].tolist() for one in examples]
            assert [f"{value:016x}" for value in facts.content.tolist()] == [
                one["image/blake3"][0][:16].decode() for one in examples
            ]
            brightness = [round(float(one["image/quality/brightness"][0]) * 10**6) for one in examples]
            assert facts.quality[0].tolist() == brightness
            perceptual = [int(one["image/hash/perceptual"][0]) & (1 << 64) - 1 for one in examples]
            assert facts.hashes[0].tolist() == perceptual
            for label, name in enumerate(CLASSES):
                areas = [int(one[f"image/segmentation/{name}/area"][0]) for one in examples]
                rows, pixels = facts.areas[label]
                assert dict(zip(rows.tolist(), pixels.tolist(), strict=True)) == {
                    i: a for i, a in enumerate(areas) if a
                }
                # All images of a small dataset are in the sample.
                drawn = [int(draw(facts.runs(record, label), 24, 36).sum()) for record in range(facts.records)]
                assert drawn == areas


def plan_of(features):
    kinds = dict.fromkeys(features, "bytes") | {
        name: "int64" for name in features if name.endswith(("/area", "/rle", "height", "width", "label"))
    }
    return DatasetPlan("ingest", "segmentation", CLASSES, {}, "0" * 64, kinds, 1, (SHARD,))


def example_of(encoded, starts):
    runs = np.stack([starts, np.full(len(starts), 2)], 1)
    return {
        "image/encoded": encoded,
        "image/format": b"jpeg",
        "image/height": 4000,
        "image/width": 40_000,
        "image/class/label": ints([1]),
        "image/class/text": byte_strings([b"Sugar"]),
        "image/segmentation/Fish/rle": ints([]),
        "image/segmentation/Fish/area": 0,
        "image/segmentation/Sugar/rle": ints(runs.reshape(-1)),
        "image/segmentation/Sugar/area": 2 * len(starts),
    }


AS_INGESTED = {"image/channels": 3, "image/orientation": 6, "image/blake3": b"00fe" * 16}


@pytest.mark.parametrize("size", [10, 100_000, 1 << 17, 700_000])
@pytest.mark.parametrize("masks", [3, 9_000, 40_000, 90_000])
@pytest.mark.parametrize("further", [{}, AS_INGESTED, {**AS_INGESTED, "image/blake3": b"0" * 64}], ids=len)
def test_facts_of_values_are_those_of_the_record(size, masks, further):
    features = {**example_of(b"\x0a\x12" * (size // 2), np.arange(masks) * 4), **further}
    plan = plan_of(features)
    whole, pieces, values, packed = (plan.facts(SHARD) for _ in range(4))
    whole.add("a", encode_example(features))
    pieces.add("a", encode_pieces(features))
    # A record that would not do shows that it is not parsed.
    values.add("a", b"", features)
    packed.add("a", b"", pack_arrays(features))
    assert pieces.encode() == values.encode() == packed.encode() == whole.encode()
    found = ShardFacts.decode(whole.encode(), plan.outline(), 1, "facts")
    assert found.numbers["bytes"].tolist() == [size]
    # An image with too large masks is not in the sample.
    assert list(found.masks) == ([0] if masks < 40_000 else [])


def test_a_sample_of_masks_is_kept(monkeypatch):
    monkeypatch.setattr(facts_module, "MASKS_OF", 4)
    features = example_of(b"x", np.arange(3) * 4)
    plan, payload = plan_of(features), encode_example(features)
    collector = plan.facts(SHARD)
    for number in range(500):
        collector.add(f"{number}", payload)
    found = ShardFacts.decode(collector.encode(), plan.outline(), 500, "facts")
    assert 4 <= len(found.masks) < 40
    lowest = sorted(range(500), key=lambda number: facts_module.sampling_hash(f"{number}"))
    assert set(found.masks) == set(lowest[: len(found.masks)])


def test_the_report_reads_only_the_records_that_it_shows(dataset, monkeypatch):
    expected = render(collect_page(dataset))
    read = []
    original = contact_sheets.read_record
    for module in (contact_sheets, collect):
        monkeypatch.setattr(module, "read_record", lambda shards, place: read.append(place) or original(shards, place))
    monkeypatch.setattr(reader, "read_records", lambda *_, **__: pytest.fail("a shard was read"))
    assert render(collect_page(dataset)) == expected
    assert 0 < len(set(read)) <= 21


def test_without_measures_all_images_are_measured_if_that_takes_seconds(small_dataset, tmp_path, monkeypatch, capsys):
    """The same words stand on the page, in `stats` and in the card: of how many images the measures are."""
    dataset = ImageDataset.open(small_dataset(tmp_path, counts={"train": [40]}))
    seen = collect_page(dataset)
    assert seen.collected.measured == seen.collected.histograms["contrast"].total == 40
    assert "chosen by a hash" not in render(seen).partition("shape")[0]
    monkeypatch.setattr(collect, "_MOST_PIXELS", seen.collected.pixels // 40 * 30)
    seen = collect_page(dataset)
    assert seen.collected.measured == 30
    assert "Of 30 of 40 images, chosen by a hash of their keys" in render(seen)
    assert main(["stats", dataset.root]) == 0
    lines = {line.split()[0]: line for line in capsys.readouterr().out.splitlines()}
    assert lines["brightness"].endswith("of 30 of 40 images, chosen by hash")
    assert lines["pixels"].endswith("of 40 images")
    assert main(["card", dataset.root]) == 0
    card = capsys.readouterr().out
    assert re.search(r"\| brightness \| 30 \|", card)
    assert "Measures of 30 of 40 images are of those chosen by hash." in card


def forget_facts(root):
    """Makes the dataset one whose writer left no facts."""
    plain = json.loads((root / "manifest.json").read_text())
    for part in ("parts", "sizes"):
        plain[part] = {name: value for name, value in plain[part].items() if not name.startswith("facts/")}
    write(root, plain)


def write(root, plain):
    from shardwright.dataset.manifest import Manifest, ShardInfo

    shards = tuple(ShardInfo(**row) for row in plain.pop("shards"))
    manifest = Manifest(**{**plain, "shards": shards, "classes": tuple(plain["classes"])}).with_digest()
    (root / "manifest.json").write_text(manifest.to_json())


def test_a_dataset_without_facts_has_the_same_counts(small_dataset, tmp_path):
    root = small_dataset(tmp_path, counts={"train": [9, 8], "eval": [4]}, change=measured)
    with_facts = collect_page(ImageDataset.open(root)).collected
    forget_facts(root)
    dataset = ImageDataset.open(root)
    assert not any(name.startswith("facts/") for name in dataset.manifest.parts)
    without = collect_page(dataset).collected
    assert without.columns == with_facts.columns
    assert {name: one.sums for name, one in without.histograms.items()} == {
        name: one.sums for name, one in with_facts.histograms.items()
    }
    assert (without.shapes.heat == with_facts.shapes.heat).all()


def damaged(change):
    def write_file(file: Path) -> None:
        value = json.loads(file.read_text())
        change(value)
        file.write_text(json.dumps(value))

    return write_file


@pytest.mark.parametrize(
    "change",
    [
        lambda v: v.update(records=8),
        lambda v: v.update(records="9"),
        lambda v: v.pop("hashes"),
        lambda v: v.update(height=v["height"][:-1]),
        lambda v: v.update(height=[10**30] * 9),
        lambda v: v.update(width=[2**40] * 9),
        lambda v: v.update(width=[[1]] * 9),
        lambda v: v.update(width=None),
        lambda v: v.update(format=[7] * 9),
        lambda v: v.update(formats=[["png"]]),
        lambda v: v.update(content=["xyz"] * 9),
        lambda v: v.update(labels=[[5]] * 9),
        lambda v: v.update(areas=[]),
        lambda v: v.update(areas=[[[99], [1]]] * 2),
        lambda v: v.update(masks=[[99, []]]),
        lambda v: v.update(masks=[[0, [[0, 5]]]]),
        lambda v: v.update(masks=[7]),
        lambda v: v.update(masks=[[0, [[0, "AAAA"], [1, "!"]]]]),
        lambda v: v.update(masks=[[0, [[0, "//////9/AQ=="]]]]),
    ],
)
def test_damaged_facts_are_refused(small_dataset, tmp_path, change):
    root = small_dataset(tmp_path, counts={"train": [9]}, change=measured)
    (file,) = (root / "facts").rglob("*.json")
    damaged(change)(file)
    with pytest.raises(DatasetError, match=r"its checksum differs from the manifest's\. Re-create the dataset"):
        collect_page(ImageDataset.open(root))
    # An attacker who forges a dataset writes the checksum, too.
    plain = json.loads((root / "manifest.json").read_text())
    plain["parts"][file.relative_to(root).as_posix()] = checksum_of(file.read_bytes())
    write(root, plain)
    with pytest.raises(DatasetError, match="Re-create the dataset"):
        collect_page(ImageDataset.open(root))


def test_missing_facts_are_an_error(small_dataset, tmp_path):
    root = small_dataset(tmp_path, counts={"train": [9]})
    (file,) = (root / "facts").rglob("*.json")
    file.unlink()
    with pytest.raises(DatasetError, match="not readable facts"):
        collect_page(ImageDataset.open(root))
