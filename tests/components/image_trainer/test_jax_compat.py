"""Hosts exchange bytes through the store of their coordinator; here the store is in memory, and hosts are threads."""

from concurrent.futures import ThreadPoolExecutor
from threading import Condition

import pytest
from compat import checked_with

from shardwright.components.image_trainer.devices.hosts import HostPlace
from shardwright.components.image_trainer.training import jax_compat
from shardwright.components.image_trainer.training.jax_compat import CoordinatorStore


class Client:
    """The methods of JAX's client that are used."""

    def __init__(self):
        self.values = {}
        self._changed = Condition()

    def key_value_set(self, key, value):
        with self._changed:
            assert key not in self.values
            self.values[key] = value
            self._changed.notify_all()

    def blocking_key_value_get(self, key, timeout_ms):
        with self._changed:
            assert self._changed.wait_for(lambda: key in self.values, timeout=min(20, timeout_ms / 1000))
            return self.values[key]

    def key_value_delete(self, key):
        with self._changed:
            del self.values[key]


def test_the_version_is_one_that_was_checked():
    checked_with("jax", ">=0.4.34,<0.13")


def test_the_coordinator_of_jax_has_these_methods():
    # The extension has another name in newer versions.
    here = vars(jax_compat.distributed)
    client = here.get("_jax", here.get("xla_extension")).DistributedRuntimeClient
    used = {name for name in vars(Client) if not name.startswith("_")}
    assert len(used) == 3
    assert used <= set(dir(client))
    assert jax_compat.distributed.global_state.client is None


@pytest.fixture
def client(monkeypatch):
    made = Client()
    monkeypatch.setattr(jax_compat.distributed.global_state, "client", made)
    monkeypatch.setattr(jax_compat, "_VALUE_CHARACTERS", 10)
    return made


def test_all_hosts_get_the_bytes_of_each_and_of_the_first(client):
    def exchange(index):
        store = CoordinatorStore(HostPlace(index, 3, "127.0.0.1:1"))
        of_all = [store.from_all(bytes([index]) * length) for length in (0, 1, 40)]
        return of_all, store.from_first(b"first" * 9 if index == 0 else b""), store.from_all(b"end")

    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(exchange, range(3)))
    expected = [[bytes([index]) * length for index in range(3)] for length in (0, 1, 40)]
    assert found == [(expected, b"first" * 9, [b"end"] * 3)] * 3
    # Only the last exchange is still there.
    assert {key.split("/")[1] for key in client.values} == {"5"}
