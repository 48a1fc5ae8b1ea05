"""What `run` does around the pipeline: one run a root, schemas kept by content, errors of ours found behind Beam's."""

from pathlib import Path

import pytest

from shardwright.errors import CheckFailed, UsageError
from shardwright_pipelines import local
from shardwright_pipelines.run_lock import only_run_in


def test_only_one_run_in_a_root(tmp_path: Path) -> None:
    with (
        only_run_in(tmp_path),
        pytest.raises(UsageError, match="another run is at work here"),
        only_run_in(tmp_path),
    ):
        pass
    with only_run_in(tmp_path):
        pass


def test_schemas_are_kept_under_their_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    first, second = local._keep_schema("a"), local._keep_schema("b")
    assert first != second
    assert first == local._keep_schema("a")
    assert Path(first).read_text() == "a"
    assert not Path(first).is_absolute()


def test_an_error_of_ours_is_found_behind_another() -> None:
    ours = CheckFailed("3 of 10 images were rejected")
    wrapped = RuntimeError("Traceback ...\nCheckFailed: 3 of 10\n[while running 'Map']")
    wrapped.__cause__ = ours
    assert local._ours(wrapped) is ours
    assert local._last_line(wrapped) == "CheckFailed: 3 of 10"
    assert local._ours(ValueError("other")) is None
    assert local._last_line(ValueError()) == "(no message)"
