"""What corrected annotations brought: in the report of a relabeled dataset, in that of a run, and in `diff`."""

import csv
import json

import pytest
from evaluations import evaluated

from shardwright.components.evaluator.result_files import write_evaluation
from shardwright.pipelines.cli import main
from shardwright.pipelines.runs.corrections import find_corrections


@pytest.fixture(scope="module")
def corrected(tmp_path_factory):
    """A folder with a dataset `before`, the same one `after` two masks were corrected, and `more`, with new images."""
    root = tmp_path_factory.mktemp("corrected")
    for name, count in (("data", 24), ("further", 30)):
        assert (
            main(["sample", "--out", str(root / name), "--count", str(count), "--height", "64", "--width", "96"]) == 0
        )
        assert main(["init", str(root / name), "--out", str(root / f"{name}.yaml")]) == 0
    for name, out in (("data", "before"), ("further", "more")):
        assert main(["ingest", str(root / f"{name}.yaml"), "--out", str(root / out), "--workers", "1"]) == 0
    with open(root / "data/train.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    cut = {"Fish": 2, "Sugar": 1}
    for row in rows[1:]:
        name = row[0].rpartition("_")[2]
        if row[1] and cut.get(name):
            row[1], cut[name] = " ".join(row[1].split()[:2]), cut[name] - 1
    with open(root / "fixed.csv", "w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(rows)
    assert main(["relabel", str(root / "before"), str(root / "fixed.csv"), "--out", str(root / "after")]) == 0
    return root


def evaluation(folder, **more):
    folder.mkdir()
    write_evaluation(folder, evaluated({"mean_dice": 0.75, "dice/Fish": 0.7}, **more))
    (folder / "evaluation.json").write_text('{"pictures": []}')
    return str(folder)


def test_the_difference_names_the_classes_whose_masks_differ(corrected, capsys):
    call = ["diff", str(corrected / "before"), str(corrected / "after")]
    assert main([*call, "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["masks"] == {"Fish": 2, "Sugar": 1}
    rows = [row for row in found["rows"] if row["way"] == "masks"]
    assert sorted(name for row in rows for name in row["after"].split(", ")) == ["Fish", "Fish", "Sugar"]
    assert main(call) == 1
    assert ": Fish: IoU 0." in capsys.readouterr().out


def test_the_report_of_a_relabeled_dataset_says_what_came_back(corrected, tmp_path, capsys):
    baseline = {"mean_dice": 0.625}
    for name, more, said in (
        ("one", {"baseline": baseline}, "0.7500; of the last blessed one: 0.6250. Both on 60 images of test"),
        ("other", {}, "There is no earlier model to compare it with."),
    ):
        page = tmp_path / f"{name}.html"
        given = ["--evaluation", evaluation(tmp_path / name, **more)]
        assert main(["report", str(corrected / "after"), "--out", str(page), *given]) == 0
        text = page.read_text(encoding="utf-8")
        assert "other masks than in" in text
        assert ": Fish 2, Sugar 1" in text
        assert said in text
    page = tmp_path / "before.html"
    assert main(["report", str(corrected / "before"), "--out", str(page)]) == 0
    assert "corrections" not in page.read_text(encoding="utf-8")


def test_the_dataset_of_a_run_is_compared_with_the_one_whose_images_it_reused(corrected):
    before, after, more = (str(corrected / name) for name in ("before", "after", "more"))
    made = find_corrections(after, before)
    assert made.words().startswith(f"{made.images} images have other masks than in {made.earlier.manifest.digest[:12]}")
    assert made.facts() == {
        "images": made.images,
        "labels": {},
        "masks": {"Fish": 2, "Sugar": 1},
        "earlier": made.earlier.manifest.digest,
    }
    assert made.images in (2, 3)
    assert find_corrections(before, before) is None
    assert find_corrections(more, before) is None, "new images are no corrections"
    assert find_corrections(before, None) is None
