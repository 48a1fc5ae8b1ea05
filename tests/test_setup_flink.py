"""`tools/flink.sh` names the part of the cluster that cannot be had, and compares files; CI starts no cluster."""

import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "tools" / "flink"
# A program, not a package of ours: its folder is on the path only while it is imported.
sys.path.insert(0, str(FOLDER))

import compare  # noqa: E402

sys.path.remove(str(FOLDER))


def called(tmp_path, *arguments):
    return compare.main(["--cache", str(tmp_path), *arguments])


def test_without_java_it_names_the_package(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert called(tmp_path) == 2
    assert "there is no Java. Install it: apt-get install" in capsys.readouterr().err


def test_a_job_server_that_cannot_be_had_is_named(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(compare, "_java", lambda: "java")
    monkeypatch.setattr(compare, "_flink", lambda cache, version: cache)
    assert called(tmp_path, "--job-server", str(tmp_path / "none.jar")) == 2
    assert "none.jar is no file" in capsys.readouterr().err

    def unreachable(url):
        raise RuntimeError("no route")

    monkeypatch.setattr(compare.JavaJarServer, "local_jar", unreachable)
    assert called(tmp_path) == 2
    message = capsys.readouterr().err
    assert f"job-server-{compare.beam_version}.jar: no route" in message
    assert "--job-server" in message


@pytest.mark.parametrize(
    ("changed", "differing"),
    [
        ({}, []),
        ({"ImageExampleGen/examples/7/a": b"2"}, ["ImageExampleGen/examples/a"]),
        ({"StatisticsGen/statistics/2/more": b""}, ["StatisticsGen/statistics/more"]),
        ({"ImageTransform/transform_graph/3/transform_fn/saved_model.pb": b"2", "StatisticsGen/.system/x": b""}, []),
    ],
)
def test_the_files_of_the_artifacts_are_compared_without_the_numbers_of_executions(tmp_path, changed, differing):
    examples = {"local": "ImageExampleGen/examples/1/a", "remote": "ImageExampleGen/examples/7/a"}
    graph = "ImageTransform/transform_graph/3/transform_fn/saved_model.pb"
    for root, more in (("local", {}), ("remote", changed)):
        for name, content in {examples[root]: b"1", graph: b"1", **more}.items():
            file = tmp_path / root / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
    files, found = compare._differences(tmp_path / "local", tmp_path / "remote")
    assert files >= 1
    assert found == differing


@pytest.mark.parametrize(
    ("means", "same"),
    [((0.1, 0.1 + 2e-17), True), ((-45749389193690376.0, -45749389193690584.0), True), ((4.57e16, 4.58e16), False)],
)
def test_sums_of_another_order_are_no_difference(tmp_path, means, same):
    for root, mean in zip(("local", "remote"), means, strict=True):
        made = compare.statistics_pb2.DatasetFeatureStatisticsList()
        made.datasets.add().features.add().num_stats.mean = mean
        file = tmp_path / root / "StatisticsGen/statistics/1/Split-train/FeatureStats.pb"
        file.parent.mkdir(parents=True)
        file.write_bytes(made.SerializeToString())
    files, found = compare._differences(tmp_path / "local", tmp_path / "remote")
    assert files == 1
    assert (found == []) == same
