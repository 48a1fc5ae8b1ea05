"""`shardwright doctor`: describes this machine, prints versions and tries to import everything."""

from __future__ import annotations

import dataclasses
from argparse import Namespace

from shardwright.pipelines.commands.results import finish
from shardwright.pipelines.installation import diagnose
from shardwright.version import __version__


def run(options: Namespace) -> int:
    """Describes this machine; returns 1 if something is missing."""
    diagnosis = diagnose()
    lines = [
        f"shardwright {__version__}, Python {diagnosis.python}",
        f"{diagnosis.system}, {diagnosis.processors} processors",
        *(f"  {check.subject:<28}{check.state:<12}{check.detail}" for check in diagnosis.machine),
    ]
    for package in diagnosis.packages:
        extra = f"optional: pip install 'shardwright[{package.extra}]'" if package.extra else "ok"
        lines.append(f"  {package.package:<28}{package.version or '-':<12}{package.problem or extra}")
    row = {"healthy": diagnosis.healthy, **dataclasses.asdict(diagnosis)}
    return finish(options, row, *lines, failed=not diagnosis.healthy)
