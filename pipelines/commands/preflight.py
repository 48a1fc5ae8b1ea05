"""`shardwright preflight`: lists what would go wrong on a TPU, as a table or as JSON, before you rent one."""

from __future__ import annotations

import dataclasses
from argparse import Namespace
from collections.abc import Iterator
from typing import TYPE_CHECKING

from shardwright.errors import UsageError
from shardwright.pipelines.commands.parsers import refuse_unused
from shardwright.pipelines.commands.results import finish, table
from shardwright.pipelines.commands.settings import config_words, configuration
from shardwright.running.progress import counted

if TYPE_CHECKING:
    from shardwright.pipelines.preflight.rule_report import PreflightReport
    from shardwright.pipelines.preflight.run_facts import Facts


def run(options: Namespace) -> int:
    """Checks a configuration against a slice; returns 1 if a training would not work."""
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
            configuration(options),
            tpu=options.tpu,
            hosts=options.hosts,
            needed=options.needed,
            host_memory=None if options.host_memory is None else options.host_memory * 1e9,
            host_processors=options.host_processors,
        )
    if options.dataset is not None:
        facts = with_dataset(facts, options.dataset, seconds=options.seconds)
    report = check(RULES, facts)
    head = {
        "slice": facts.slice.name,
        "slices": facts.slices,
        "chips": facts.chips,
        "hosts": facts.hosts,
        "images_per_second": facts.measured,
    }
    row = {"ready": not report.failed, **head, **dataclasses.asdict(report)}
    following = (
        "" if report.failed else f"shardwright compile {config_words(options)} --target vertex|kubeflow --out FILE"
    )
    return finish(options, row, *_lines(report, facts), failed=report.failed, following=following)


def _lines(report: PreflightReport, facts: Facts) -> Iterator[str]:
    rows = [("", "rule", "where", "what")]
    rows += [
        (finding.severity, finding.rule, finding.where, f"{finding.problem}. {finding.fix}")
        for finding in report.findings
    ]
    if report.findings:
        yield table(rows)
    for why in dict.fromkeys(report.unchecked.values()):
        yield f"not checked, {why}: {', '.join(rule for rule, reason in report.unchecked.items() if reason == why)}"
    if facts.measured is not None:
        yield f"loader: {facts.measured:,.0f} images/s a host, on {facts.processors} processors here"
    errors = sum(finding.severity == "error" for finding in report.findings)
    pools = f"{facts.slices} node pools of " if facts.slices > 1 else ""
    yield (
        f"needs {pools}{facts.slice.hosts} {facts.slice.machine} with topology {facts.slice.topology}: a quota of "
        f"{facts.chips} {facts.slice.generation} {'chips' if facts.chips > 1 else 'chip'}"
    )
    yield (
        f"{facts.name} with {counted(facts.hosts, 'host')}: {counted(errors, 'error')}, "
        f"{counted(len(report.findings) - errors, 'warning')}, {counted(len(report.passed), 'rule')} passed"
    )
