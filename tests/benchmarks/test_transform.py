"""The benchmark of the transform, with a notebook that takes no time, and its worker with a stand-in of OpenCV."""

import os
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from benchmarks import transform
from benchmarks.figures import AT_LEAST
from shardwright.errors import DatasetError

# Notes what it is asked for; a file that cannot be read has no pixels, as with OpenCV.
_CV2 = """
import os
IMWRITE_JPEG_QUALITY = 1
setNumThreads = int
def imread(path):
    return open(path).read() if os.path.exists(path) else None
def resize(image, size):
    return (image[:], size)
def imencode(kind, image, options):
    print(kind, image, options, file=open(os.environ["NOTES"], "a"))
"""


@pytest.mark.slow
@pytest.mark.parametrize("installed", [True, False])
def test_every_figure_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, installed: bool) -> None:
    called: list[str] = []

    def resize(paths, size):
        assert size == (128 // transform.RATIO, 192 // transform.RATIO)
        called.append(f"notebook {len(paths)}")

    @contextmanager
    def notebook(folder):
        yield resize if installed else None

    monkeypatch.setattr(transform, "notebook", notebook)
    figures = transform.transform_figures(tmp_path, 3, (128, 192), repeats=2)
    assert called == ["notebook 3"] * 2 * installed
    assert [(figure.unit, figure.relation, figure.target) for figure in figures] == [
        ("x", AT_LEAST, 2.8), ("x", AT_LEAST, 0.75), ("1/s", "", None)
    ]  # fmt: skip
    assert [figure.value is not None for figure in figures] == [installed, True, True]
    assert figures[2].note.startswith("3 photographs of 128x192")


@pytest.mark.slow
def test_another_python_does_what_the_notebook_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cv2.py").write_text(_CV2)
    monkeypatch.setenv("PYTHONPATH", os.fspath(tmp_path))
    monkeypatch.setenv("NOTES", str(tmp_path / "notes"))
    monkeypatch.setattr(transform, "environment", lambda folder, packages: (sys.executable, ""))
    paths = [str(tmp_path / name) for name in ("a", "b")]
    for path in paths:
        Path(path).write_text(Path(path).name)
    with transform.notebook(tmp_path) as resize:
        resize(paths, (2, 3))
        assert (tmp_path / "notes").read_text() == ".jpg ('a', (3, 2)) [1, 90]\n.jpg ('b', (3, 2)) [1, 90]\n"
        with pytest.raises(DatasetError, match="cv2 could not read the photographs, e.g. nowhere"):
            resize(["nowhere"], (2, 3))
