"""What an error of TFX or Beam says, in a line."""

from __future__ import annotations

import re

from shardwright.errors import ShardwrightError

# What Beam adds to the message of a worker's error.
_WHERE = re.compile(r"\s*\[while running '.*'\]\Z", re.DOTALL)


def ours(error: BaseException) -> ShardwrightError | None:
    """The error of ours behind an error, where Beam has wrapped it in one of its own."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, ShardwrightError):
            seen.args = tuple(_WHERE.sub("", one) if isinstance(one, str) else one for one in seen.args)
            return seen
        seen = seen.__cause__ or seen.__context__
    return None


def last_line(error: BaseException) -> str:
    """What an error says; Beam's are whole tracebacks, in which the last line is the error."""
    lines = [line for line in str(error).strip().splitlines() if not line.startswith("[while running")]
    return lines[-1].strip()[:300] if lines else "(no message)"
