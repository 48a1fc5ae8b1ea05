"""JAX over eight devices, in one process and in two: the batch is split, the loss is that of one device."""

import dataclasses
import signal
import socket

import pytest
from recipes import changed
from training import RECIPE, SIZE, ended, spec_of, start, trained

from shardwright.components.image_trainer.spec import TextColumn
from shardwright.components.image_trainer.training.history import read_history, read_summary

pytestmark = pytest.mark.slow

# With 37 records in three shards no two hosts get the same number.
COUNTS = {"train": 37, "eval": 11, "test": 2}
EIGHT = {"SHARDWRIGHT_CPU_DEVICES": "8"}


@pytest.fixture(scope="module")
def data(tmp_path_factory, write_shapes):
    return write_shapes(tmp_path_factory.mktemp("devices") / "data", size=SIZE, counts=COUNTS)


@pytest.fixture(scope="module")
def on_eight(tmp_path_factory, data):
    """A training on eight devices of one process, and its messages."""
    spec = spec_of(tmp_path_factory.mktemp("eight"), data, changed(RECIPE, order="exact"))
    code, messages, log = ended(start(spec, **EIGHT))
    assert code == 0, log
    return spec, messages


def on_two_hosts(specs, **second):
    """Runs a training in two processes of four devices each, the second with further options; how both ended."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        coordinator = f"127.0.0.1:{free.getsockname()[1]}"
    shared = {"SHARDWRIGHT_CPU_DEVICES": "4", "SHARDWRIGHT_COORDINATOR": coordinator, "SHARDWRIGHT_HOSTS": "2"}
    options = [{}, second]
    return together(specs, [{**shared, "SHARDWRIGHT_HOST": str(host), **options[host]} for host in range(2)])


def together(specs, environments):
    """Runs a training in a process for each environment; how they ended."""
    processes = [start(spec, **environment) for spec, environment in zip(specs, environments, strict=True)]
    return [ended(process) for process in processes]


def test_the_batch_is_split_eight_ways_and_the_step_compiled_once(on_eight):
    spec, messages = on_eight
    spread = [message for message in messages if "parts" in message]
    assert len(spread) == 8
    for message in spread:
        assert message["whole"] == [8, *SIZE, 3]
        assert message["parts"] == [[1, *SIZE, 3]] * 8
        assert "batch" in message["spread"]
    summary = read_summary(spec.output)
    assert (summary.backend, summary.devices, summary.compilations) == ("jax", 8, 1)
    assert len(summary.epochs) == 2


def test_eight_devices_have_the_loss_of_one(on_eight, data, tmp_path):
    spec = spec_of(tmp_path, data, on_eight[0].recipe)
    summary = trained(spec, SHARDWRIGHT_CPU_DEVICES="1")
    assert summary.devices == 1
    assert read_history(tmp_path).loss == pytest.approx(read_history(on_eight[0].output).loss, abs=1e-5)


def test_words_are_split_with_the_images(tmp_path, write_shapes):
    counts = {"train": 16, "eval": 8}
    noted = write_shapes(tmp_path / "data", task="classification", size=SIZE, counts=counts, words=6)
    recipe = changed(RECIPE, model="cnn", text=("note",), epochs=1, ema=0.5, accumulate=2)
    columns = (TextColumn("note", "image/meta/note", 6, "d" * 64),)
    spec = dataclasses.replace(spec_of(tmp_path / "run", noted, recipe), texts=columns)
    summary = trained(spec, **EIGHT)
    assert (summary.devices, summary.compilations) == (8, 1)
    assert 0 < summary.epochs[0]["loss"] < 10


def test_two_hosts_have_the_weights_of_each_other_and_the_loss_of_one(on_eight, data, tmp_path):
    recipe = on_eight[0].recipe
    specs = [spec_of(tmp_path / str(host), data, recipe, hosts=2) for host in range(2)]
    results = on_two_hosts(specs)
    assert [code for code, _, _ in results] == [0, 0], "\n".join(log for _, _, log in results)
    for _, messages, _ in results:
        assert {tuple(map(tuple, m["parts"])) for m in messages if "parts" in m} == {((1, *SIZE, 3),) * 4}
    first, second = (read_summary(spec.output) for spec in specs)
    assert (first.hosts, first.devices, first.compilations) == (2, 8, 1)
    assert first.weights == second.weights
    one = read_history(on_eight[0].output)
    found = read_history(specs[0].output)
    assert found.loss == pytest.approx(one.loss, abs=1e-5)
    assert [m["mean_dice"] for m in found.evaluation] == pytest.approx(
        [m["mean_dice"] for m in one.evaluation], abs=1e-3
    )
    # Only host 0 keeps checkpoints.
    assert (tmp_path / "0" / "checkpoints").exists()
    assert not (tmp_path / "1" / "checkpoints").exists()


def test_devices_that_share_the_weights_have_the_loss_of_those_that_do_not(on_eight, data, tmp_path):
    # Large enough weights; the running mean and the evaluation use them, too.
    recipe = changed(on_eight[0].recipe, model="unet", base_filters=8, ema=0.9)
    alike = trained(spec_of(tmp_path / "alike", data, recipe), **EIGHT)
    shared = trained(spec_of(tmp_path / "shared", data, changed(recipe, shard_weights=2)), **EIGHT)
    assert (shared.devices, shared.compilations) == (8, 1)
    ones, others = (read_history(tmp_path / name) for name in ("alike", "shared"))
    assert others.loss == pytest.approx(ones.loss, rel=1e-3)
    assert others.evaluation[-1]["loss"] == pytest.approx(ones.evaluation[-1]["loss"], rel=1e-2)
    assert alike.weights != ""


def test_two_slices_of_two_hosts_have_the_loss_of_one_host_and_one_publishes(on_eight, data, tmp_path):
    """With the variables that GKE sets for TPU slices; two devices each, of which two share the weights."""
    specs = [
        spec_of(tmp_path / str(at), data, changed(on_eight[0].recipe, hosts=4, shard_weights=2)) for at in range(4)
    ]
    slices = {"MEGASCALE_NUM_SLICES": "2", "MEGASCALE_COORDINATOR_ADDRESS": "127.0.0.1:8080",
              "TPU_WORKER_HOSTNAMES": "127.0.0.1,127.0.0.1", "SHARDWRIGHT_CPU_DEVICES": "2"}  # fmt: skip
    places = [{**slices, "MEGASCALE_SLICE_ID": str(at // 2), "TPU_WORKER_ID": str(at % 2)} for at in range(4)]
    results = together(specs, places)
    assert [code for code, _, _ in results] == [0] * 4, "\n".join(log for _, _, log in results)
    first, *others = (read_summary(spec.output) for spec in specs)
    assert (first.hosts, first.devices, first.compilations) == (4, 8, 1)
    assert {other.weights for other in others} == {first.weights}
    assert read_history(specs[0].output).loss == pytest.approx(read_history(on_eight[0].output).loss, abs=1e-5)
    # One of the four keeps checkpoints and publishes.
    assert [(tmp_path / str(at) / "checkpoints").exists() for at in range(4)] == [True, False, False, False]


def test_one_of_two_hosts_with_separate_shares_is_stopped_before_an_evaluation_and_both_continue(data, tmp_path):
    recipe = changed(RECIPE, epochs=3)
    specs = [spec_of(tmp_path / str(host), data, recipe, hosts=2) for host in range(2)]
    stopped = on_two_hosts(specs, end_at=8, by=signal.SIGTERM)
    for (code, messages, log), who in zip(stopped, ("another host", "SIGTERM"), strict=True):
        assert code == 1, log
        assert f"stopped ({who}) and saved its state at step 8 of 12" in messages[-1]["error"]
    results = on_two_hosts(specs)
    assert [code for code, _, _ in results] == [0, 0], "\n".join(log for _, _, log in results)
    first, second = (read_summary(spec.output) for spec in specs)
    assert first.weights == second.weights
    assert first.resumed == [8]
