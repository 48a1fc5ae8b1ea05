"""The placement of a training: the table, the detection of devices, and batches that devices can share."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardwright.components.image_trainer.devices import placement
from shardwright.components.image_trainer.devices.placement import (
    Machine,
    Placement,
    check_machine,
    choose_placement,
    device_batch,
)
from shardwright.errors import ConfigError

PLAIN = Machine()
GPU, GPU_JAX, TPU = Machine(gpu=True), Machine(gpu=True, jax_on_gpu=True), Machine(tpu=True)
EIGHT = Machine(cpu_devices=8)


@pytest.mark.parametrize(
    ("accelerator", "hosts", "machine", "wanted"),
    [
        ("auto", 1, PLAIN, Placement("cpu", "tensorflow")),
        ("cpu", 1, GPU_JAX, Placement("cpu", "tensorflow")),
        ("cpu", 1, EIGHT, Placement("cpu", "jax", 1, 8)),
        ("auto", 4, PLAIN, Placement("cpu", "jax", 4)),
        ("auto", 1, GPU, Placement("gpu", "tensorflow")),
        ("gpu", 1, GPU_JAX, Placement("gpu", "jax")),
        ("auto", 2, GPU_JAX, Placement("gpu", "jax", 2)),
        ("auto", 1, TPU, Placement("tpu", "jax")),
        ("tpu", 16, TPU, Placement("tpu", "jax", 16)),
    ],
)
def test_the_table(accelerator, hosts, machine, wanted):
    assert choose_placement(accelerator, hosts, machine) == wanted


@pytest.mark.parametrize(
    ("accelerator", "hosts", "machine", "problem"),
    [
        ("gpu", 1, PLAIN, "trainer.accelerator: 'gpu', but this machine has none"),
        ("tpu", 1, GPU, "trainer.accelerator: 'tpu', but this machine has none .*TPU in /dev/vfio"),
        ("auto", 1, Machine(idle_tpu=True), "'auto', and this machine has a TPU .*libtpu.*ACCELERATOR=tpu"),
        ("tpu", 1, Machine(idle_tpu=True), "'tpu', and this machine has a TPU .*libtpu.*ACCELERATOR=tpu"),
        ("gpu", 2, GPU, "trainer.hosts: 2 hosts with GPUs need JAX"),
    ],
)
def test_what_is_not_there_is_refused(accelerator, hosts, machine, problem):
    with pytest.raises(ConfigError, match=problem):
        choose_placement(accelerator, hosts, machine)


def test_a_machine_is_detected_by_its_device_files(tmp_path):
    assert Machine.look({}, tmp_path) == Machine(jax_on_gpu=Machine.look({}, tmp_path).jax_on_gpu)
    (tmp_path / "nvidia0").touch()
    (tmp_path / "nvidiactl").touch()
    assert Machine.look({"SHARDWRIGHT_CPU_DEVICES": "4"}, tmp_path).gpu
    assert Machine.look({"SHARDWRIGHT_CPU_DEVICES": "4"}, tmp_path).cpu_devices == 4
    assert not Machine.look({}, tmp_path / "elsewhere").gpu
    with pytest.raises(ConfigError, match="'many' is not a number"):
        Machine.look({"SHARDWRIGHT_CPU_DEVICES": "many"}, tmp_path)


def test_a_tpu_without_its_package_is_seen(tmp_path, monkeypatch):
    """Before, such a machine trained on its CPU."""
    monkeypatch.setattr(placement.importlib.util, "find_spec", lambda name: None)
    (tmp_path / "accel0").touch()
    seen = Machine.look({}, tmp_path)
    assert seen == Machine(idle_tpu=True)
    assert choose_placement("cpu", 1, seen).accelerator == "cpu"
    monkeypatch.setattr(placement.importlib.util, "find_spec", lambda name: name == "libtpu" or None)
    assert Machine.look({}, tmp_path) == Machine(tpu=True)


@pytest.mark.parametrize(
    ("groups", "pci", "found"),
    [
        (["2"], [("0x1ae0", "0x0042"), ("0x1ae0", "0x0063")], True),
        (["2"], None, True),
        (["2"], [("0x1ae0", "0x0042")], False),
        (["2"], [("0x8086", "0x0063")], False),
        (["vfio"], [("0x1ae0", "0x0063")], False),
    ],
)
def test_a_tpu_behind_vfio_is_detected_by_its_pci_numbers(tmp_path, groups, pci, found):
    """Its group has any number, and other devices than TPUs are passed on that way."""
    for name in groups:
        (tmp_path / "dev" / "vfio" / name).mkdir(parents=True)
    for i, (vendor, device) in enumerate(pci or ()):
        folder = tmp_path / "pci" / str(i)
        folder.mkdir(parents=True)
        (folder / "vendor").write_text(f"{vendor}\n")
        (folder / "device").write_text(f"{device}\n")
    seen = Machine.look({}, tmp_path / "dev", tmp_path / "pci")
    assert (seen.tpu or seen.idle_tpu) is found


def test_the_environment_of_a_worker(monkeypatch):
    monkeypatch.setattr("shardwright.running.processes.usable_cores", lambda: 2)
    assert Placement("cpu", "tensorflow").to_environment({}) == {
        "KERAS_BACKEND": "tensorflow",
        "CUDA_VISIBLE_DEVICES": "-1",
        "TF_CPU_ALLOCATOR_USE_BFC": "true",
        "TF_CPU_BFC_MEM_LIMIT_IN_MB": "16777216",
    }
    off = {"TF_CPU_ALLOCATOR_USE_BFC": "false"}
    assert off.items() <= Placement("tpu", "jax").to_environment(off).items()
    virtual = Placement("cpu", "jax", 1, 8).to_environment(
        {"XLA_FLAGS": "--xla_force_host_platform_device_count=2 --xla_dump_to=x"}
    )
    assert virtual["JAX_PLATFORMS"] == "cpu"
    assert virtual["XLA_FLAGS"] == "--xla_dump_to=x --xla_force_host_platform_device_count=8"
    assert Placement("tpu", "jax").to_environment({})["JAX_PLATFORMS"] == "tpu,cpu"
    assert "XLA_FLAGS" not in Placement("tpu", "jax").to_environment({})
    on_gpu = Placement("gpu", "jax").to_environment({"XLA_FLAGS": "--xla_dump_to=x"})
    assert on_gpu["JAX_PLATFORMS"] == ""
    assert on_gpu["XLA_FLAGS"] == "--xla_dump_to=x --xla_gpu_deterministic_ops=true"
    own = "--xla_gpu_deterministic_ops=false"
    assert Placement("gpu", "jax").to_environment({"XLA_FLAGS": own})["XLA_FLAGS"] == own


@given(st.integers(1, 512), st.integers(0, 2000), st.integers(1, 64))
def test_a_batch_is_shared_equally_or_refused(batch_size, records, devices):
    if batch_size % devices or records < devices:
        with pytest.raises(ConfigError):
            device_batch(batch_size, records, devices)
        return
    found = device_batch(batch_size, records, devices)
    assert found % devices == 0
    assert 0 < found <= min(batch_size, records)
    assert found == batch_size or records - found < devices


def test_the_message_names_sizes_that_fit():
    with pytest.raises(ConfigError, match=r"trainer.batch_size: 12 images cannot be split over 8 devices.* 8 or 16"):
        device_batch(12, 100, 8)
    with pytest.raises(ConfigError, match="8 devices, and the train split has 5 images"):
        device_batch(16, 5, 8)


@pytest.mark.parametrize(
    ("accelerator", "hosts", "batch", "environment", "problem"),
    [
        (
            "cpu",
            1,
            12,
            {"SHARDWRIGHT_CPU_DEVICES": "8"},
            "trainer.batch_size: 12 images cannot be split over 8 devices",
        ),
        ("tpu", 1, 16, {}, "trainer.accelerator: 'tpu', but this machine has none"),
        ("cpu", 2, 16, {}, "trainer.hosts: 2, but this machine is one of 1"),
    ],
)
def test_a_run_is_refused_before_it_begins(accelerator, hosts, batch, environment, problem):
    with pytest.raises(ConfigError, match=problem):
        check_machine(accelerator, hosts, batch, environment)


def test_a_run_that_the_machine_can_do_is_not():
    check_machine("auto", 1, 7, {})
    check_machine("cpu", 1, 16, {"SHARDWRIGHT_CPU_DEVICES": "8"})


@pytest.mark.parametrize(
    ("asked", "said"), [("jax", True), ("torch", True), ("tensorflow", False), ("", False), (None, False)]
)
def test_a_backend_that_is_not_used_is_said(asked, said):
    environment = {} if asked is None else {"KERAS_BACKEND": asked}
    note = choose_placement("cpu", 1, Machine()).unused_backend(environment)
    assert bool(note) == said
    if said:
        assert note.startswith(f"KERAS_BACKEND={asked} is ignored: on cpu with 1 host Keras runs on tensorflow")
    assert ("SHARDWRIGHT_CPU_DEVICES=1" in note) == (asked == "jax")
    assert not choose_placement("cpu", 2, Machine()).unused_backend({"KERAS_BACKEND": "jax"})
