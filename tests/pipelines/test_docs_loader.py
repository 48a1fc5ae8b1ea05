"""The page of the loader: its Python gives the output that is shown."""

from pathlib import Path

from pages import printed_by

from shardwright.config.loader import AUGMENTATIONS

PAGE = Path(__file__).parents[2] / "docs/how-to/loader.md"
PRINTED = """\
(4, 24, 36, 3) <dtype: 'float32'> (4, 24, 36, 4) <dtype: 'uint8'>
2 steps an epoch
<dtype: 'uint8'> (4, 24, 36, 1) -> (4, 24, 36, 4)
True
"""


def test_the_python_on_the_page(small_dataset, tmp_path):
    folder = small_dataset(tmp_path, classes=("Fish", "Flower", "Gravel", "Sugar"), counts={"train": [5, 3]})
    folder.rename(tmp_path / "ds")
    assert printed_by(PAGE, tmp_path) == PRINTED


def test_every_augmentation_is_on_the_page():
    page = PAGE.read_text(encoding="utf-8")
    for name in AUGMENTATIONS:
        assert f"`{name}`" in page
