"""Commands print a single image in the singular: `1 image`, not `1 images`."""

import re
import shlex

import numpy as np
import pytest
from PIL import Image

from shardwright.pipelines.cli import main

# A number of things that is one, and their plural.
WRONG = re.compile(r"(?<![\d.,/\w-])1[ \u202f](?!class\b|process\b|is\b|has\b|was\b|less\b|across\b)[a-z]+s\b")


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "photos" / "daisy").mkdir(parents=True)
    Image.fromarray(np.arange(32 * 48 * 3, dtype=np.uint8).reshape(32, 48, 3)).save("photos/daisy/1.png")
    return tmp_path


def test_one_image_is_not_images(here, capsys):
    shown = []
    for line in (
        "init photos --out c.yaml --set 'split.ratios={train: 1.0}' --set input.labels.format=class_folders",
        "validate c.yaml --data",
        "ingest c.yaml --out ds",
        "verify ds",
        "stats ds",
        "inspect ds",
        "inspect ds/Split-train/data-00000-of-00001.tfrecord",
        "report ds --out ds.html",
        "card ds",
        "card ds --croissant",
        "lineage ds",
        "export ds --out files",
        "subset ds --count 1 --out sub",
        "reshard ds --out again",
        "diff ds sub --html diff.html",
    ):
        assert main(shlex.split(line)) in (0, 1), line
        out = capsys.readouterr()
        assert out.out, line
        shown.append(f"{line}\n{out.out}{out.err}")
    shown += [re.sub("<[^>]*>", " ", (here / name).read_text(encoding="utf-8")) for name in ("ds.html", "diff.html")]
    assert any("1 image" in text for text in shown)
    assert not [
        (text.splitlines()[0][:60], WRONG.findall(text), WRONG.search(text)[0]) for text in shown if WRONG.search(text)
    ]
