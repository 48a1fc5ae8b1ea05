"""The most memory that a process has had."""

from __future__ import annotations

import re
from pathlib import Path


def peak_memory(process: int | str = "self") -> int:
    """Bytes of the most memory that a running process has had resident at a time (Linux).

    Not `getrusage`: its figure outlives `exec`, so a process that was started by a large one tells that one's.
    """
    status = Path(f"/proc/{process}/status").read_text(encoding="ascii", errors="replace")
    found = re.search(r"^VmHWM:\s+(\d+) kB$", status, re.MULTILINE)
    assert found is not None, f"/proc/{process}/status holds no VmHWM"
    return int(found[1]) * 1024
