"""The benchmark of the transform, with methods that take no time."""

from pathlib import Path

from benchmarks.figures import AT_LEAST
from benchmarks.transform import RATIO, Methods, transform_figures
from shardwright.dataset.reader import ImageDataset


def test_every_figure_is_measured(tmp_path: Path) -> None:
    called: list[str] = []

    def notebook(paths, size):
        assert size == (128 // RATIO, 192 // RATIO)
        assert all(Path(path).is_file() for path in paths)
        called.append(f"notebook {len(paths)}")

    def pixels_only(encoded, ratio, threads):
        assert all(data.startswith(b"\xff\xd8\xff") for data in encoded)
        called.append(f"pixels {len(encoded)} at 1/{ratio} by {threads}")

    def shards(config, dataset, out):
        assert config.transform.size == (128 // RATIO, 192 // RATIO)
        assert not Path(out).exists()
        called.append("shards")
        return ImageDataset.open(dataset).num_records("train")

    methods = Methods(notebook, "a notebook", pixels_only, shards, lambda *_: called.append("transform"))
    figures = transform_figures(tmp_path, 3, methods, size=(128, 192), repeats=2)
    assert called == [*["shards", "notebook 3", "pixels 3 at 1/4 by 2"] * 2, "transform"]
    assert [(figure.unit, figure.relation, figure.target) for figure in figures] == [
        ("x", AT_LEAST, 2.8), ("x", AT_LEAST, 0.75), ("1/s", "", None), ("s", "", None)
    ]  # fmt: skip
    assert "a notebook" in figures[0].note
    assert figures[2].note.startswith("3 photographs of 128x192")
