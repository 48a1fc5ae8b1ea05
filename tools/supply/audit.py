"""Compares the locks with published vulnerabilities, and the findings with those that were accepted.

The advisories are records of the OSV format (ossf.github.io/osv-schema): by default the archive of all of PyPI that
osv.dev publishes, or a copy of it, or a checkout of github.com/pypa/advisory-database. They are compared here:
one download, and no network is needed. `uv audit` reads projects with a `uv.lock` only.

Exit codes: 0 nothing new; 1 a finding that is not accepted, or an acceptance that has expired; 2 the call or a file is
wrong; 3 the advisories cannot be fetched.
"""

from __future__ import annotations

import argparse
import datetime
import json
import re
import sys
import urllib.error
import urllib.request
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_ROOT = Path(__file__).parents[2]
_ARCHIVE = "https://osv-vulnerabilities.storage.googleapis.com/PyPI/all.zip"
_PIN = re.compile(r"^([a-z0-9][a-z0-9._-]*)(?:\[[^]]*\])?==([^ ;\\]+)", re.MULTILINE)
# libyaml's loader is ten times faster.
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _AuditError(Exception):
    """A message for the user, and the exit code."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True)
class Finding:
    """A vulnerability of a locked version."""

    package: str
    version: str
    names: frozenset[str]  # the record's ID and its aliases
    fixed: tuple[str, ...]  # versions that fix it
    summary: str

    @property
    def name(self) -> str:
        """The name that is known best: a CVE where there is one."""
        return min(self.names, key=lambda name: (not name.startswith("CVE-"), not name.startswith("GHSA-"), name))


@dataclass(frozen=True)
class Accepted:
    """An entry of the file of accepted findings."""

    package: str
    name: str
    reason: str
    until: datetime.date

    def fits(self, finding: Finding) -> bool:
        """Returns whether the entry is about this finding."""
        return self.package == finding.package and self.name in finding.names


def read_pins(locks: Sequence[Path]) -> dict[tuple[str, str], list[str]]:
    """Returns each locked package and version with the names of the locks that contain it."""
    found: dict[tuple[str, str], list[str]] = {}
    for lock in locks:
        for name, version in _PIN.findall(lock.read_text(encoding="utf-8")):
            found.setdefault((canonicalize_name(name), version), []).append(lock.stem)
    return found


def read_advisories(source: Path, packages: frozenset[str]) -> Iterator[Mapping[str, Any]]:
    """Yields the records of a folder or of a zip archive that are about some packages."""
    for name, data in _files(source, packages):
        # A record names its packages in plain text: most need not be parsed.
        if not any(package in canonicalize_name(data) for package in packages):
            continue
        record = json.loads(data) if name.endswith(".json") else yaml.load(data, _LOADER)  # noqa: S506 -- a safe loader
        if isinstance(record, dict) and record.get("id") and not record.get("withdrawn"):
            yield record


def _files(source: Path, packages: frozenset[str]) -> Iterator[tuple[str, str]]:
    if source.is_dir():
        for path in sorted(source.rglob("*")):
            # The advisory database of PyPA has a folder for each package.
            if (path.suffix == ".yaml" and path.parent.name in packages) or path.suffix == ".json":
                yield path.name, path.read_text(encoding="utf-8")
        return
    try:
        with zipfile.ZipFile(source) as archive:
            for name in sorted(archive.namelist()):
                if name.endswith((".json", ".yaml")):
                    yield name, archive.read(name).decode()
    except (OSError, zipfile.BadZipFile) as error:
        raise _AuditError(
            f"{source}: is not a folder and not a zip archive ({error}). Give one of OSV records.", 2
        ) from None


def find(pins: Mapping[tuple[str, str], Sequence[str]], advisories: Iterator[Mapping[str, Any]]) -> list[Finding]:
    """Returns the vulnerabilities of the locked versions: one for all records that are aliases of each other."""
    found: list[Finding] = []
    for record in advisories:
        for affected in record.get("affected") or ():
            package = affected.get("package") or {}
            if package.get("ecosystem") != "PyPI":
                continue
            name = canonicalize_name(str(package.get("name")))
            for locked, version in pins:
                if locked == name and _is_affected(version, affected):
                    names = frozenset({str(record["id"]), *map(str, record.get("aliases") or ())})
                    summary = str(record.get("summary") or record.get("details") or "").strip().split("\n")[0]
                    found.append(Finding(name, version, names, _fixes(affected), summary))
    return sorted(_merged(found), key=lambda one: (one.package, one.version, one.name))


def _merged(found: list[Finding]) -> list[Finding]:
    """Joins findings that share a name: one vulnerability has a record in several databases."""
    merged: list[Finding] = []
    for one in found:
        same = [
            other
            for other in merged
            if (other.package, other.version) == (one.package, one.version) and other.names & one.names
        ]
        for other in same:
            merged.remove(other)
            fixed = tuple(sorted({*one.fixed, *other.fixed}, key=_order))
            one = Finding(one.package, one.version, one.names | other.names, fixed, other.summary or one.summary)
        merged.append(one)
    return merged


def _is_affected(version: str, affected: Mapping[str, Any]) -> bool:
    """Evaluates a record as the OSV schema says: listed versions, or the events of a range in their order."""
    locked = _order(version)
    if any(_order(str(listed)) == locked for listed in affected.get("versions") or ()):
        return True
    for span in affected.get("ranges") or ():
        if span.get("type") != "ECOSYSTEM":
            continue
        inside = False
        events = [(str(value), kind) for event in span.get("events") or () for kind, value in event.items()]
        for value, kind in sorted(events, key=lambda event: (event[0] != "0", _order(event[0]))):
            if kind == "introduced" and (value == "0" or locked >= _order(value)):
                inside = True
            elif (kind in ("fixed", "limit") and locked >= _order(value)) or (
                kind == "last_affected" and locked > _order(value)
            ):
                inside = False
        if inside:
            return True
    return False


def _fixes(affected: Mapping[str, Any]) -> tuple[str, ...]:
    spans = [span for span in affected.get("ranges") or () if span.get("type") == "ECOSYSTEM"]
    fixed = {str(event["fixed"]) for span in spans for event in span.get("events") or () if "fixed" in event}
    return tuple(sorted(fixed, key=_order))


def _order(version: str) -> Version:
    try:
        return Version(version)
    except InvalidVersion:
        return Version("0")  # Some records list versions of before PEP 440, which no lock contains.


def read_accepted(path: Path) -> list[Accepted]:
    """Reads the file of accepted findings.

    Raises:
        _AuditError: an entry lacks something.
    """
    entries = tomllib.loads(path.read_text(encoding="utf-8")).get("accepted", [])
    found = []
    for number, entry in enumerate(entries, 1):
        try:
            one = Accepted(canonicalize_name(entry["package"]), entry["id"], entry["reason"].strip(), entry["until"])
        except (KeyError, AttributeError) as error:
            raise _AuditError(
                f"{path.name}: entry {number} has no {error}. Give package, id, reason and until.", 2
            ) from None
        if not one.reason or type(one.until) is not datetime.date:
            raise _AuditError(f"{path.name}: {one.name}: needs a reason, and a date such as until = 2027-06-30.", 2)
        found.append(one)
    return found


def _fetch(folder: Path) -> Path:
    target = folder / "advisories.zip"
    try:
        with urllib.request.urlopen(_ARCHIVE, timeout=60) as answer, target.open("wb") as file:
            while block := answer.read(1 << 20):
                file.write(block)
    except (OSError, urllib.error.URLError) as error:
        raise _AuditError(
            f"the advisories at {_ARCHIVE} cannot be fetched ({error}). Nothing was audited. Try again with a network, "
            "or give a copy: make audit ADVISORIES=PATH.",
            3,
        ) from None
    return target


def audit(
    locks: Sequence[Path], source: Path, accepted: Sequence[Accepted], today: datetime.date
) -> tuple[list[str], bool]:
    """Returns the lines to print, and whether everything that was found is accepted today."""
    pins = read_pins(locks)
    findings = find(pins, read_advisories(source, frozenset(name for name, _ in pins)))
    lines, clean, used = [], True, set()
    for finding in findings:
        entry = next((one for one in accepted if one.fits(finding)), None)
        used.add(entry)
        where = (
            f"{finding.package} {finding.version} ({', '.join(pins[finding.package, finding.version])}): {finding.name}"
        )
        if entry is not None and today <= entry.until:
            lines.append(f"accepted until {entry.until}: {where}: {entry.reason}")
            continue
        clean = False
        state = f"the acceptance expired on {entry.until}" if entry else finding.summary.rstrip(".") or "no summary"
        lines.append(f"NEW: {where}: {state}. Fixed in: {', '.join(finding.fixed) or 'no release'}.")
    lines += [
        f"not in these advisories: {one.package}: {one.name}. If they are newer than its entry, delete the entry."
        for one in accepted
        if one not in used
    ]
    lines.append(f"{len(findings)} findings in {len(pins)} locked versions of {len(locks)} locks")
    return lines, clean


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the audit, and returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="tools/audit", description="Compare the locks with published vulnerabilities."
    )
    parser.add_argument("locks", nargs="*", type=Path, help="locks (default: all of requirements/)")
    parser.add_argument("--advisories", type=Path, metavar="PATH", help="zip archive or folder of OSV records")
    parser.add_argument("--accepted", type=Path, default=_ROOT / "requirements" / "accepted.toml", metavar="FILE")
    parser.add_argument("--today", type=datetime.date.fromisoformat, default=datetime.date.today(), metavar="DATE")
    options = parser.parse_args(arguments)
    locks = options.locks or sorted((_ROOT / "requirements").glob("*.lock"))
    try:
        accepted = read_accepted(options.accepted)
        with TemporaryDirectory() as folder:
            lines, clean = audit(locks, options.advisories or _fetch(Path(folder)), accepted, options.today)
    except _AuditError as error:
        print(f"audit: {error}", file=sys.stderr)
        return error.code
    print("\n".join(lines))
    return 0 if clean else 1


if __name__ == "__main__":
    sys.exit(main())
