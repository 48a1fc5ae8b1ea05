"""The tutorials on this machine, command by command to their last line, in a shell as a reader has it.

Those of Vertex AI and GKE are in tests/pipelines/test_cloud_pages.py, that of a TFX pipeline in test_own_pipeline.py.
"""

import csv
import os
import re
import shlex
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import yaml

TUTORIALS = Path(__file__).parents[2] / "docs/tutorials"
# As long a training as the page has would show nothing more.
SHORT = " --set trainer.epochs=1"
BLOCK = re.compile(r"^ *```(\w+)\n(.*?)^ *```", re.DOTALL | re.MULTILINE)


def commands_of(page, folder):
    """Saves the files of a page, and returns its commands in their order."""
    commands = []
    for kind, text in BLOCK.findall(page):
        block = textwrap.dedent(text)
        if kind == "yaml":
            (folder / f"{yaml.safe_load(block)['name']}.yaml").write_text(block)
        elif kind == "python":
            (folder / "draw.py").write_text(block)
            commands.append("python draw.py")
        elif kind == "console":
            commands += [line[2:] for line in block.splitlines() if line.startswith("$ ")]
        elif kind == "bash":
            commands += block.splitlines()
    return commands


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "fails", "last"),
    [
        # Four test images say nothing about a model, as the page has it.
        ("kaggle-segmentation", "shardwright run", "submission.csv: 8 images, 32 rows in the layout of clouds"),
        # A single epoch is no model that deserves a blessing.
        ("image-folders", "shardwright run", None),
    ],
)
def test_it_is_done_to_its_last_line(name, fails, last, tmp_path):
    page = (TUTORIALS / f"{name}.md").read_text(encoding="utf-8")
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    commands = commands_of(page, tmp_path)
    assert sum(command.startswith("shardwright ") for command in commands) >= 3
    for command in commands:
        short = SHORT if command.startswith("shardwright run") else ""
        if name == "image-folders" and command.startswith("shardwright predict"):
            command = f"{command.replace('/pushed', '')} --unblessed"
        done = subprocess.run(
            ["bash", "-ec", command + short], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        expected = 1 if command.startswith(fails) else 0
        assert done.returncode == expected, f"{command}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
    if last is not None:
        assert last in done.stdout
        assert last in page
        with (tmp_path / "submission.csv").open() as made, (tmp_path / "data/sample_submission.csv").open() as asked:
            names = [sorted(row["Image_Label"] for row in csv.DictReader(file)) for file in (made, asked)]
        assert names[0] == names[1]
        assert len(names[0]) == 32
    else:
        assert len((tmp_path / shlex.split(commands[-1])[-1]).read_text().splitlines()) > 50
