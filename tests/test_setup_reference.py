"""The generated pages of the reference: they are those of the code, and complete."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from reference_pages import DATASET_FILES, EXIT_CODES, FEATURES, FOLDER, PAGES, VARIABLES

from shardwright import errors
from shardwright.dataset.features import COMMON_FEATURES

ROOT = Path(__file__).parents[1]
PROGRAM = """
import json, sys
from reference_pages import PAGES
print(json.dumps({name: page() for name, page in PAGES.items()}))
"""


@pytest.fixture(scope="module")
def made() -> dict[str, str]:
    """All pages, from a process of their own: the one of the tests may have other functions in place of ours."""
    path = os.pathsep.join([str(ROOT), str(ROOT / "tests/support")])
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_that_of_the_code(name: str, made: dict[str, str]) -> None:
    file = FOLDER / f"{name}.md"
    if os.environ.get("SHARDWRIGHT_RENEW_GOLDEN"):
        file.write_text(made[name], encoding="utf-8")
    assert file.read_text(encoding="utf-8") == made[name], "renew it with SHARDWRIGHT_RENEW_GOLDEN=1"


def test_every_variable_of_the_code_is_listed() -> None:
    read = set()
    for folder in ("shardwright", "components", "pipelines"):
        for file in (ROOT / folder).rglob("*.py"):
            read |= set(re.findall(r'"(SHARDWRIGHT_[A-Z_]*[A-Z])"', file.read_text(encoding="utf-8")))
    assert read == VARIABLES.keys()


def test_every_common_feature_is_described() -> None:
    assert FEATURES.keys() == COMMON_FEATURES.keys()


def test_exit_codes_are_those_of_the_errors() -> None:
    codes = {str(kind.exit_code) for kind in vars(errors).values() if hasattr(kind, "exit_code")}
    assert codes <= EXIT_CODES.keys()


def test_the_files_of_a_dataset_are_listed_and_its_records_are_parsed(small_dataset, tmp_path, capsys) -> None:
    folder = small_dataset(tmp_path, classes=("Fish", "Sugar"), counts={"train": [3]})
    folder.rename(tmp_path / "ds")
    listed = {re.sub("SPLIT", "[a-z]+", re.sub("N+", "[0-9]+", name)) for name in DATASET_FILES}
    for file in (path for path in (tmp_path / "ds").rglob("*") if path.is_file()):
        name = file.relative_to(tmp_path / "ds").as_posix()
        assert any(re.fullmatch(pattern, name) for pattern in listed), name
    (snippet,) = re.findall(r"```python\n(.*?)```", (FOLDER / "tfrecord-features.md").read_text("utf-8"), re.DOTALL)
    import tensorflow as tf

    from shardwright.loader import load

    found = []
    names = {"print": lambda *shapes: found.append(shapes)}
    exec(snippet.replace("ds/Split", f"{tmp_path}/ds/Split"), names)  # the page's own program
    images, masks = next(iter(load(tmp_path / "ds", "train", batch_size=3, normalize="none", dtype="uint8")))
    assert found == [(images.shape[1:], masks.shape[1:3])]
    records = tf.data.TFRecordDataset(names["shards"])
    parsed = sorted((names["parse"](record)[1].numpy().tolist()) for record in records)
    assert parsed == sorted(masks[..., 0].numpy().tolist())
