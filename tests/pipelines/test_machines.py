"""Machine types that train: which there are, and the messages for others."""

import build
import pytest

from shardwright.errors import ConfigError
from shardwright.pipelines.cloud.machines import check_hosts, check_machine, trainer_slice, with_accelerator


@pytest.mark.parametrize(
    ("machine", "gpu", "gpus"),
    [
        ("n2-standard-8", None, 0),
        ("e2-highmem-16", None, 0),
        ("n1-standard-8", "NVIDIA_TESLA_T4", 2),
        ("g2-standard-24", "NVIDIA_L4", 2),
        ("a3-highgpu-8g", "NVIDIA_H100_80GB", 8),
    ],
)
def test_machines_that_there_are(machine, gpu, gpus):
    check_machine("vertex.trainer", machine, gpu, gpus)


@pytest.mark.parametrize(
    ("machine", "gpu", "gpus", "message"),
    [
        (
            "n2-standart-8",
            None,
            0,
            r"trainer\.machine: 'n2-standart-8' is not a machine type\. Did you mean 'n2-standard-8'",
        ),
        ("ct5lp-hightpu-4", None, 0, r"Did you mean 'ct5lp-hightpu-4t'\?"),
        ("n2-standard-7", None, 0, r"'n2-standard-7' is not a machine type"),
        ("zz", None, 0, r"'zz' is not a machine type\. Use e\.g\."),
        ("g2-standard-8", None, 0, r"trainer\.gpu: g2-standard-8 has 1 NVIDIA_L4\. Write gpu: NVIDIA_L4, gpus: 1"),
        ("g2-standard-8", "NVIDIA_L4", 4, r"comes with 1 NVIDIA_L4, not 4 NVIDIA_L4"),
        ("n2-standard-8", "NVIDIA_L4", 1, r"n2-standard-8 takes no NVIDIA_L4\. Use an n1"),
        ("n1-standard-8", "NVIDIA_L4", 1, r"n1-standard-8 takes no NVIDIA_L4\. Use one of: NVIDIA_TESLA_P4"),
        ("n1-standard-8", "NVIDIA_TESLA_T4", 3, r"trainer\.gpus: 3 is not a possible number of GPUs"),
    ],
)
def test_refused_with_the_fix(machine, gpu, gpus, message):
    with pytest.raises(ConfigError, match=message):
        check_machine("vertex.trainer", machine, gpu, gpus)


def test_the_hosts_of_a_slice():
    found = trainer_slice("vertex.trainer", "ct6e-standard-8t", "2x4", "tpu")
    assert found.chips == 8
    check_hosts("vertex.trainer", found, 1)
    check_hosts("kubeflow.trainer", trainer_slice("kubeflow.trainer", "ct6e-standard-4t", "2x4", "auto"), 2)
    with pytest.raises(ConfigError, match=r"trainer\.hosts: 3, and kubeflow\.trainer .* Set trainer\.hosts to 1"):
        check_hosts("kubeflow.trainer", found, 3)


@pytest.mark.parametrize(
    ("machine", "topology", "accelerator", "message"),
    [
        ("ct5lp-hightpu-4t", None, "tpu", r"vertex\.trainer\.topology: missing .* Use one of: 2x2, 2x4"),
        ("ct5lp-hightpu-2t", None, "tpu", r"vertex\.trainer\.topology: missing"),
        ("ct5lp-hightpu-4t", "2x3", "tpu", r"'2x3' is not a topology of ct5lp-hightpu-4t"),
        ("ct5lp-hightpu-1t", "2x2", "tpu", r"'2x2' is not a topology of ct5lp-hightpu-1t"),
        ("ct5lp-hightpu-4t", "2x2", "cpu", r"trainer\.accelerator: 'cpu', .* Set trainer\.accelerator to tpu"),
    ],
)
def test_slices_that_a_step_cannot_have(machine, topology, accelerator, message):
    with pytest.raises(ConfigError, match=message):
        trainer_slice("vertex.trainer", machine, topology, accelerator)


@pytest.mark.parametrize(
    ("asked", "has_tpu", "gpu", "wanted"),
    [
        ("auto", True, None, "tpu"),
        ("tpu", True, None, "tpu"),
        ("auto", False, "NVIDIA_L4", "gpu"),
        ("auto", False, None, "auto"),
        ("cpu", False, None, "cpu"),
    ],
)
def test_the_trainer_asks_for_what_its_machine_has(asked, has_tpu, gpu, wanted):
    config = build.config(trainer={"accelerator": asked})
    assert with_accelerator(config, "vertex.trainer", has_tpu, gpu).trainer.accelerator == wanted


@pytest.mark.parametrize(
    ("asked", "has_tpu", "gpu", "message"),
    [
        (
            "cpu",
            False,
            "NVIDIA_L4",
            r"'cpu', and vertex\.trainer names a GPU\. Set trainer\.accelerator to gpu",
        ),
        ("gpu", True, None, r"'gpu', and vertex\.trainer names a TPU\. Set trainer\.accelerator to tpu"),
        ("tpu", False, None, r"'tpu', and vertex\.trainer does not name a TPU\. Name its machine in vertex\.trainer"),
    ],
)
def test_a_trainer_that_asks_for_another_accelerator_is_refused(asked, has_tpu, gpu, message):
    config = build.config(trainer={"accelerator": asked})
    with pytest.raises(ConfigError, match=message):
        with_accelerator(config, "vertex.trainer", has_tpu, gpu)
