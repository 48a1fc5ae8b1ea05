"""Fixtures for all tests."""

import os
from pathlib import Path

import pytest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real data; tests that need it are skipped without it."""
    root = Path(os.environ.get("SHARDWRIGHT_TEST_DATA", Path(__file__).parents[1] / "../shared/data")).resolve()
    if not root.is_dir():
        pytest.skip(f"no real data at SHARDWRIGHT_TEST_DATA ({root})")
    return root
