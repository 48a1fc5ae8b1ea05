"""README does as it shows: its demonstration, its configurations, its commands, its Python, its TFX pipeline."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import own_models
import pytest
import yaml
from PIL import Image

CHECKOUT = Path(__file__).parents[2]
README = (CHECKOUT / "README.md").read_text(encoding="utf-8")
GUARANTEES = (CHECKOUT / "docs/trust/guarantees.md").read_text(encoding="utf-8")


# The demonstration trains a whole model for masks, whose graph takes longer to trace than these take to train.
SMALL_MODELS = {
    "segmentation": {"epochs": 1, "model": "own_models:normed"},
    "classification": {"epochs": 1, "base_filters": 4},
}


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def shell(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    # A make around the tests must not reach the one inside.
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    environment["PATH"] = f"{Path(sys.executable).parent}:{environment['PATH']}"
    done = subprocess.run(
        ["bash", "-c", command], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    print(done.stdout, done.stderr)
    return done


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the README's configurations, and photographs, flowers and tables for them."""
    folder = tmp_path_factory.mktemp("project")
    shutil.copy(own_models.__file__, folder)
    for text in blocks("yaml"):
        name = re.match(r"# (\S+\.yaml)\n", text)
        assert name, "the first line of a configuration in the README is a comment with its name"
        (folder / name[1]).write_text(text)
    rng = np.random.default_rng(2)

    def photograph(file: Path) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(rng.integers(0, 256, (60, 80, 3), np.uint8)).save(file, quality=80)

    rows = ["ImageId,ClassId,EncodedPixels"]
    for i in range(30):
        photograph(folder / f"photos/{i:02}.jpg")
        rows.append(f"{i:02}.jpg,{i % 3 + 1},{i * 60 + 1} 600")
        photograph(folder / f"flowers/{('daisy', 'rose')[i % 2]}/{i:02}.jpg")
    (folder / "train.csv").write_text("\n".join(rows) + "\n")
    return folder


def test_its_commands_and_its_python(project: Path) -> None:
    commands = [line.split("  #")[0] for text in blocks("sh") for line in text.splitlines()]
    commands += re.findall(r"`(shardwright run [^`]+)`", README)
    ours = [command for command in commands if "shardwright" in command]
    assert len(ours) >= 3
    for command in ours:
        for file in project.glob("*.yaml"):
            config = yaml.safe_load(file.read_text(encoding="utf-8"))
            config["trainer"] = {**config.get("trainer", {}), **SMALL_MODELS[config["task"]]}
            file.write_text(yaml.safe_dump(config), encoding="utf-8")
        done = shell(command, project)
        # Noise teaches nothing: the models need not be blessed, everything else must be right.
        blessed = re.search(r"^model +(NOT )?BLESSED", done.stdout, re.MULTILINE)
        assert done.returncode == (1 if blessed and blessed[1] else 0), done.stderr
        assert " run " not in command or blessed
    (snippet,) = blocks("python")
    done = subprocess.run([sys.executable, "-c", snippet], cwd=project, capture_output=True, text=True, check=False)
    assert "(16, 60, 80, 3) (16, 60, 80, 3)" in done.stdout, done.stderr
    (pipeline,) = blocks("py")
    printing = "print([type(one).__name__ for one in transform.upstream_nodes])"
    done = subprocess.run(
        [sys.executable, "-c", f"{pipeline}\n{printing}"], cwd=project, capture_output=True, text=True, check=False
    )
    assert "DataGate" in done.stdout, done.stderr


def checkout(folder: Path, changes: dict[str, dict[str, str]]) -> None:
    """Makes a new checkout, whose set-up is done, with other texts in some of its files."""
    (folder / ".venv").mkdir()
    (folder / ".venv/bin").symlink_to(Path(sys.executable).parent)
    (folder / "tools").symlink_to(CHECKOUT / "tools")
    for name in ("Makefile", "pipelines/configs/demo.yaml"):
        text = (CHECKOUT / name).read_text(encoding="utf-8")
        for old, new in changes.get(name, {}).items():
            assert text.count(old) == 1, old
            text = text.replace(old, new)
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")


# The same commands, model and number of epochs as in the whole demonstration, with a tenth of its pixels or less.
SMALL = {
    "Makefile": {"--count 200 --height 350 --width 525": "--count 200 --height 100 --width 150"},
    "pipelines/configs/demo.yaml": {"size: [176, 264]": "size: [64, 96]"},
}


@pytest.mark.parametrize(
    ("changes", "images", "least"),
    [
        pytest.param(SMALL, 200, 0.7, id="small", marks=pytest.mark.slow),
        pytest.param({}, 200, 0.75, id="whole", marks=pytest.mark.soak),
    ],
)
def test_the_demonstration_ends_in_a_good_model_that_is_pushed(
    tmp_path: Path, changes: dict[str, dict[str, str]], images: int, least: float
) -> None:
    assert any("make demo" in block for block in blocks("sh"))
    checkout(tmp_path, changes)
    done = shell("make --old-file=setup demo", tmp_path)
    assert done.returncode == 0, done.stderr
    assert re.search(rf"^images +{images} in, {images} written, 0 rejected$", done.stdout, re.MULTILINE)
    assert re.search(r"^model +BLESSED and pushed$", done.stdout, re.MULTILINE)
    dice = re.search(r"^mean_dice +([0-9.]+)", done.stdout, re.MULTILINE)
    assert dice
    assert float(dice[1]) >= least


def test_every_test_it_names_exists() -> None:
    named = re.findall(r"`((?:tests|tools)/[^`]+)`", GUARANTEES)
    assert len(named) >= 10
    for path in named:
        assert (CHECKOUT / path).exists(), path
