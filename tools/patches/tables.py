"""Reads the lists of patches, and shows progress."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from patched import Outcome

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def read(path: Path) -> dict[str, Any]:
    """Returns the content of a TOML file."""
    content: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    return content


def progress(outcomes: Iterator[tuple[int, Outcome]], count: int) -> Iterator[tuple[int, Outcome]]:
    """Counts outcomes on a terminal while they arrive."""
    for done, outcome in enumerate(outcomes, 1):
        if sys.stderr.isatty():
            print(f"\r{done}/{count} ", end="\n" if done == count else "", file=sys.stderr, flush=True)
        yield outcome
