"""`shardwright lineage`: shows what a model or a dataset descends from."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from shardwright.pipelines.commands.parsers import Commands
from shardwright.pipelines.commands.results import print_json

if TYPE_CHECKING:
    from shardwright.lineage.ancestry import Artifact, Family

_DIGITS = 12
_LONGEST = 160
_LINE = 1000


def add(commands: Commands) -> None:
    """Adds the command to the parser of `shardwright`."""
    lineage = commands.add("lineage")
    lineage.add_argument(
        "path", metavar="PATH", help="a model, a dataset, another artifact, or a run's folder; or a URL"
    )
    lineage.add_argument(
        "--search", action="append", default=[], metavar="DIR", help="also look for parents below this folder or URL"
    )
    lineage.add_argument("--json", action="store_true", help="print all of it as JSON")
    lineage.set_defaults(command=_lineage)


def _lineage(options: argparse.Namespace) -> int:
    from shardwright.lineage.ancestry import family_of, run_root_of

    start, family = family_of(options.path, options.search)
    described = describe(start, family)
    run_root = run_root_of(start.place)
    if run_root is not None:
        from shardwright.pipelines.runs.metadata_store import steps_to

        described["steps"] = [step._asdict() for step in steps_to(run_root, start.place)]
    if options.json:
        print_json(described)
    else:
        print("\n".join([*_lines(start, family, described["artifacts"]), *_further(described)]))
    return 1 if described["problems"] else 0


def describe(start: Artifact, family: Family) -> dict[str, Any]:
    """Returns the ancestry of an artifact as plain values.

    Returns:
        `artifact`: the place asked for; `artifacts`: it and its ancestors, each with `parents` (role -> fingerprint and
        place, `null` where it was not found); `evaluations` of it; `missing` and `problems`, one sentence each.
    """
    from shardwright.lineage.ancestry import read_artifact

    rows, missing, problems = [], [], []
    for artifact in (read_artifact(one.place) for one in family.ancestors(start)):
        parents: dict[str, dict[str, str | None]] = {}
        for role, value in sorted(artifact.parents.items()):
            found = family.find(role, value) if role in artifact.links else None
            parents[role] = {"fingerprint": value, "place": found.place if found else None}
            if role in artifact.links and found is None:
                missing.append(f"{role} {value[:_DIGITS]} of {artifact.place} is in none of the places searched")
        problems += [f"{artifact.place}: {problem}" for problem in artifact.problems]
        rows.append({**vars(artifact), "problems": list(artifact.problems), "parents": parents, "data": artifact.data})
    if missing:
        # The missing parent may be a damaged artifact.
        seen = {row["place"] for row in rows}
        problems += [
            f"{one.place}: {problem}"
            for one in family.artifacts.values()
            if one.place not in seen
            for problem in one.problems
        ]
    evaluations = [{"place": one.place, "parents": dict(one.parents)} for one in family.evaluations(start)]
    return {
        "artifact": start.place,
        "artifacts": rows,
        "evaluations": evaluations,
        "missing": missing,
        "problems": problems,
    }


def _lines(start: Artifact, family: Family, rows: list[dict[str, Any]]) -> Iterator[str]:
    from shardwright.display.html import plain

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
    yield "recipe", _cut(json.dumps(_plain_values(artifact.recipe), sort_keys=True, ensure_ascii=False))
    yield "versions", ", ".join(f"{name} {version}" for name, version in sorted(artifact.versions.items()))
    if artifact.image:
        yield "image", artifact.image
    for role, value in sorted(artifact.parents.items()):
        if role not in artifact.links and role != "input":
            yield role, value[:_DIGITS]


def _further(described: Mapping[str, Any]) -> Iterator[str]:
    from shardwright.display.html import plain

    for one in described["evaluations"]:
        baseline = one["parents"].get("baseline")
        compared = f", compared with {baseline[:_DIGITS]}" if baseline else ", compared with none"
        yield plain(f"evaluated: {one['place']}{compared}", _LINE)
    if described.get("steps"):
        yield "steps of the runs that made it, from the metadata store:"
    for step in described.get("steps", ()):
        inputs = ", ".join(step["inputs"]) or "nothing"
        yield plain(f"  {step['execution']:>4} {step['component']}: {inputs} -> {', '.join(step['outputs'])}", _LINE)
    if described["problems"]:
        yield f"{len(described['problems'])} contradictions, so this lineage is not reliable:"
    for problem in described["problems"]:
        yield plain(f"  {problem}", _LINE)


def _plain_values(recipe: Mapping[str, Any]) -> dict[str, Any]:
    """Leaves out the empty sections of a recipe, in which all options have their defaults."""
    return {name: value for name, value in recipe.items() if value not in ({}, [], None)}


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
