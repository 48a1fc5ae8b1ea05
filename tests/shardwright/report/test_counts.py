"""The counts of the report are those of an independent count of the records."""

import io
import re

import numpy as np
import pytest
from PIL import Image

from shardwright.config import EvaluatorConfig
from shardwright.dataset.reader import ImageDataset
from shardwright.display.histograms import number, percent
from shardwright.evaluation.verdict import LEAST_PER_CLASS
from shardwright.report.page import collect_page, render
from shardwright.tfrecords.records import decode_example

NAMES = ("Fish", "Sugar", "Rare")


def differing(number, example):
    file = io.BytesIO()
    Image.new("RGB", (36, 24), (number % 200, 90, 30)).save(file, "png")
    kept = {name: value for name, value in example.items() if not name.startswith("image/class/")}
    present = [label for label, name in enumerate(NAMES) if example[f"image/segmentation/{name}/area"]]
    kept["image/class/label"] = np.array(present, np.int64)
    return {**kept, "image/encoded": file.getvalue(), "image/quality/brightness": number / 100, **measured(number)}


def measured(number):
    names = ("contrast", "sharpness", "colorfulness", "red", "green", "blue")
    return {f"image/quality/{name}": (number % 7) / 20 for name in names}


@pytest.fixture(scope="module")
def seen(small_dataset, tmp_path_factory):
    dataset = small_dataset(
        tmp_path_factory.mktemp("counts"), classes=NAMES, counts={"train": [25, 6], "eval": [9]}, change=differing
    )
    return collect_page(ImageDataset.open(dataset))


@pytest.fixture(scope="module")
def records(seen):
    dataset = seen.collected.dataset
    return [
        (split, key, decode_example(payload)) for split in dataset.splits for key, payload in dataset.records(split)
    ]


def area(example, name):
    return int(example[f"image/segmentation/{name}/area"][0])


def test_splits_and_classes(seen, records):
    found = seen.collected
    for split in ("train", "eval"):
        members = [example for where, _, example in records if where == split]
        assert found.images[split] == len(members)
        assert found.unlabeled[split] == sum(len(one.get("image/class/label", ())) == 0 for one in members)
        for label, name in enumerate(NAMES):
            assert found.class_count(label, split) == sum(area(one, name) > 0 for one in members)


def test_measures_and_areas(seen, records):
    histograms = seen.collected.histograms
    for split in ("train", "eval"):
        members = [example for where, _, example in records if where == split]
        values = [float(one["image/quality/brightness"][0]) for one in members]
        assert histograms["brightness"].mean(split) == pytest.approx(np.mean(values), abs=1e-6)
        assert histograms["bytes"].mean(split) == pytest.approx(
            np.mean([len(one["image/encoded"][0]) for one in members])
        )
        for label, name in enumerate(NAMES):
            parts = [area(one, name) / (24 * 36) for one in members if area(one, name)]
            assert int(histograms[f"coverage/{label}"].counts[split].sum()) == len(parts)
            assert histograms[f"coverage/{label}"].mean(split) == pytest.approx(np.mean(parts), abs=1e-6)
    assert histograms["contrast"].quantile(0.5) == pytest.approx(
        np.median([float(one["image/quality/contrast"][0]) for _, _, one in records]), abs=0.5 / 960
    )


def test_the_smallest_and_the_largest_masks(seen, records):
    order = sorted((area(one, name), key, label) for _, key, one in records for label, name in enumerate(NAMES))
    order = [row for row in order if row[0]]
    assert [(p.key, p.label) for p in seen.collected.smallest.candidates()] == [
        (key, label) for _, key, label in order[:12]
    ]
    assert {abs(p.score) for p in seen.collected.largest.candidates()} == {a / (24 * 36) for a, _, _ in order[-12:]}


def test_the_page_shows_these_numbers(seen, records):
    page = render(seen)
    for name in NAMES:
        total = sum(area(one, name) > 0 for _, _, one in records)
        row = re.search(rf"<tr><th scope=\"row\">[^/]*</span><bdi>{name}</bdi></th><td class=\"n\">(\d+)</td>", page)
        assert int(row[1]) == total
    for split, count in (("train", 31), ("eval", 9)):
        assert f'in split <bdi>{split}</bdi></th><td class="n">{count}</td>' in page
    for split in ("train", "eval"):
        members = [one for where, _, one in records if where == split]
        row = re.search(rf"<bdi>{split}</bdi></span></th>(.*?)</tr>", page)[1]
        shards = 2 if split == "train" else 1
        rate = sum(area(one, name) > 0 for one in members for name in NAMES) / len(members)
        bare = sum(not any(area(one, name) for name in NAMES) for one in members)
        cells = re.findall('<td class="n">(.*?)</td>', row)
        assert (cells[0], cells[3:6]) == (str(len(members)), [str(shards), f"{rate:.2f}", str(bare)])
    for name in NAMES:
        areas = [area(one, name) for _, _, one in records if area(one, name)]
        body = page[page.index("<h3>Area</h3>") :]
        row = re.search(rf"<bdi>{name}</bdi></th>(.*?)</tr>", body)[1]
        cells = re.findall('<td class="n">(.*?)</td>', row)
        figures = (
            [number(round(np.mean(areas))), percent(sum(areas) / (len(records) * 24 * 36))] if areas else ["–", "0 %"]
        )
        assert [cells[0], cells[1], cells[3]] == [str(len(areas)), *figures]
    # Nine images are too few for an outline.
    assert 'class="line s-train"' in page
    assert 'class="line s-eval"' not in page


def test_the_findings_say_how_few_images_a_class_has(small_dataset, tmp_path):
    """`Fine ... every class in every split` stood where a split had one image of a class."""

    def only(number, example):
        """The last image of eval alone shows Sugar."""
        kept = {name: value for name, value in example.items() if not name.startswith("image/class/")}
        split, place = example["image/key"].decode().split("/")
        label = int(place) % 2 if split == "train" else int(int(place) == 8)
        return {**kept, "image/class/label": np.array([label], np.int64)}

    def findings(**counts):
        dataset = small_dataset(
            tmp_path / str(len(counts)), task="classification", classes=("Fish", "Sugar"), counts=counts, change=only
        )
        page = render(collect_page(ImageDataset.open(dataset)))
        return re.sub("<[^>]*>", "", page)

    assert EvaluatorConfig.min_per_class == LEAST_PER_CLASS == 5
    assert "every class in every split (12 or more: train of Fish)" in findings(train=[24])
    weak = findings(train=[24], eval=[9])
    assert (
        "Split eval has 1 image of Sugar: of fewer than 5, as many as a blessing asks for, figures say little" in weak
    )
    assert "every class in every split" not in weak
