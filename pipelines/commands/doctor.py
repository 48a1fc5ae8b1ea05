"""`shardwright doctor`: describes this machine, prints versions and tries to import everything."""

from __future__ import annotations

import dataclasses
from argparse import Namespace

from shardwright.pipelines.commands.results import finish
from shardwright.pipelines.installation import diagnose
from shardwright.version import __version__


def run(options: Namespace) -> int:
    """Describes this machine; returns 1 if something is missing."""
    found = diagnose()
    lines = [
        f"shardwright {__version__}, Python {found.python}",
        f"{found.system}, {found.processors} processors",
        *(f"  {check.subject:<28}{check.state:<12}{check.detail}" for check in found.machine),
    ]
    for package in found.packages:
        extra = f"optional: pip install 'shardwright[{package.extra}]'" if package.extra else "ok"
        lines.append(f"  {package.package:<28}{package.version or '-':<12}{package.problem or extra}")
    row = {"healthy": found.healthy, **dataclasses.asdict(found)}
    return finish(options, row, *lines, failed=not found.healthy)
