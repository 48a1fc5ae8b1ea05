"""Applies each mistake of `mutants.toml` to a copy of the tree and runs the tests that should find it.

A mistake that no test finds is a survivor. The exit code is 1 when a mistake survives that the list does not mark with
`survives`, and 2 when the list does not fit the tree.
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

LIST = Path(__file__).with_name("mutants.toml")


@dataclass(frozen=True)
class Mutant:
    """A mistake that a person could make, and the tests that find it."""

    mistake: str
    patch: Patch
    tests: tuple[str, ...]
    survives: str = ""

    @property
    def name(self) -> str:
        """The name in tables, and what `--only` searches."""
        return f"{self.patch.file}: {self.mistake}"


def read(path: Path = LIST) -> list[Mutant]:
    """Returns the mutants of a list."""
    mutants = []
    for file in tables.read(path)["file"]:
        for mutant in file["mutants"]:
            tests = mutant.get("tests", file.get("tests"))
            patch = Patch(mutant.get("path", file["path"]), mutant["old"], mutant["new"])
            mutants.append(Mutant(mutant["mistake"], patch, tuple(tests), mutant.get("survives", "")))
    return mutants


def check(mutants: Sequence[Mutant], root: Path = patched.ROOT) -> list[str]:
    """Returns what is wrong with a list: text that is not found exactly once, tests that do not exist."""
    messages = []
    for number, mutant in enumerate(mutants):
        try:
            mutant.patch.patched(root)
        except WrongList as error:
            messages.append(f"{mutant.mistake}: {error}")
        if mutant.name in {earlier.name for earlier in mutants[:number]}:
            messages.append(f"{mutant.name}: the list has this name twice. Rename one of them.")
    tests = dict.fromkeys(test for mutant in mutants for test in mutant.tests)
    return messages + patched.missing_tests(list(tests), root)


def verdict(mutant: Mutant, outcome: Outcome) -> str:
    """Returns `killed`, `survived`, or `broken` when the tests did not run."""
    if outcome.failed:
        return "killed"
    return "survived" if outcome.passed else "broken"


def try_all(mutants: Sequence[Mutant], concurrently: int, record: Path | None = None) -> int:
    """Runs the tests of all mutants, prints the table, writes it to `record` and returns the exit code."""
    patched.preload()
    selections = list(dict.fromkeys(mutant.tests for mutant in mutants))
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        trees = [patched.Tree(Path(folder) / str(number)) for number in range(concurrently)]
        seconds: dict[tuple[str, ...], float] = {}
        for number, outcome in patched.run([Job(tests) for tests in selections], trees):
            if not outcome.passed:
                print(outcome.log[-4000:], file=sys.stderr)
                print(f"{' '.join(selections[number])}: fails without any change. Fix the tests.", file=sys.stderr)
                return 2
            seconds[selections[number]] = outcome.seconds
        print(f"{len(selections)} selections of tests pass unchanged", flush=True)
        jobs = [Job(mutant.tests, mutant.patch, 60 + 5 * seconds[mutant.tests]) for mutant in mutants]
        table: dict[int, str] = {}
        unexpected: dict[int, str] = {}
        for number, outcome in patched.run(jobs, trees):
            table[number], expected = _row(mutants[number], outcome)
            print(table[number], flush=True)
            if not expected:
                unexpected[number] = table[number]
        if record is not None:
            record.write_text("".join(f"{row}\n" for _, row in sorted(table.items())), encoding="utf-8")
    return _summary([row.partition(" ")[0] for row in table.values()], [row for _, row in sorted(unexpected.items())])


def _row(mutant: Mutant, outcome: Outcome) -> tuple[str, bool]:
    """Returns the row of a mutant in the table, and whether it is the expected one."""
    found = verdict(mutant, outcome)
    if found == "broken":
        print(outcome.log[-2000:], file=sys.stderr)
    note = outcome.failed_test if found == "killed" else mutant.survives
    row = f"{found:8}  {mutant.name}" + (f"  [{note}]" if note else "")
    return row, found == ("survived" if mutant.survives else "killed")


def _summary(found: Sequence[str], unexpected: Sequence[str]) -> int:
    print(", ".join(f"{found.count(word)} {word}" for word in ("killed", "survived", "broken")))
    if unexpected:
        print("Not as the list expects; add a test that finds the mistake, or the reason to the list why none can:")
    for row in unexpected:
        print(f"  {row}")
    return int(bool(unexpected))


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command."""
    parser = argparse.ArgumentParser(prog="tools/mutants", description=__doc__)
    parser.add_argument("--check", action="store_true", help="only check that the list fits the tree")
    parser.add_argument("--only", default="", metavar="PATTERN", help="only mutants with PATTERN in file or mistake")
    parser.add_argument("-j", type=int, default=1, metavar="N", help="number of mutants tried concurrently")
    parser.add_argument("--record", type=Path, metavar="FILE", help="write the table to FILE, in the order of the list")
    options = parser.parse_args(arguments)
    mutants = [mutant for mutant in read() if re.search(options.only, mutant.name)]
    messages = check(mutants) if mutants else [f"--only: no mutant matches {options.only!r}. Use another pattern."]
    for message in messages:
        print(f"{LIST.name}: {message}", file=sys.stderr)
    if messages:
        return 2
    return 0 if options.check else try_all(mutants, options.j, options.record)


if __name__ == "__main__":
    sys.exit(main())
