"""Being told to end: a training then saves its state first.

Kubernetes and Vertex AI send SIGTERM some seconds before they take a machine away; a terminal sends SIGINT.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from types import FrameType
from typing import Any

from shardwright.components.image_trainer.checkpoints import pause
from shardwright.errors import ShardwrightError

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Preemption:
    """Notes that the process was told to end.

    Attributes:
        signal: name of the first signal that came; empty before.
    """

    def __init__(self) -> None:
        self.signal = ""

    def listen(self) -> None:
        """Takes the signals from here on; to be called in the main thread."""
        for number in _SIGNALS:
            signal.signal(number, self._note)

    def _note(self, number: int, frame: FrameType | None) -> None:
        del frame
        self.signal = self.signal or signal.Signals(number).name


def waiting(preemption: Preemption, send: Callable[[dict[str, Any]], None]) -> Callable[[], None]:
    """What is to be done again and again while another process is at the same training.

    Args:
        preemption: whether this one was told to end; then it does.
        send: is told once that, and for what, it waits.
    """
    told = False

    def wait() -> None:
        nonlocal told
        if preemption.signal:
            raise ShardwrightError(
                f"the training was told to end ({preemption.signal}) while it waited for another process that is at "
                "the same one. Run it again."
            )
        if not told:
            told = True
            send({"note": "another process is at the same training: this one waits until that has ended"})
        pause()

    return wait
