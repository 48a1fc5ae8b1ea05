"""Which host this is, by what the places that start many set."""

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardwright.components.image_trainer.devices.hosts import HostPlace, this_host
from shardwright.errors import ConfigError, UsageError

SLICE = {"TPU_WORKER_HOSTNAMES": "t0.x,t1.x", "TPU_WORKER_ID": "1"}
SLICES = {"MEGASCALE_NUM_SLICES": "3", "MEGASCALE_SLICE_ID": "2", "MEGASCALE_COORDINATOR_ADDRESS": "first.x:8080"}


def vertex(pool, index, pools=None):
    pools = pools or {"workerpool0": ["chief:2222"], "workerpool1": ["one:2222", "two:2222"]}
    return {"CLUSTER_SPEC": json.dumps({"cluster": pools, "task": {"type": pool, "index": index, "trial": ""}})}


@pytest.mark.parametrize(
    ("environment", "wanted"),
    [
        ({}, HostPlace()),
        ({"SHARDWRIGHT_COORDINATOR": "a:1", "SHARDWRIGHT_HOSTS": "2", "SHARDWRIGHT_HOST": "1"}, HostPlace(1, 2, "a:1")),
        (
            {"SHARDWRIGHT_COORDINATOR": "a", "SHARDWRIGHT_HOSTS": "2", "JOB_COMPLETION_INDEX": "0"},
            HostPlace(0, 2, "a:8476"),
        ),
        ({"SHARDWRIGHT_COORDINATOR": "a", "SHARDWRIGHT_HOSTS": "1"}, HostPlace()),
        # Each slice is a Job of its own.
        (
            {**SLICES, "SHARDWRIGHT_COORDINATOR": "a", "SHARDWRIGHT_HOSTS": "6", "JOB_COMPLETION_INDEX": "1"},
            HostPlace(5, 6, "a:8476"),
        ),
        (vertex("workerpool0", 0), HostPlace(0, 3, "chief:8476")),
        (vertex("workerpool1", 1), HostPlace(2, 3, "chief:8476")),
        (SLICE, HostPlace(1, 2, "t0.x:8476")),
        # A slice of several machines is one replica of a CustomJob.
        ({**vertex("workerpool0", 0, {"workerpool0": ["chief:2222"]}), **SLICE}, HostPlace(1, 2, "t0.x:8476")),
        (vertex("workerpool0", 0, {"workerpool0": ["chief:2222"]}), HostPlace()),
        ({"TPU_WORKER_HOSTNAMES": "localhost", "TPU_WORKER_ID": "0"}, HostPlace()),
        # The hosts of all slices are numbered slice by slice.
        ({**SLICE, **SLICES}, HostPlace(5, 6, "first.x:8476")),
        ({**SLICE, **SLICES, "MEGASCALE_SLICE_ID": "0", "TPU_WORKER_ID": "0"}, HostPlace(0, 6, "first.x:8476")),
        ({"TPU_WORKER_HOSTNAMES": "localhost", "TPU_WORKER_ID": "0", **SLICES}, HostPlace(2, 3, "first.x:8476")),
        (SLICES, HostPlace(2, 3, "first.x:8476")),
        ({**SLICE, **SLICES, "MEGASCALE_NUM_SLICES": "1", "MEGASCALE_SLICE_ID": "0"}, HostPlace(1, 2, "t0.x:8476")),
    ],
)
def test_the_place_is_in_the_variables_of_each_service(environment, wanted):
    assert this_host(environment) == wanted
    assert this_host(environment, wanted.count) == wanted
    assert wanted.publishes == (wanted.index == 0)


@pytest.mark.parametrize(
    ("environment", "problem"),
    [
        ({"SHARDWRIGHT_HOSTS": "2"}, "SHARDWRIGHT_COORDINATOR: not set"),
        ({"SHARDWRIGHT_COORDINATOR": "a", "SHARDWRIGHT_HOSTS": "two"}, "SHARDWRIGHT_HOSTS: 'two' is not a number"),
        ({"SHARDWRIGHT_COORDINATOR": "a", "SHARDWRIGHT_HOSTS": "2"}, "JOB_COMPLETION_INDEX: '' is not a number"),
        ({"SHARDWRIGHT_COORDINATOR": "a", "SHARDWRIGHT_HOSTS": "2", "SHARDWRIGHT_HOST": "2"}, "host 2 of 2"),
        ({"CLUSTER_SPEC": "{}"}, "CLUSTER_SPEC: not readable"),
        (vertex("evaluator", 0), "CLUSTER_SPEC: not readable"),
        ({**SLICE, **SLICES, "MEGASCALE_SLICE_ID": "3"}, "MEGASCALE_SLICE_ID: slice 3 of 3"),
        ({**SLICE, **SLICES, "MEGASCALE_COORDINATOR_ADDRESS": ""}, "MEGASCALE_COORDINATOR_ADDRESS is ''"),
        ({**SLICE, **SLICES, "MEGASCALE_NUM_SLICES": "two"}, "MEGASCALE_NUM_SLICES: 'two' is not a number"),
        ({**SLICE, **SLICES, "TPU_WORKER_ID": "2"}, "TPU_WORKER_ID: host 2 of the 2"),
    ],
)
def test_contradictions_are_reported(environment, problem):
    with pytest.raises(UsageError, match=problem):
        this_host(environment)


@given(st.integers(2, 5), st.integers(1, 4))
def test_of_several_slices_every_host_has_a_number_and_one_publishes(slices, hosts):
    names = {"TPU_WORKER_HOSTNAMES": ",".join(f"t{host}" for host in range(hosts))}
    places = [
        this_host({**names, **SLICES, "MEGASCALE_NUM_SLICES": str(slices), "MEGASCALE_SLICE_ID": str(number),
                   "TPU_WORKER_ID": str(host)})
        for number in range(slices) for host in range(hosts)
    ]  # fmt: skip
    assert [place.index for place in places] == list(range(slices * hosts))
    assert [place.publishes for place in places].count(True) == 1


def test_the_number_of_hosts_is_that_of_the_configuration():
    with pytest.raises(ConfigError, match="trainer.hosts: 4, but this machine is one of 1"):
        this_host({}, 4)


@pytest.mark.parametrize(
    ("attributes", "wanted"),
    [
        (
            {"agent-worker-number": "1", "worker-network-endpoints": "a:8470:10.0.0.2,b:8470:10.0.0.3"},
            HostPlace(1, 2, "10.0.0.2:8476"),
        ),
        ({"agent-worker-number": "0"}, None),
        ({}, None),
    ],
)
def test_machines_of_a_slice_ask_their_metadata_server(attributes, wanted):
    """As on Cloud TPU, where no variable is set; asked only if several hosts are expected."""
    asked = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.headers["Metadata-Flavor"])
            found = attributes.get(self.path.removeprefix("/computeMetadata/v1/instance/attributes/"))
            data = (found or "not found").encode()
            self.send_response(200 if found else 404)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    environment = {"GCE_METADATA_HOST": f"127.0.0.1:{server.server_port}"}
    try:
        assert this_host(environment) == this_host(environment, 1) == HostPlace()
        assert asked == []
        if wanted is None:
            with pytest.raises(ConfigError, match="one of 1"):
                this_host(environment, 2)
        else:
            assert this_host(environment, wanted.count) == wanted
        assert set(asked) == {"Google"}
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@given(st.integers(2, 99).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n - 1))))
def test_a_worker_has_the_same_place(hosts):
    count, index = hosts
    place = HostPlace(index, count, "a:1")
    assert this_host(place.to_environment()) == place
    assert HostPlace().to_environment() == {}
