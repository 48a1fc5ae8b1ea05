"""For tests of input that once hung a run or used up its memory: the test fails, and the suite goes on."""

import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

_SECONDS = 120
_MORE_MEMORY = 2 << 30


class Hung(BaseException):
    """The block has not ended; not an `Exception`, so that no handler takes it for one of the input."""


def _stop(number: int, frame: FrameType | None) -> None:
    raise Hung


@contextmanager
def guarded() -> Iterator[None]:
    """Ends the block after two minutes, and refuses it more than 2 GiB of further memory."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    before = signal.signal(signal.SIGALRM, _stop)
    signal.alarm(_SECONDS)
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + _MORE_MEMORY, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
