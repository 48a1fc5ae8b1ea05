"""The choice of cases for the other stack (`tests/support/first_cases.py`)."""

import subprocess
import sys
from pathlib import Path

FILE = """
import pytest

@pytest.fixture(params=["local", "s3"])
def store(request):
    return request.param

@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize(("kind", "name"), [("a", "b"), ("c", "d")])
def test_cases(store, kind, name, size): pass

def test_once(): pass

@pytest.mark.slow
@pytest.mark.two_stacks
@pytest.mark.parametrize("size", [1, 2])
def test_pipeline(size): pass

@pytest.mark.slow
def test_slow(): pass

@pytest.mark.one_stack
def test_long(): pass
"""
# The part of `tests/conftest.py` that chooses, without what it imports.
CONFTEST = """
import first_cases

def pytest_collection_modifyitems(config, items):
    items[:], rest = first_cases.split(items)
    config.hook.pytest_deselected(items=rest)
"""


def collected(root: Path, folder: str) -> list[str]:
    """The tests of a file in `folder` that the tier of the other stack chooses."""
    place = root / folder
    place.mkdir(parents=True)
    (place / "test_one.py").write_text(FILE, encoding="utf-8")
    (root / "tests" / "conftest.py").write_text(CONFTEST, encoding="utf-8")
    markers = "".join(f"\n  {name}" for name in ("slow", "two_stacks", "one_stack"))
    support = Path(__file__).with_name("support")
    (root / "pytest.ini").write_text(f"[pytest]\npythonpath = {support}\nmarkers ={markers}\n", encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, "-m", "not slow or two_stacks", "-o", "addopts=--strict-markers"],
        cwd=root, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode in (0, 5), done.stdout + done.stderr
    return [line.partition("::")[2] for line in done.stdout.splitlines() if "::" in line]


def test_the_other_stack_runs_the_first_case_of_a_test_with_each_parameter_of_its_fixtures(tmp_path: Path) -> None:
    chosen = collected(tmp_path, "tests/shardwright/ingest")
    assert chosen == ["test_cases[local-a-b-1]", "test_cases[s3-a-b-1]", "test_once", "test_pipeline[1]"]


def test_it_leaves_out_what_no_package_decides(tmp_path: Path) -> None:
    assert collected(tmp_path, "tests/shardwright/lineage") == []


def test_it_runs_all_cases_where_values_go_to_tensorflow(tmp_path: Path) -> None:
    chosen = collected(tmp_path, "tests/components")
    assert len([name for name in chosen if name.startswith("test_cases")]) == 12
    assert chosen[12:] == ["test_once", "test_pipeline[1]", "test_pipeline[2]"]
