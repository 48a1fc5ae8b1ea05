"""The part of JAX that is not public and that we use: the store of its coordinator. Checked with JAX 0.4.34 to 0.12.

`tests/components/image_trainer/test_jax_compat.py` fails when a release of JAX changes it.
"""

from __future__ import annotations

import base64
from typing import Any

from jax._src import distributed

from shardwright.components.image_trainer.devices.hosts import HostPlace

# A value in the coordinator's store: a message to it may have 4 MB.
_VALUE_CHARACTERS = 1 << 20
# A host that is gone ends the others long before: the coordinator misses its heartbeats.
_LONGEST_WAIT_MS = 24 * 3600 * 1000


class CoordinatorStore:
    """Exchanges bytes between hosts through their coordinator's store of keys and values.

    Gloo, JAX's collectives between CPUs, mixes up consecutive messages of different lengths now and then when a host
    has several devices, and ends the process: "op.preamble.length <= op.nbytes", about 1 of 30 runs with jaxlib 0.4.34.
    Values are text because that version ends the process, too, when it returns bytes.

    Args:
        place: this host among all; all hosts make the same exchanges in the same order.
    """

    def __init__(self, place: HostPlace) -> None:
        self._place = place
        self._client: Any = distributed.global_state.client
        self._exchanges = 0
        self._written: list[str] = []

    def from_first(self, data: bytes) -> bytes:
        """Returns host 0's bytes on all hosts."""
        self._exchanges += 1
        if self._place.publishes:
            self._write(0, data)
            return data
        return self._read(0)

    def from_all(self, data: bytes) -> list[bytes]:
        """Returns the bytes of every host, in the order of the hosts."""
        self._exchanges += 1
        earlier, self._written = self._written, []
        self._write(self._place.index, data)
        found = [self._read(host) for host in range(self._place.count)]
        # All hosts have begun this exchange, so nobody waits for a value of an earlier one.
        for key in earlier:
            self._client.key_value_delete(key)
        return found

    def _key(self, host: int) -> str:
        return f"shardwright/{self._exchanges}/{host}"

    def _write(self, host: int, data: bytes) -> None:
        text = base64.b64encode(data).decode()
        parts = [text[begin : begin + _VALUE_CHARACTERS] for begin in range(0, len(text), _VALUE_CHARACTERS)]
        values = {f"{self._key(host)}/{number}": part for number, part in enumerate(parts)}
        for key, value in {**values, f"{self._key(host)}/parts": str(len(parts))}.items():
            self._client.key_value_set(key, value)
            self._written.append(key)

    def _read(self, host: int) -> bytes:
        def value(name: object) -> str:
            found: str = self._client.blocking_key_value_get(f"{self._key(host)}/{name}", _LONGEST_WAIT_MS)
            return found

        return base64.b64decode("".join(value(number) for number in range(int(value("parts")))))
