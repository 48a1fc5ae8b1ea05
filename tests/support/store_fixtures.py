"""The fixture of the object stores, for the folders of tests that use it."""

import pytest
from object_stores import running_stores


@pytest.fixture(scope="module")
def _running_stores():
    with running_stores() as stores:
        yield stores


@pytest.fixture
def stores(_running_stores, tmp_path, monkeypatch):
    """Emulators of both object stores, and the clients led to them; working folders lie in the test's own."""
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    monkeypatch.setattr("tempfile.tempdir", None)
    _running_stores.meddle = None
    _running_stores.requests.clear()
    _running_stores.pauses.clear()
    yield _running_stores
    _running_stores.meddle = None
