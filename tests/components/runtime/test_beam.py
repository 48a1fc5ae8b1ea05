"""Beam's options: workers have Shardwright, so TFX builds no package of itself."""

from __future__ import annotations

from pathlib import Path

import pytest
from tfx.utils import dependency_utils

from shardwright.components.runtime.beam import beam_args


@pytest.fixture(autouse=True)
def packing_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def pack() -> str:
        raise AssertionError("TFX packs itself up")

    monkeypatch.setattr(dependency_utils, "build_ephemeral_package", pack)


@pytest.mark.parametrize(
    "options",
    [
        ["--direct_num_workers=2", "--direct_running_mode=multi_processing"],
        ["--runner=DirectRunner", "--direct_num_workers=2"],
        ["--runner=FnApiRunner"],
        ["--runner=DataflowRunner", "--sdk_container_image=gcr.io/p/shardwright:1"],
        ["--runner=PortableRunner", "--environment_type=DOCKER", "--environment_config=shardwright:1"],
        ["--runner=FlinkRunner", "--environment_type=EXTERNAL", "--environment_config=localhost:50000"],
    ],
)
def test_nothing_is_packed_for_workers_that_have_it(options: list[str]) -> None:
    changed = beam_args(options)
    assert dependency_utils.make_beam_dependency_flags(changed) == changed
    assert changed[: len(options)] == options


def test_a_container_is_that_of_the_environment() -> None:
    changed = beam_args(["--runner=FlinkRunner", "--environment_type=DOCKER", "--environment_config=shardwright:1"])
    assert changed[-1] == "--sdk_container_image=shardwright:1"


def test_no_options_stay_none_and_others_are_left_to_tfx() -> None:
    assert beam_args([]) == []
    assert beam_args(["--runner=DataflowRunner"]) == ["--runner=DataflowRunner"]
    with pytest.raises(AssertionError, match="packs itself up"):
        dependency_utils.make_beam_dependency_flags(beam_args(["--runner=DataflowRunner"]))
