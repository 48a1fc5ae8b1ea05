"""Beam's options: workers have Shardwright, so TFX builds no package of itself."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
from tfx.utils import dependency_utils

from shardwright.components.image_trainer.run_fn import _checkpoints
from shardwright.components.runtime.beam import beam_args, staging_root
from shardwright.errors import UsageError
from shardwright.pipelines.cli import main
from shardwright.pipelines.run_local import root_for
from shardwright.sample import write_sample
from shardwright.staging.staging import STAGING_VARIABLE, VOLUME_STAGING


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


REMOTE = [
    ["--runner=FlinkRunner", "--flink_master=HOST:8081"],
    ["--runner=FlinkRunner", "--flink_master=HOST:8081", "--environment_type=DOCKER", "--environment_config=i:1"],
    ["--runner=FlinkRunner", "--environment_type=EXTERNAL", "--environment_config=localhost:50000"],
    ["--runner=SparkRunner", "--spark_master_url=spark://HOST:7077"],
    ["--runner=PortableRunner", "--job_endpoint=HOST:8099", "--environment_type=DOCKER"],
    ["--runner=apache_beam.runners.portability.flink_runner.FlinkRunner", "--flink_master=HOST:8081"],
]


@pytest.mark.parametrize("options", REMOTE)
def test_a_cluster_needs_a_staging_folder_that_somebody_chose(
    options: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv(STAGING_VARIABLE, raising=False)
    with pytest.raises(UsageError, match=r"the staging folder \(run.staging\), .*, is a folder of this machine"):
        staging_root(options, lambda: str(tmp_path))
    assert staging_root(options, lambda: "gs://bucket/tmp") == "gs://bucket/tmp"
    # It may be a volume.
    monkeypatch.setenv(STAGING_VARIABLE, "/mnt/shared")
    assert staging_root(options, lambda: str(tmp_path)) == "/mnt/shared"


@pytest.mark.parametrize(
    "options",
    [
        [],
        ["--direct_num_workers=2", "--direct_running_mode=multi_processing"],
        ["--runner=FnApiRunner"],
        ["--runner=FlinkRunner"],
        ["--runner=FlinkRunner", "--flink_master=[local]"],
        ["--runner=SparkRunner", "--spark_master_url=local[2]"],
        ["--runner=PortableRunner", "--job_endpoint=HOST:8099", "--environment_type=LOOPBACK"],
    ],
)
def test_workers_on_this_machine_need_none(options: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(STAGING_VARIABLE, raising=False)
    assert staging_root(options, lambda: str(tmp_path)) == str(tmp_path)


@pytest.mark.parametrize("where", ["beam", "beam.per_component"])
def test_a_run_is_refused_before_anything_starts(
    where: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_sample(str(tmp_path / "data"), images=12, height=64, width=96, seed=1)
    flink = '["--runner=FlinkRunner", "--flink_master=HOST:8081"]'
    beam = f"options: {flink}" if where == "beam" else f"per_component: {{ImageExampleGen: {flink}}}"
    data = tmp_path / "data"
    (tmp_path / "c.yaml").write_text(
        f"task: segmentation\ninput: {{images: {data}/train_images, labels: {{path: {data}/train.csv}}}}\n"
        f"split: {{ratios: {{train: 0.5, eval: 0.2, test: 0.3}}}}\nbeam: {{{beam}}}\n"
    )
    assert main(["run", str(tmp_path / "c.yaml"), "--root", str(tmp_path / "run")]) == 2
    assert "the workers of FlinkRunner are on others" in capsys.readouterr().err
    assert not list((tmp_path / "run").glob("artifacts/ImageExampleGen/examples/*"))


def test_workers_of_a_cluster_get_the_absolute_root_of_the_artifacts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """They work in other folders: the statistics of a run on Prism were in that of its workers."""
    monkeypatch.chdir(tmp_path)
    cluster = ["--runner=PortableRunner", "--job_endpoint=HOST:8099", "--environment_type=EXTERNAL"]
    assert root_for([[], cluster]) == str(tmp_path / "artifacts")
    assert root_for([[], ["--runner=DirectRunner"]]) == "artifacts"


PLANTS = {
    "link to a folder": lambda place, precious: place.symlink_to(precious),
    "dangling link": lambda place, _: place.symlink_to(place.with_name("nowhere")),
    "file": lambda place, _: place.write_bytes(b"mine"),
    "pipe": lambda place, _: os.mkfifo(place),
}


@pytest.mark.parametrize("plant", PLANTS)
def test_our_folder_on_a_volume_is_no_link(plant: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The name is in every compiled pipeline, so anybody who writes to the volume knows it."""
    place, precious = tmp_path / VOLUME_STAGING, tmp_path / "precious"
    precious.mkdir()
    monkeypatch.setenv(STAGING_VARIABLE, str(place))
    spec = SimpleNamespace(fingerprint="f" * 64)
    assert staging_root([], str) == str(place)
    assert _checkpoints(spec, tmp_path) == f"{place}/training/{'f' * 32}"
    shutil.rmtree(place)
    PLANTS[plant](place, precious)
    before = os.lstat(place)
    for use in (lambda: staging_root([], str), lambda: _checkpoints(spec, tmp_path)):
        with pytest.raises(UsageError, match=f"{place}: "):
            use()
    assert not list(precious.iterdir())
    assert not (tmp_path / "nowhere").exists()
    assert os.lstat(place) == before
