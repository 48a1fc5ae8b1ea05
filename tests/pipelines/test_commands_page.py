"""The how-to pages of single commands: every command does what the pages show, one page after the other."""

import re
import shlex
import textwrap
from pathlib import Path

import numpy as np
import pytest
import yaml
from descent import Months, record_months

from shardwright.pipelines.cli import main
from shardwright.sample import sample_files as write

# tools/bare.sh runs the commands of the base installation on both stacks.
pytestmark = pytest.mark.one_stack
DOCS = Path(__file__).parents[2] / "docs"
# A page uses what the pages before it have made.
PAGES = (
    *("how-to/configure", "how-to/inspect", "how-to/export", "how-to/change-a-dataset", "how-to/compare"),
    *("deploy/local", "how-to/ingest"),
)
TEXT = "\n".join((DOCS / f"{name}.md").read_text(encoding="utf-8") for name in PAGES)
CHECKS = {"diff": 1}
DAY_TWO = {
    *("verify", "inspect", "get", "export", "diff", "relabel", "reshard", "merge", "retry-rejects", "subset", "stats"),
    *("clean", "forget"),
}


def calls(page=TEXT):
    """Command line and what it prints, in the order of the pages."""
    for block in map(textwrap.dedent, re.findall(r"^ *```console\n(.*?)^ *```", page, re.DOTALL | re.MULTILINE)):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            yield command, output


def pattern(line):
    """A line of dots alone stands for any number of lines."""
    return "(?s:.*?)" if line == "…" else re.escape(line).replace("…", ".*")


def do_all(commands, capsys):
    """Runs commands and compares what they print; returns their number."""
    count = 0
    for command, output in commands:
        program, *arguments = shlex.split(command)
        assert program == "shardwright"
        assert main(arguments) == CHECKS.get(arguments[0], 0), command
        found = capsys.readouterr().out
        if output.strip() != "…":
            assert re.fullmatch("\n".join(map(pattern, output.rstrip("\n").split("\n"))), found.rstrip("\n")), found
        count += 1
    return count


def save_files(page, folder):
    """Saves the configurations of a page under their names, and runs the programs that draw images."""
    for block in map(textwrap.dedent, re.findall(r"^ *```yaml\n(.*?)^ *```", page, re.DOTALL | re.MULTILINE)):
        (folder / f"{yaml.safe_load(block)['name']}.yaml").write_text(block)
    for block in map(textwrap.dedent, re.findall(r"^ *```python\n( *# draw.*?)^ *```", page, re.DOTALL | re.MULTILINE)):
        exec(block, {})  # the page's own program


def noise(seed, index, masks):
    """A picture that no other one resembles, brighter where a mask is."""
    coarse = np.random.default_rng((seed, index)).integers(0, 100, (9, 9, 3), np.uint8)
    height, width = masks[0].shape
    picture = coarse[np.arange(height)[:, None] * 9 // height, np.arange(width) * 9 // width]
    return picture + np.uint8(100) * np.max(masks, axis=0)[..., None]


@pytest.mark.parametrize(
    ("name", "least"),
    [
        ("get-started/first-dataset", 4),
        ("tutorials/kaggle-segmentation", 4),
        ("tutorials/image-folders", 1),
        ("tutorials/monthly-retraining", 2),
    ],
)
def test_the_first_steps_do_what_the_page_shows(name, least, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    # The pictures of `sample` take most of the time of these pages; tests/shardwright/sample has tests of them.
    monkeypatch.setattr(write, "draw_picture", noise)
    page = (DOCS / f"{name}.md").read_text(encoding="utf-8")
    save_files(page, tmp_path)
    assert do_all(calls(page), capsys) >= least


def test_every_command_does_what_the_pages_show(tmp_path, small_dataset, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    record_months(Months(tmp_path / "shardwright-runs/clouds", small_dataset))
    (tmp_path / "clouds.yaml").write_text(textwrap.dedent(re.search(r"```yaml\n(.*?)```", TEXT, re.DOTALL)[1]))
    (tmp_path / "keys.txt").write_text("2316a329.jpg\n")
    assert do_all(calls(), capsys) >= 12
    named = {shlex.split(command)[1] for command, _ in calls()}
    assert named >= DAY_TWO, DAY_TWO - named
