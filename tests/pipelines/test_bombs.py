"""Input that is made to use up memory and time, for every format that the code knows: small bombs.

`tests/soak/test_full_bombs.py` has those of megabytes.
"""

import ast
import errno
import io
import types
from collections import namedtuple
from pathlib import Path

import pytest
from bombs import BOMBS
from costs import check_bomb

from shardwright.errors import UsageError
from shardwright.formats import array_records, record_listing
from shardwright.images.decode import FORMATS
from shardwright.label_formats import FORMATS as LABEL_FORMATS
from shardwright.label_formats import RECORDS
from shardwright.storage import scratch
from shardwright.storage.scratch import scratch_file, scratch_folder
from shardwright.untrusted.budget import OverBudget

ROOT = Path(__file__).parents[2]
# What no file belongs to that is read.
WITHOUT_FILES = {"file_name", "none"}
# Its reader is a package that is on neither stack: `test_array_record_has_a_budget`.
NOT_INSTALLED = {"ArrayRecord"}
# What the small ones may take. The tree before the budgets took up to a gigabyte, and minutes.
MEMORY, SECONDS = 512 << 20, 15
# A bomb of each format in every run of the tests, all of them in the slow ones.
FIRST = {found.format: name for name, found in reversed(BOMBS.items())}.values()
Usage = namedtuple("Usage", "free")  # Of what `shutil.disk_usage` returns.
# Read texts that the project wrote, or that were read within the budget before.
OWN_JSON = {
    *(
        "masks/coco_segmentation.py",
        "masks/drawn.py",
        "formats/labelme.py",
        "formats/object_values.py",
        "formats/objects.py",
    ),
    *("staging/commit.py", "staging/shard_writer.py", "staging/staging.py"),
    *("ingest/recipe.py", "ingest/known_files.py", "ingest/input_records.py", "ingest/probe.py", "ingest/tasks.py"),
    *("edit/export_dataset.py", "edit/export_containers.py", "dataset/ledger.py", "loader/profile.py"),
    *("loader/error_context.py", "untrusted/json_text.py"),
}


def known_formats():
    """The formats of the code."""
    containers = set(record_listing.MEANING)
    annotations = {row.name for row in LABEL_FORMATS if row.reads != RECORDS} - WITHOUT_FILES
    return {*annotations, *containers, *FORMATS, "PNG", "JPEG", "TFRecord", "YAML", "dataset"} - NOT_INSTALLED


def test_every_format_has_a_bomb():
    missing = known_formats() - {found.format for found in BOMBS.values()}
    assert not missing, f"formats without a bomb in tests/support/bombs_in_*.py: {sorted(missing)}"


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in FIRST else pytest.mark.slow) for name in BOMBS]
)
def test_a_small_bomb_ends_in_a_message(tmp_path, name):
    check_bomb(name, BOMBS[name].small, tmp_path / "b", MEMORY, SECONDS, every=name not in FIRST)


def test_json_from_outside_is_read_within_the_budget():
    """A new place that calls `json.loads` itself is found here."""
    found = set()
    for file in sorted((ROOT / "shardwright").rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and ast.unparse(node) in ("json.load", "json.loads"):
                found.add(file.relative_to(ROOT / "shardwright").as_posix())
    assert found == OWN_JSON, "read it by `untrusted.parse_untrusted_json`, or say here whose text it is"


@pytest.mark.parametrize("free", [0, 1 << 20])
def test_a_disk_without_space_is_named_before_anything_is_unpacked(monkeypatch, tmp_path, free):
    monkeypatch.setattr(scratch.tempfile, "gettempdir", lambda: str(tmp_path))
    monkeypatch.setattr(scratch.shutil, "disk_usage", lambda folder: Usage(free))
    with pytest.raises(UsageError, match=f"{tmp_path}: no space for unpacked files: {free:,} bytes are free"):
        scratch_folder(2 << 20)


def test_a_disk_that_fills_up_is_named(monkeypatch, tmp_path):
    monkeypatch.setattr(scratch.shutil, "disk_usage", lambda folder: Usage(0))
    with (
        pytest.raises(UsageError, match=f"{tmp_path}: no space for unpacked files"),
        scratch_file(str(tmp_path / "a"), lambda size: None) as file,
    ):
        file.write(bytes(65 << 20))


def test_a_failed_write_names_the_folder(monkeypatch, tmp_path):
    def full(file, data):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(scratch._SparingFile, "write", full)
    with (
        pytest.raises(UsageError, match=f"{tmp_path}: no space for unpacked files: No space left on device"),
        scratch_file(str(tmp_path / "a"), lambda size: None) as file,
    ):
        file.write(bytes(1 << 20))


def test_array_record_has_a_budget(monkeypatch, tmp_path):
    class Reader:
        def __init__(self, path):
            assert path == str(tmp_path / "a.array_record")

        def num_records(self):
            return 10_000_000

    module = types.SimpleNamespace(ArrayRecordReader=Reader)
    monkeypatch.setattr(array_records, "import_module", lambda name: module)
    (tmp_path / "a.array_record").write_bytes(bytes(100))
    with pytest.raises(OverBudget, match="more than 1,000,000 records in 100 bytes"):
        array_records.write_records(str(tmp_path / "a.array_record"), "", io.BytesIO(), "a")
