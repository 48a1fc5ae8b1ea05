"""Being told to end: a training then saves its state first.

Kubernetes and Vertex AI send SIGTERM some seconds before they take a machine away; a terminal sends SIGINT.
"""

from __future__ import annotations

import signal
from types import FrameType

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
