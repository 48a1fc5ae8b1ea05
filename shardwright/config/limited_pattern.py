"""Regular expressions of the configuration: a match that takes too long ends the run instead of hanging it.

Nested repetitions such as `(a+)+$` take twice as long for each further character. Python's `re` has no limit, but it
looks for signals while it matches. So a timer of processor time is set for each match in the main thread, where Python
handles signals; elsewhere there is no limit.
"""

from __future__ import annotations

import re
import signal
import threading
from types import FrameType

from shardwright.errors import ConfigError, UsageError

_SECONDS = 10.0
_SHOWN = 100


def groups_of(path: str, pattern: str) -> int:
    """Returns the number of groups of a regular expression.

    Args:
        path: the YAML path that it comes from.
        pattern: the expression.

    Raises:
        ConfigError: it is none.
    """
    try:
        return re.compile(pattern).groups
    except re.error as error:
        raise ConfigError(path, f"{pattern!r} is not a regular expression ({error})", "Fix it.") from None


class _TooLong(Exception):
    """The timer of a match has run out."""


class LimitedPattern:
    """A compiled regular expression whose searches end.

    Args:
        pattern: the regular expression.
        option: the YAML path that it comes from, for messages.
    """

    def __init__(self, pattern: str, option: str) -> None:
        self.pattern = pattern
        self._compiled = re.compile(pattern)
        self.groupindex = self._compiled.groupindex
        self._option = option

    def search(self, text: str) -> re.Match[str] | None:
        """Searches a text.

        Raises:
            UsageError: it took more than 10 seconds of processor time.
        """
        if threading.current_thread() is not threading.main_thread():
            return self._compiled.search(text)
        before = signal.signal(signal.SIGVTALRM, _stop)
        try:
            signal.setitimer(signal.ITIMER_VIRTUAL, _SECONDS)
            try:
                return self._compiled.search(text)
            finally:
                signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        except _TooLong:
            raise UsageError(
                f"{self._option}: {self.pattern!r} takes more than {_SECONDS:g} s for {text[:_SHOWN]!r}. Write it "
                "without repetitions inside repetitions, such as (a+)+, or limit them, such as [a-z]{1,20}."
            ) from None
        finally:
            signal.signal(signal.SIGVTALRM, before)


def _stop(number: int, frame: FrameType | None) -> None:
    raise _TooLong
