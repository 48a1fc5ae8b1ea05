"""Shared by the end-to-end tests: the command as a user calls it, and what it printed."""

import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

SHARDWRIGHT = str(Path(sys.executable).with_name("shardwright"))


@dataclass
class Run:
    """A finished call of `shardwright run`."""

    code: int
    out: str
    err: str

    @property
    def nodes(self) -> dict[str, str]:
        """Component -> `cached`, `failed` or its seconds."""
        return dict(re.findall(r"^  (\w+) +(cached|failed|[0-9.]+ s)$", self.out, re.MULTILINE))

    @property
    def cached(self) -> set[str]:
        return {node for node, outcome in self.nodes.items() if outcome == "cached"}


def run(folder: Path, *arguments: str) -> Run:
    done = subprocess.run([SHARDWRIGHT, *arguments], cwd=folder, capture_output=True, text=True, check=False)
    print(done.stdout, done.stderr)
    return Run(done.returncode, done.stdout, done.stderr)
