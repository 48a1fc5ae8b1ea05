"""`shardwright preflight`: lists what would go wrong on a TPU, as a table or as JSON, before you rent one."""

from __future__ import annotations

import argparse
import dataclasses
from typing import TYPE_CHECKING, Any

from shardwright.pipelines.commands.parsers import Commands, refuse_unused
from shardwright.pipelines.commands.results import print_json
from shardwright.running.progress import counted
from shardwright.text.escaping import escape

if TYPE_CHECKING:
    from shardwright.pipelines.preflight.rule_report import PreflightReport
    from shardwright.pipelines.preflight.run_facts import Facts

_GAP = "  "


def add(commands: Commands) -> None:
    """Adds the command to the parser of `shardwright`."""
    preflight = commands.add("preflight")
    preflight.add_argument("config", metavar="CONFIG", help="YAML file")
    preflight.add_argument("--tpu", required=True, metavar="SLICE", help="generation and topology, v5e-2x4")
    preflight.add_argument("--hosts", type=int, metavar="N", help="machines (default: the fewest of such a slice)")
    preflight.add_argument("--dataset", metavar="DIR", help="dataset to train on; adds rules and tries the loader")
    preflight.add_argument("--needed", type=float, metavar="N", help="images/s that the slice needs")
    preflight.add_argument("--host-memory", type=float, metavar="GB", help="of one machine (default: from a table)")
    preflight.add_argument("--host-processors", type=int, metavar="N", help="of one machine (default: from a table)")
    preflight.add_argument("--seconds", type=float, default=3.0, metavar="S", help="time for the loader (default 3)")
    preflight.add_argument("--json", action="store_true", help="print the findings as JSON")
    preflight.set_defaults(command=_preflight)


def _preflight(options: argparse.Namespace) -> int:
    from shardwright.config import load_config
    from shardwright.errors import UsageError
    from shardwright.pipelines.runs.logs import quiet_libraries

    with quiet_libraries():
        from shardwright.pipelines.preflight.measure import gather, with_dataset
        from shardwright.pipelines.preflight.rule_report import check
        from shardwright.pipelines.preflight.rules import RULES

    for name in ("hosts", "needed", "host_memory", "host_processors", "seconds"):
        value = getattr(options, name)
        if value is not None and not 0 < value < float("inf"):
            raise UsageError(f"--{name.replace('_', '-')}: {value:g} is not above 0. Give a number above 0.")
    if options.dataset is None:
        refuse_unused(options, "a call without --dataset", "--seconds")
    with quiet_libraries():
        facts = gather(
            load_config(options.config),
            tpu=options.tpu,
            hosts=options.hosts,
            needed=options.needed,
            host_memory=None if options.host_memory is None else options.host_memory * 1e9,
            host_processors=options.host_processors,
        )
    if options.dataset is not None:
        facts = with_dataset(facts, options.dataset, seconds=options.seconds)
    report = check(RULES, facts)
    if options.json:
        print_json(_as_dict(report, facts))
    else:
        print(_text(report, facts))
    return 1 if report.failed else 0


def _as_dict(report: PreflightReport, facts: Facts) -> dict[str, Any]:
    head = {"slice": facts.slice.name, "hosts": facts.hosts, "images_per_second": facts.measured}
    return {"ready": not report.failed, **head, **dataclasses.asdict(report)}


def _text(report: PreflightReport, facts: Facts) -> str:
    rows = [("", "rule", "where", "what")]
    for finding in report.findings:
        what = f"{finding.problem}. {finding.fix}"
        rows.append((finding.severity, finding.rule, finding.where, escape(what)))
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    lines = [
        _GAP.join([*(f"{cell:{width}}" for cell, width in zip(row, widths, strict=False)), row[3]])
        for row in (rows if report.findings else [])
    ]
    lines += [
        f"not checked, {why}: {', '.join(rule for rule, reason in report.unchecked.items() if reason == why)}"
        for why in dict.fromkeys(report.unchecked.values())
    ]
    if facts.measured is not None:
        lines.append(f"loader: {facts.measured:,.0f} images/s a host, on {facts.processors} processors here")
    errors = sum(finding.severity == "error" for finding in report.findings)
    lines.append(
        f"{facts.slice.name} with {counted(facts.hosts, 'host')}: {counted(errors, 'error')}, "
        f"{counted(len(report.findings) - errors, 'warning')}, {counted(len(report.passed), 'rule')} passed"
    )
    return "\n".join(lines)
