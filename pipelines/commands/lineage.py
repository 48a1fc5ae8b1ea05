"""`shardwright lineage`: shows what a model or a dataset descends from."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Iterator, Mapping
from typing import Any

from shardwright.display.html import plain
from shardwright.lineage.ancestry import Artifact, Family, family_of, read_artifact, run_root_of
from shardwright.pipelines.commands.results import finish

_DIGITS = 12
_LONGEST = 160
_LINE = 1000


def run(options: Namespace) -> int:
    """Shows all ancestors; returns 1 if one of them has changed."""
    start, family = family_of(options.path, options.search)
    described = describe(start, family)
    run_root = run_root_of(start.place)
    if run_root is not None:
        from shardwright.pipelines.runs.metadata_store import steps_to

        described["steps"] = [step._asdict() for step in steps_to(run_root, start.place)]
    lines = (*_lines(start, family, described["artifacts"]), *_further(described))
    return finish(options, described, *lines, failed=bool(described["problems"]))


def describe(start: Artifact, family: Family) -> dict[str, Any]:
    """Returns the ancestry of an artifact as plain values.

    Returns:
        `artifact`: the place asked for; `artifacts`: it and its ancestors, each with `parents` (role -> fingerprint and
        place, `null` where it was not found); `evaluations` of it; `missing` and `problems`, one sentence each.
    """
    rows, missing, problems = [], [], []
    for artifact in (read_artifact(ancestor.place) for ancestor in family.ancestors(start)):
        parents: dict[str, dict[str, str | None]] = {}
        for role, value in sorted(artifact.parents.items()):
            parent = family.find(role, value) if role in artifact.links else None
            parents[role] = {"fingerprint": value, "place": parent.place if parent else None}
            if role in artifact.links and parent is None:
                missing.append(f"{role} {value[:_DIGITS]} of {artifact.place} is in none of the places searched")
        problems += [f"{artifact.place}: {problem}" for problem in artifact.problems]
        rows.append({**vars(artifact), "problems": list(artifact.problems), "parents": parents, "data": artifact.data})
    if missing:
        # The missing parent may be a damaged artifact.
        seen = {row["place"] for row in rows}
        problems += [
            f"{artifact.place}: {problem}"
            for artifact in family.artifacts.values()
            if artifact.place not in seen
            for problem in artifact.problems
        ]
    evaluations = [{"place": one.place, "parents": dict(one.parents)} for one in family.evaluations(start)]
    described = {"artifact": start.place, "artifacts": rows, "evaluations": evaluations}
    return {**described, "missing": missing, "problems": problems}


def _lines(start: Artifact, family: Family, rows: list[dict[str, Any]]) -> Iterator[str]:
    shown: set[str] = set()
    problems = {row["place"]: row["problems"] for row in rows}

    def block(artifact: Artifact, role: str, depth: int) -> Iterator[str]:
        space = "  " * depth
        name = f"{role}: " if role else ""
        again = artifact.place in shown
        shown.add(artifact.place)
        head = f"{space}{name}{artifact.kind} {(artifact.digest or artifact.fingerprint)[:_DIGITS]}"
        yield plain(f"{head} {'(above)' if again else artifact.place}", _LINE)
        if again:
            return
        for problem in problems[artifact.place]:
            yield plain(f"{space}  ! {problem}", _LINE)
        for what, value in _facts(artifact):
            yield plain(f"{space}  {what}: {value}", _LINE)
        for role, value in artifact.links.items():
            parent = family.find(role, value)
            if parent is None:
                yield plain(f"{space}  {role}: {value[:_DIGITS]} was not found; --search DIR looks further", _LINE)
            else:
                yield from block(parent, role, depth + 1)

    return block(start, "", 0)


def _facts(artifact: Artifact) -> Iterator[tuple[str, str]]:
    if artifact.data:
        yield "data", artifact.data[:_DIGITS]
    # In empty sections all options have their defaults.
    recipe = {name: value for name, value in artifact.recipe.items() if value not in ({}, [], None)}
    text = json.dumps(recipe, sort_keys=True, ensure_ascii=False)
    yield "recipe", text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
    yield "versions", ", ".join(f"{name} {version}" for name, version in sorted(artifact.versions.items()))
    if artifact.image:
        yield "image", artifact.image
    for role, value in sorted(artifact.parents.items()):
        if role not in artifact.links and role != "input":
            yield role, value[:_DIGITS]


def _further(described: Mapping[str, Any]) -> Iterator[str]:
    for evaluation in described["evaluations"]:
        baseline = evaluation["parents"].get("baseline")
        compared = f", compared with {baseline[:_DIGITS]}" if baseline else ", compared with none"
        yield plain(f"evaluated: {evaluation['place']}{compared}", _LINE)
    if described.get("steps"):
        yield "steps of the runs that made it, from the metadata store:"
    for step in described.get("steps", ()):
        inputs = ", ".join(step["inputs"]) or "nothing"
        yield plain(f"  {step['execution']:>4} {step['component']}: {inputs} -> {', '.join(step['outputs'])}", _LINE)
    if described["problems"]:
        yield f"{len(described['problems'])} contradictions, so this lineage is not reliable:"
    for problem in described["problems"]:
        yield plain(f"  {problem}", _LINE)
