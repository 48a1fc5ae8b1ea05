"""`shardwright preflight`: exit codes, table, JSON, and what it learns by trying the loader."""

import json

import build
import pytest
import yaml

from shardwright.pipelines import cli
from shardwright.pipelines.preflight.measure import gather

GOOD = {
    "task": "segmentation",
    "input": {"images": "images", "classes": ["Fish", "Sugar"]},
    "split": {"ratios": {"train": 0.8, "eval": 0.2}},
    "evaluator": {"split": "eval"},
    "transform": {"size": [32, 48]},
    "shards": {"hosts": 2},
    "loader": {"order": "exact", "normalize": "unit", "shuffle_buffer": 128},
    "trainer": {"accelerator": "tpu", "hosts": 2, "batch_size": 64, "precision": "bfloat16"},
}


def written(tmp_path, **changes):
    file = tmp_path / "config.yaml"
    file.write_text(yaml.safe_dump({**GOOD, **changes}))
    return str(file)


@pytest.fixture(scope="module")
def dataset(tmp_path_factory, small_dataset):
    counts = {"train": [40, 40], "eval": [8]}
    return str(small_dataset(tmp_path_factory.mktemp("preflight"), counts=counts, size=lambda number: (32, 48)))


def on_one_chip(tmp_path, dataset, **loader):
    trainer = {**GOOD["trainer"], "hosts": 1, "batch_size": 8}
    config = written(tmp_path, trainer=trainer, loader={**GOOD["loader"], **loader})
    return ["preflight", config, "--tpu", "v5e-1x1", "--dataset", dataset, "--seconds", "0.01", "--json"]


def test_a_sound_configuration_exits_0(tmp_path, capsys):
    assert cli.main(["preflight", written(tmp_path), "--tpu", "v5e-2x4", "--hosts", "2"]) == 0
    output = capsys.readouterr().out
    assert "v5e-2x4 with 2 hosts: 0 errors, 0 warnings" in output
    assert "not checked, give --dataset DIR: steps-per-epoch" in output


def test_an_error_exits_1_and_names_the_place_and_the_fix(tmp_path, capsys):
    config = written(tmp_path, trainer={**GOOD["trainer"], "batch_size": 60})
    assert cli.main(["preflight", config, "--tpu", "v5e-2x4", "--hosts", "2"]) == 1
    rows = capsys.readouterr().out.splitlines()
    found = next(row for row in rows if "batch-devices" in row)
    assert found.split()[:3] == ["error", "batch-devices", "trainer.batch_size"]
    assert "60 images cannot be shared equally by the 8 chips of v5e-2x4. Use a multiple of 8: 56 or 64." in found


def test_hosts_that_no_such_slice_has_are_an_error_of_the_table(tmp_path, capsys):
    assert cli.main(["preflight", written(tmp_path), "--tpu", "v5e-2x2", "--hosts", "2", "--json"]) == 1
    output = json.loads(capsys.readouterr().out)
    assert (output["ready"], output["slice"], output["hosts"]) == (False, "v5e-2x2", 2)
    assert output["findings"][0]["rule"] == "slice-hosts"
    assert output["findings"][0]["problem"] == "v5e-2x2 has 1 hosts, not 2"


def test_several_slices_are_checked_together(tmp_path, capsys):
    trainer = {**GOOD["trainer"], "hosts": 8, "batch_size": 256}
    kubeflow = {"trainer": {"machine": "ct5lp-hightpu-4t", "topology": "4x4", "slices": 2}}
    config = written(tmp_path, trainer=trainer, kubeflow=kubeflow, shards={"hosts": 8})
    assert cli.main(["preflight", config, "--tpu", "v5e-4x4"]) == 0
    needs, summary = capsys.readouterr().out.splitlines()[-3:-1]
    assert needs == "needs 2 node pools of 4 ct5lp-hightpu-4t with topology 4x4: a quota of 32 v5e chips"
    assert summary.startswith("2 x v5e-4x4 with 8 hosts: 0 errors, 0 warnings")
    assert cli.main(["preflight", config, "--tpu", "v5e-4x4", "--hosts", "4", "--json"]) == 1
    output = json.loads(capsys.readouterr().out)
    assert (output["slice"], output["slices"], output["chips"], output["hosts"]) == ("v5e-4x4", 2, 32, 4)
    assert output["findings"][0]["problem"] == "2 x v5e-4x4 has 8 hosts, not 4"
    # A slice 2x4 may have one machine or two: the configuration says which.
    kubeflow["trainer"]["topology"] = "2x4"
    config = written(tmp_path, trainer={**trainer, "hosts": 4}, kubeflow=kubeflow, shards={"hosts": 4})
    assert cli.main(["preflight", config, "--tpu", "v5e-2x4"]) == 0
    assert "needs 2 node pools of 2 ct5lp-hightpu-4t with topology 2x4" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--tpu", "v9-2x2"], "--tpu: 'v9-2x2' is not a TPU slice"),
        (["--tpu", "v5e-2x4", "--hosts", "0"], "--hosts: 0 is not above 0"),
        (["--tpu", "v5e-2x4", "--hosts", "1000000000"], "--hosts: 1000000000 hosts for the 8 chips"),
        (["--tpu", "v5e-2x4", "--needed", "nan"], "--needed: nan is not above 0"),
        (["--tpu", "v5e-2x4", "--host-memory", "-1"], "--host-memory: -1 is not above 0"),
        (["--tpu", "v5e-2x4", "--seconds", "inf"], "--seconds: inf is not above 0"),
    ],
)
def test_a_wrong_call_exits_2(tmp_path, capsys, more, message):
    assert cli.main(["preflight", written(tmp_path), *more]) == 2
    assert message in capsys.readouterr().err


def test_a_wrong_configuration_exits_2(tmp_path, capsys):
    config = written(tmp_path, loader={"order": "any"})
    assert cli.main(["preflight", config, "--tpu", "v5e-2x4"]) == 2
    assert "loader.order" in capsys.readouterr().err


def test_no_dataset_exits_1(tmp_path, capsys):
    assert cli.main(["preflight", written(tmp_path), "--tpu", "v5e-2x4", "--dataset", str(tmp_path)]) == 1
    assert "no manifest.json" in capsys.readouterr().err


def test_slices_with_several_machine_types():
    config = build.config(source="images", task="segmentation")

    def facts(tpu, hosts):
        return gather(config, tpu=tpu, hosts=hosts)

    assert facts("v5e-2x4", 2).slice.host_counts == (1, 2)
    assert facts("v5e-2x4", 2).slice.machine == "ct5lp-hightpu-4t"
    assert facts("v5e-2x4", 2).host_processors == 112
    assert facts("v5e-2x4", None).slice.machine == "ct5lp-hightpu-8t"
    assert facts("v5e-2x4", None).hosts == 1
    assert facts("v6e-4x4", 3).slice.host_counts == (4,)
    assert (facts("v6e-4x4", 3).hosts, facts("v6e-4x4", 3).host_memory) == (3, 720 << 30)


def test_with_a_dataset_the_loader_is_tried(tmp_path, capsys, dataset):
    assert cli.main([*on_one_chip(tmp_path, dataset), "--needed", "0.001"]) == 0
    output = json.loads(capsys.readouterr().out)
    assert output["findings"] == []
    assert output["unchecked"] == {}
    assert output["images_per_second"] > 0
    assert {"fixed-shapes", "no-strings", "device-types", "loads"} <= set(output["passed"])


def test_an_error_of_the_loader_is_reported(tmp_path, capsys, dataset):
    assert cli.main(on_one_chip(tmp_path, dataset, augment=["rotate90"])) == 1
    output = json.loads(capsys.readouterr().out)
    assert [one["rule"] for one in output["findings"]] == ["loads", "square-turns"]
    assert "rotate90" in output["findings"][0]["problem"]
    assert "fixed-shapes" in output["unchecked"]


@pytest.mark.slow
def test_an_error_that_appears_while_loading_is_reported(tmp_path, capsys, small_dataset):
    def some_are_larger(number):
        return 32, 48 + number % 2

    dataset = str(small_dataset(tmp_path, counts={"train": [40, 40], "eval": [8]}, size=some_are_larger))
    assert cli.main(on_one_chip(tmp_path, dataset)) == 1
    output = {one["rule"]: one["problem"] for one in json.loads(capsys.readouterr().out)["findings"]}
    assert "2 sizes among 88 images: 32 x 48, 32 x 49" in output["one-size"]
    assert "Batches need one size" in output["loads"]
