"""Files that annotation tools wrote, of pictures of ours: `init` and `ingest` read what the tools read themselves.

`genuine/` holds two images and, by tool, what it wrote about them (`python -m benchmarks.annotation_tools --images 2`),
with the truth that the tool's own reader found.
"""

import base64
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import yaml
from ingesting import examples
from stored import check_stored

from shardwright.config import load_config
from shardwright.ingest import ingest
from shardwright.pipelines.cli import main

GENUINE = Path(__file__).parent / "genuine"
TRUTH = json.loads((GENUINE / "truth.json").read_text())


def copied(tool, folder):
    shutil.copytree(GENUINE / tool, folder)
    for name, place in TRUTH[tool]["images"].items():
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(GENUINE / name, folder / place)


def packed(flat, height, width):
    pixels = np.zeros(height * width, np.uint8)
    for start, length in zip(flat[::2], flat[1::2], strict=True):
        pixels[start : start + length] = 1
    return base64.b64encode(np.packbits(pixels.reshape(width, height).T).tobytes()).decode()


@pytest.mark.parametrize("tool", TRUTH)
def test_what_the_tool_wrote_is_read_as_it_reads_it(tmp_path, monkeypatch, capsys, tool):
    pytest.importorskip("pyarrow") if "parquet" in tool else None
    monkeypatch.chdir(tmp_path)
    copied(tool, tmp_path / "data")
    assert main(["init", "data", "--out", "c.yaml"]) == 0, capsys.readouterr().err
    assert yaml.safe_load(Path("c.yaml").read_text())["input"]["labels"]["format"] == TRUTH[tool]["format"]
    ingest(load_config("c.yaml"), tmp_path / "out", quiet=True)
    check_stored(f"genuine: {tool}", tmp_path / "out")
    found = {key.rpartition("/")[2]: example for key, example in examples(tmp_path / "out").items()}
    assert sorted(found) == sorted(TRUTH[tool]["truth"])
    for name, truth in TRUTH[tool]["truth"].items():
        example = found[name]
        height, width = example["image/height"][0], example["image/width"][0]
        for label, mask in truth.get("masks", {}).items():
            assert packed(example[f"image/segmentation/{label}/rle"], height, width) == mask, label
        if "masks" not in truth:
            labels = [text.decode() for text in example["image/object/class/text"]]
            sides = zip(("xmin", "ymin", "xmax", "ymax"), [width, height] * 2, strict=True)
            edges = np.stack([np.array(example[f"image/object/bbox/{edge}"]) * side for edge, side in sides], axis=1)
            assert labels == [box[0] for box in truth["boxes"]]
            np.testing.assert_allclose(edges, [box[1:] for box in truth["boxes"]], atol=0.01)
