"""The private parts of Beam that we use do as we expect, on both stacks."""

import importlib.util
import re
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import apache_beam as beam
import grpc
import numpy as np
import objsize
import psutil
import pytest
from apache_beam.internal import cloudpickle_pickler, pickler
from apache_beam.runners.portability import local_job_service
from apache_beam.runners.portability.fn_api_runner import worker_handlers
from apache_beam.runners.worker import statecache
from compat import checked_with

from shardwright.components.runtime import beam_compat
from shardwright.components.runtime.beam import in_process_beam

LOOPBACK = {"127.0.0.1", "::ffff:127.0.0.1", "::1"}


@pytest.fixture
def of_beam() -> Callable[..., int]:
    """Beam's own function; tests may run with `quick_beam`."""
    spec = importlib.util.spec_from_file_location("fresh_statecache", statecache.__file__)
    assert spec
    assert spec.loader
    fresh = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(fresh)
    found: Callable[..., int] = fresh.get_deep_size
    return found


def test_the_version_is_one_that_was_checked() -> None:
    checked_with("apache-beam", ">=2.59,<2.78")


def test_pipelines_in_this_process_are_pickled_by_cloudpickle_and_later_ones_as_beam_does() -> None:
    before = pickler.DEFAULT_PICKLE_LIB
    with in_process_beam():
        beam.Pipeline(argv=[])
        assert pickler.desired_pickle_lib is cloudpickle_pickler
        beam.Pipeline(argv=["--pickle_library=dill"] if before == "dill" else [])
        assert (pickler.desired_pickle_lib is cloudpickle_pickler) == (before == "cloudpickle")
    assert before == pickler.DEFAULT_PICKLE_LIB
    beam.Pipeline(argv=[])
    assert (pickler.desired_pickle_lib is cloudpickle_pickler) == (before == "cloudpickle")


def listening() -> set[str]:
    """The addresses at which this process and its children listen."""
    found = set()
    for process in (psutil.Process(), *psutil.Process().children(recursive=True)):
        with suppress(psutil.NoSuchProcess):
            connections = process.net_connections("inet")
            found |= {one.laddr.ip for one in connections if one.status == psutil.CONN_LISTEN}
    return found


@pytest.mark.parametrize("module", [worker_handlers, local_job_service])
def test_services_of_workers_listen_on_the_loopback(module: Any) -> None:
    def addresses(source: str) -> set[str]:
        return set(re.findall(r"add_insecure_port\(\s*(.*?)\)", source, re.DOTALL))

    # Beam names the address itself, and the module `grpc`.
    source = Path(module.__file__).read_text(encoding="utf-8")
    assert "'[::]:0'" in addresses(source)
    assert module.grpc is grpc
    before = listening()
    with in_process_beam():
        server = module.grpc.server(ThreadPoolExecutor(1))
        assert server.add_insecure_port("[::]:0")
        server.start()
        assert module.grpc.StatusCode is grpc.StatusCode
    assert listening()
    assert listening() - before <= LOOPBACK
    server.stop(None)
    assert module.grpc is grpc


@pytest.mark.slow
@pytest.mark.two_stacks
def test_worker_processes_are_reached_from_this_machine_only() -> None:
    seen: set[str] = set()
    over = threading.Event()

    def watch() -> None:
        while not over.wait(0.02):
            seen.update(listening())

    before = listening()
    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        options = ["--direct_running_mode=multi_processing", "--direct_num_workers=2"]
        with in_process_beam(), beam.Pipeline(argv=options) as pipeline:
            _ = pipeline | beam.Create(range(20)) | beam.Reshuffle() | beam.Map(str)
    finally:
        over.set()
        watcher.join()
    assert seen - before
    assert seen - before <= LOOPBACK


def adder(number: int) -> Callable[[int], int]:
    return lambda other: number + other


@pytest.mark.skipif(
    pickler.DEFAULT_PICKLE_LIB != "dill",
    reason="only Beam before 2.77 has workers that read with dill, as on the fallback stack",
)
def test_workers_that_read_with_dill_read_what_cloudpickle_writes() -> None:
    from apache_beam.internal import dill_pickler

    assert dill_pickler.loads(cloudpickle_pickler.dumps(adder(3)))(4) == 7


@pytest.mark.parametrize("value", [b"x" * 999, ["ab", "c"] * 9, {"a": np.zeros(99), "b": [1.5]}, [adder(1), len, beam]])
def test_the_size_of_a_value_is_the_one_that_beam_finds(value: Any, of_beam: Callable[..., int]) -> None:
    assert beam_compat.deep_size(value) == of_beam(value)


def test_a_side_input_is_kept_without_a_list_of_all_modules(
    monkeypatch: pytest.MonkeyPatch, of_beam: Callable[..., int]
) -> None:
    listed = []
    monkeypatch.setattr(objsize.traverse, "_iter_modules_globals", lambda: listed.append(1) or iter([]))

    def run() -> None:
        with beam.Pipeline(argv=[]) as p:
            side = p | "Side" >> beam.Create([1, 2])
            _ = p | beam.Create([3]) | beam.Map(lambda x, found: x + sum(found), found=beam.pvalue.AsList(side))

    with in_process_beam():
        run()
        assert not listed
        monkeypatch.setattr(statecache, "get_deep_size", of_beam)
        run()
        assert listed


class Steps(beam.DoFn):
    def process(self, element: int, shift: int = 2, window: Any = beam.DoFn.WindowParam) -> list[int]:
        return [element + shift]


@pytest.mark.parametrize(
    "function",
    [Steps().process, Steps().start_bundle, Steps.process, beam.Map(len).fn.process, adder(1), len, str.upper, dict],
)
def test_the_arguments_of_a_function_are_those_that_beam_finds(function: Any) -> None:
    for _ in range(2):
        names, defaults = beam_compat.arguments_of(function)
        assert (names, defaults) == beam_compat._read_arguments(function)
        names.append("changed")


def test_the_signature_of_a_method_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    read, original = [], beam_compat._read_arguments
    monkeypatch.setattr(beam_compat, "_read_arguments", lambda one: read.append(one.__name__) or original(one))

    class Fresh(beam.DoFn):
        def process(self, element: int) -> list[int]:
            return [element]

    with in_process_beam(), beam.Pipeline(argv=[]) as p:
        _ = p | beam.Create([1, 2]) | beam.ParDo(Fresh())
    assert read.count("process") < 4
