"""`shardwright doctor`: describes this machine, prints versions and tries to import everything."""

from __future__ import annotations

import argparse
import dataclasses

from shardwright.pipelines.commands.parsers import Commands
from shardwright.pipelines.commands.results import print_json
from shardwright.version import __version__


def add(commands: Commands) -> None:
    """Adds the command to the parser of `shardwright`."""
    doctor = commands.add("doctor")
    doctor.add_argument("--json", action="store_true", help="print them as JSON")
    doctor.set_defaults(command=_doctor)


def _doctor(options: argparse.Namespace) -> int:
    from shardwright.pipelines.installation import diagnose

    found = diagnose()
    if options.json:
        print_json({"healthy": found.healthy, **dataclasses.asdict(found)})
    else:
        print(f"shardwright {__version__}, Python {found.python}")
        print(f"{found.system}, {found.processors} processors")
        for check in found.machine:
            print(f"  {check.subject:<28}{check.state:<12}{check.detail}")
        for package in found.packages:
            extra = f"optional: pip install 'shardwright[{package.extra}]'" if package.extra else "ok"
            print(f"  {package.package:<28}{package.version or '-':<12}{package.problem or extra}")
    return 0 if found.healthy else 1
