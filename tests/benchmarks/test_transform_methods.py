"""The notebook that the transform is compared with, in a separate Python."""

import sys
from pathlib import Path

import pytest

from benchmarks.transform import notebook
from shardwright.errors import DatasetError, UsageError

pytestmark = pytest.mark.slow

# Notes what it is asked for; a file that cannot be read has no pixels, as with OpenCV.
_CV2 = """
import os
__version__ = "9.9"
IMWRITE_JPEG_QUALITY = 1
setNumThreads = int
def imread(path):
    return open(path).read() if os.path.exists(path) else None
def resize(image, size):
    return (image[:], size)
def imencode(kind, image, options):
    print(kind, image, options, file=open(os.environ["NOTES"], "a"))
"""


def test_another_python_does_what_the_notebook_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cv2.py").write_text(_CV2)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("NOTES", str(tmp_path / "notes"))
    paths = [str(tmp_path / name) for name in ("a", "b")]
    for path in paths:
        Path(path).write_text(Path(path).name)
    with notebook(sys.executable) as (method, name):
        assert name == "cv2 9.9, one thread"
        method(paths, (2, 3))
        assert (tmp_path / "notes").read_text() == ".jpg ('a', (3, 2)) [1, 90]\n.jpg ('b', (3, 2)) [1, 90]\n"
        method(paths[:1], (4, 5))
        assert (tmp_path / "notes").read_text().endswith(".jpg ('a', (5, 4)) [1, 90]\n")
        with pytest.raises(DatasetError, match="cv2 could not read the photographs, e.g. nowhere"):
            method(["nowhere"], (2, 3))


def test_a_python_without_cv2_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cv2.py").write_text("raise ImportError\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(UsageError, match="cannot import cv2"), notebook(sys.executable):
        pass
    with (
        pytest.raises(UsageError, match=r"no-python: cannot be run \(No such file"),
        notebook(str(tmp_path / "no-python")),
    ):
        pass
