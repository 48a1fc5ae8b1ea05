"""The notebooks in examples/ run from top to bottom, show what they promise, and lie in git without outputs."""

import os
import re
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOKS = sorted((Path(__file__).parents[2] / "examples").glob("*.ipynb"))
MOST_BYTES = 200_000


@pytest.fixture(params=NOTEBOOKS, ids=lambda path: path.name)
def notebook(request):
    found = nbformat.read(request.param, as_version=4)
    nbformat.validate(found)
    return found


def test_there_are_two():
    assert [path.name for path in NOTEBOOKS] == ["clouds.ipynb", "kaggle.ipynb"]


def test_it_lies_in_git_without_outputs_or_places(notebook):
    assert set(notebook.metadata) == {"kernelspec", "language_info"}
    for number, cell in enumerate(notebook.cells):
        assert cell.id == f"cell-{number:02d}"
        assert not cell.metadata
        assert "/home" not in cell.source
        assert not [word for word in cell.source.replace('"', " ").split() if word.startswith(("/", "~"))]
        if cell.cell_type == "code":
            assert cell.outputs == []
            assert cell.execution_count is None


def outputs_of(name, tmp_path, monkeypatch):
    """Runs a notebook in an empty folder; returns the outputs of its cells."""
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / "runtime"))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    notebook = nbformat.read(next(path for path in NOTEBOOKS if path.name == name), as_version=4)
    client = NotebookClient(notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": tmp_path}})
    client.execute()
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    assert not [output for output in outputs if output.output_type == "error"]
    return outputs


def shown_by(outputs):
    rich = [output.data["text/html"] for output in outputs if "text/html" in output.get("data", {})]
    for page in rich:
        assert len(page) < MOST_BYTES
        assert "<script" not in page
    return rich


def values_of(outputs):
    # What progress has shown is empty in the end.
    return [text for output in outputs if (text := output.get("data", {}).get("text/plain"))]


@pytest.mark.slow
@pytest.mark.two_stacks
def test_the_competition_ends_in_a_submission(tmp_path, monkeypatch):
    outputs = outputs_of("kaggle.ipynb", tmp_path, monkeypatch)
    rich, values = shown_by(outputs), values_of(outputs)
    assert "60 images for segmentation" in rich[0]
    assert [page.count("<img") for page in rich[1:]] == [3, 4, 4]
    assert values[0] == "['sample_submission.csv', 'test_images', 'train.csv', 'train_images']"
    assert values[-2:] == ["(12, 48, 'clouds')", "True"]
    (trained,) = [value for value in values if value.startswith("TrainedModel")]
    assert re.search(r"mean_dice 0\.\d+.*; of \d+ images of test", trained)
    # Nothing of TensorFlow's start is among what people read.
    streams = "".join(output.text for output in outputs if output.output_type == "stream")
    assert "epoch 4/4" in streams
    assert "factory" not in streams


@pytest.mark.slow
@pytest.mark.two_stacks
def test_the_tour_shows_what_it_promises(tmp_path, monkeypatch):
    outputs = outputs_of("clouds.ipynb", tmp_path, monkeypatch)
    rich = shown_by(outputs)
    assert len(rich) == 6
    assert "48 images for segmentation" in rich[0]
    assert rich[1].count("<img") == 3
    assert "Nothing has changed" in rich[2]
    assert [page.count("<img") for page in rich[3:]] == [4, 4, 4]
    (losses,) = [value for value in values_of(outputs) if value.startswith("[0")]
    first, *_, last = (float(loss) for loss in losses.strip("[]").split(","))
    assert last < first
    predicted, true = (re.findall(r"(?<=base64,)[^\"]*", page) for page in rich[4:])
    assert not set(predicted) & set(true)
    assert (tmp_path / "clouds.html").stat().st_size < 5_000_000
    assert (tmp_path / "clouds-dataset" / "manifest.json").is_file()
