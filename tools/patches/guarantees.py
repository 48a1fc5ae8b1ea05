"""Breaks each guarantee of docs/trust/guarantees.md in a copy of the tree; the test named there must then fail.

`guarantees.toml` lists at least one patch per row of the table and the cheapest test that fails with it. The test must
pass without the patch. The exit code is 1 when a test does not fail, and 2 when the list does not fit the page or the
tree.
"""

import argparse
import re
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import patched
import tables
from patched import Job, Outcome, Patch, WrongList

LIST = Path(__file__).with_name("guarantees.toml")
_ROW = re.compile(r"^\| (?P<guarantee>.+) \| (?P<tests>[^|]+) \|$")
_NAMED = re.compile(r"`([^`]+)`")


@dataclass(frozen=True)
class Break:
    """A patch that breaks a guarantee, and the test that fails with it."""

    guarantee: str
    how: str
    patch: Patch
    test: str
    slow: bool = False


@dataclass(frozen=True)
class List:
    """The content of `guarantees.toml`: the place of the table, and how each guarantee is broken."""

    page: str
    heading: str
    breaks: tuple[Break, ...]


def read(path: Path = LIST) -> List:
    """Returns the content of a list."""
    raw = tables.read(path)
    breaks = [
        Break(
            row["guarantee"],
            broken["how"],
            Patch(broken["path"], broken["old"], broken["new"]),
            broken["test"],
            broken.get("slow", False),
        )
        for row in raw["row"]
        for broken in row["broken"]
    ]
    return List(raw["page"], raw["heading"], tuple(breaks))


def rows(text: str, heading: str) -> dict[str, tuple[str, ...]]:
    """Returns the guarantees of a page's table, each with what the table names as its tests."""
    _, found, below = text.partition(f"\n{heading}\n")
    if not found:
        raise WrongList(f"{heading!r}: the page has no such heading. Correct the list.")
    lines = below.partition("\n## ")[0].splitlines()
    matches = [match for line in lines if (match := _ROW.match(line))][1:]  # without the head
    return {match["guarantee"]: tuple(_NAMED.findall(match["tests"])) for match in matches}


def check(content: List, root: Path = patched.ROOT) -> list[str]:
    """Returns what is wrong: rows without a patch, patches without a row, patches that do not apply, missing tests."""
    try:
        table = rows((root / content.page).read_text(encoding="utf-8"), content.heading)
    except WrongList as error:
        return [str(error)]
    messages = []
    broken = {one.guarantee for one in content.breaks}
    messages += [f"{guarantee}: {content.page} has no such row. Correct the list." for guarantee in broken - {*table}]
    for guarantee, named in table.items():
        if guarantee not in broken:
            messages.append(f"{guarantee}: nothing breaks this guarantee. Add a patch and the test that fails.")
        files = [name for name in named if "/" in name]
        messages += [f"{guarantee}: {message}" for message in patched.missing_tests(files, root)]
    for one in content.breaks:
        try:
            one.patch.patched(root)
        except WrongList as error:
            messages.append(f"{one.guarantee}: {one.how}: {error}")
        file = one.test.partition("::")[0].partition(" ")[0]
        if one.guarantee in table and file not in table[one.guarantee]:
            messages.append(f"{one.guarantee}: {content.page} does not name {file}. Correct one of the two.")
    tests = list(dict.fromkeys(one.test for one in content.breaks))
    return messages + patched.missing_tests(tests, root)


def try_all(breaks: Sequence[Break], concurrently: int) -> int:
    """Runs every test without and with the patches, prints a row for each and returns the exit code."""
    patched.preload()
    tests = list(dict.fromkeys(one.test for one in breaks))
    with tempfile.TemporaryDirectory(prefix="guarantees-") as folder:
        trees = [patched.Tree(Path(folder) / str(number)) for number in range(concurrently)]
        jobs = [Job((test,)) for test in tests] + [Job((one.test,), one.patch) for one in breaks]
        whole: dict[str, Outcome] = {}
        code = 0
        for number, outcome in patched.run(jobs[: len(tests)], trees):
            whole[tests[number]] = outcome
        for number, outcome in patched.run(jobs[len(tests) :], trees):
            code = max(code, _print_outcome(breaks[number], whole[breaks[number].test], outcome))
    return code


def verdict(whole: Outcome, broken: Outcome) -> str:
    """Returns `proved` when the test passes without the patch and fails with it; else what is wrong."""
    if not whole.passed:
        return "fails unpatched"
    return "proved" if broken.failed else "passes broken" if broken.passed else "does not run"


def _print_outcome(one: Break, whole: Outcome, broken: Outcome) -> int:
    found = verdict(whole, broken)
    test = broken.failed_test or one.test
    print(f"{found:15}  {one.guarantee}: {one.how}  [{test}, {broken.seconds:.0f} s]", flush=True)
    if found == "proved":
        return 0
    print((whole if found == "fails unpatched" else broken).log[-3000:], file=sys.stderr)
    return 1


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command."""
    parser = argparse.ArgumentParser(prog="tools/guarantees", description=__doc__)
    parser.add_argument("--check", action="store_true", help="only check that the list fits the page and the tree")
    parser.add_argument("--fast", action="store_true", help="leave out what is marked as slow")
    parser.add_argument("--slow", action="store_true", help="only what is marked as slow")
    parser.add_argument(
        "--only", default="", metavar="PATTERN", help="only rows with PATTERN in guarantee, how or test"
    )
    parser.add_argument("-j", type=int, default=1, metavar="N", help="number of tests run concurrently")
    options = parser.parse_args(arguments)
    content = read()
    messages = check(content)
    for message in messages:
        print(f"{LIST.name}: {message}", file=sys.stderr)
    if messages:
        return 2
    if options.check:
        return 0
    chosen = [
        one
        for one in content.breaks
        if re.search(options.only, f"{one.guarantee}: {one.how} {one.test}")
        and not (options.fast and one.slow)
        and not (options.slow and not one.slow)
    ]
    if not chosen:
        print(f"--only: no row matches {options.only!r}. Use another pattern.", file=sys.stderr)
        return 2
    return try_all(chosen, options.j)


if __name__ == "__main__":
    sys.exit(main())
