"""A second delivery that is darker than the first stops the run, and its report shows it."""

import re
from pathlib import Path

import pytest
import yaml
from PIL import Image

from shardwright.pipelines.cli import main

pytestmark = pytest.mark.slow


def test_a_darkened_delivery_is_stopped_with_a_report_that_shows_it(image_input, tmp_path, capsys):
    raw = image_input(tmp_path / "data" / "span-1", layout="label_csv", images=150)
    raw["input"]["images"] = str(tmp_path / "data" / "span-{SPAN}" / "images")
    raw["input"]["labels"] = {"path": str(tmp_path / "data" / "span-{SPAN}" / "labels.csv")}
    raw["shards"] = {"records": 60}
    config = tmp_path / "monthly.yaml"
    config.write_text(yaml.safe_dump(raw))
    assert main(["ingest", str(config), "--out", str(tmp_path / "ds"), "--workers", "1"]) == 0

    # The next month: the latest span is taken, and only what it is compared with is new in the configuration.
    image_input(tmp_path / "data" / "span-2", layout="label_csv", images=150, seed=1)
    for file in (tmp_path / "data" / "span-2" / "images").iterdir():
        with Image.open(file) as picture:
            picture.point(lambda level: level * 6 // 10).save(file, "jpeg")
    raw["gate"] = {"drift": {"reference": str(tmp_path / "ds")}}
    config.write_text(yaml.safe_dump(raw))
    capsys.readouterr()
    assert main(["run", str(config), "--root", str(tmp_path / "run")]) == 1
    said = capsys.readouterr().err
    assert "DRIFT" in said
    assert "brightness 0." in said
    report = Path(re.findall(r"See it: (\S+)", said)[-1])
    text = report.read_text(encoding="utf-8")
    assert report.is_relative_to(tmp_path / "run")
    assert "Drift against the reference" in text
    assert "The images that stand out most" in text
    assert not (tmp_path / "run" / "artifacts" / "ImageTransform").exists()
