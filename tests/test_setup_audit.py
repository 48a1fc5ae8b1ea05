"""The audit of the locks, against advisories that the tests write."""

import datetime
import importlib.util
import json
import sys
import zipfile
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
TODAY = datetime.date(2026, 11, 23)


@pytest.fixture(scope="module")
def audit() -> ModuleType:
    """The module, which is not installed."""
    spec = importlib.util.spec_from_file_location("audit", ROOT / "tools/supply/audit.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["audit"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def record(package: str = "Some_Package", **fields: Any) -> dict[str, Any]:
    """An advisory of the OSV format; `events` and `versions` describe what is affected."""
    affected = {
        "package": {"ecosystem": "PyPI", "name": package},
        "ranges": [{"type": "ECOSYSTEM", "events": fields.pop("events", [])}],
        "versions": fields.pop("versions", []),
    }
    return {"id": "PYSEC-1", "aliases": ["CVE-1", "GHSA-1"], "summary": "It breaks.", "affected": [affected], **fields}


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    path = tmp_path / "some.lock"
    path.write_text(
        "# comment\nother==9.0 \\\n    --hash=sha256:00\nsome-package[extra]==1.10.0 ; python_version < '3.12' \\\n"
    )
    return path


def archive(folder: Path, *records: dict[str, Any]) -> Path:
    path = folder / "all.zip"
    with zipfile.ZipFile(path, "w") as file:
        for number, one in enumerate(records):
            file.writestr(f"{number}.json", json.dumps(one))
    return path


@pytest.mark.parametrize(
    ("events", "versions", "affected"),
    [
        ([{"introduced": "0"}, {"fixed": "1.10.1"}], [], True),
        ([{"introduced": "0"}, {"fixed": "1.10.0"}], [], False),
        ([{"introduced": "0"}, {"fixed": "1.9"}], [], False),  # 1.10 comes after 1.9
        ([{"introduced": "1.11"}], [], False),
        ([{"introduced": "0"}, {"last_affected": "1.10.0"}], [], True),
        ([{"introduced": "0"}, {"last_affected": "1.9.9"}], [], False),
        ([{"introduced": "1.10"}, {"fixed": "1.5"}, {"introduced": "0"}], [], True),  # events come in any order
        ([{"introduced": "0"}, {"fixed": "1.0"}, {"introduced": "1.9"}, {"fixed": "1.10"}], [], False),
        ([], ["1.10"], True),
        ([], ["1.9", "not a version"], False),
    ],
)
def test_a_range_is_read_as_the_format_says(
    audit: ModuleType, tmp_path: Path, lock: Path, events: list[Any], versions: list[str], affected: bool
) -> None:
    source = archive(tmp_path, record(events=events, versions=versions))
    lines, clean = audit.audit([lock], source, [], TODAY)
    assert clean is not affected
    assert (len(lines) == 2) is affected


def test_other_ecosystems_other_packages_and_withdrawn_records_do_not_count(
    audit: ModuleType, tmp_path: Path, lock: Path
) -> None:
    hit: dict[str, Any] = {"events": [{"introduced": "0"}]}
    npm = record(**hit)
    npm["affected"][0]["package"]["ecosystem"] = "npm"
    source = archive(tmp_path, npm, record("some-package-2", **hit), record(**hit, withdrawn="2026-01-01T00:00:00Z"))
    assert audit.audit([lock], source, [], TODAY) == (["0 findings in 2 locked versions of 1 locks"], True)


def test_one_vulnerability_of_several_databases_is_one_finding(audit: ModuleType, tmp_path: Path, lock: Path) -> None:
    first = record(events=[{"introduced": "0"}, {"fixed": "2.0"}])
    second = record(id="GHSA-1", aliases=["CVE-1"], events=[{"introduced": "0"}, {"fixed": "1.11"}])
    lines, clean = audit.audit([lock], archive(tmp_path, first, second), [], TODAY)
    assert not clean
    assert lines == [
        "NEW: some-package 1.10.0 (some): CVE-1: It breaks. Fixed in: 1.11, 2.0.",
        "1 findings in 2 locked versions of 1 locks",
    ]


def test_an_accepted_finding_passes_until_its_date(audit: ModuleType, tmp_path: Path, lock: Path) -> None:
    source = archive(tmp_path, record(events=[{"introduced": "0"}]))
    file = tmp_path / "accepted.toml"
    file.write_text('[[accepted]]\npackage = "Some.Package"\nid = "GHSA-1"\nreason = "Unused."\nuntil = 2026-11-23\n')
    accepted = audit.read_accepted(file)
    lines, clean = audit.audit([lock], source, accepted, TODAY)
    assert clean
    assert lines[0] == "accepted until 2026-11-23: some-package 1.10.0 (some): CVE-1: Unused."
    lines, clean = audit.audit([lock], source, accepted, TODAY + datetime.timedelta(days=1))
    assert not clean
    assert "the acceptance expired on 2026-11-23" in lines[0]
    # An entry that fits nothing is named, so that the list stays short.
    lines, clean = audit.audit([lock], archive(tmp_path), accepted, TODAY)
    assert clean
    assert lines[0].startswith("not in these advisories: some-package: GHSA-1.")


def test_the_advisory_database_of_pypa_is_read_as_a_folder(audit: ModuleType, tmp_path: Path, lock: Path) -> None:
    folder = tmp_path / "vulns" / "some-package"
    folder.mkdir(parents=True)
    (folder / "PYSEC-1.yaml").write_text(json.dumps(record(events=[{"introduced": "0"}])))
    assert not audit.audit([lock], tmp_path / "vulns", [], TODAY)[1]


@pytest.mark.parametrize("missing", ["package", "id", "reason", "until"])
def test_an_entry_needs_all_of_its_fields(audit: ModuleType, tmp_path: Path, missing: str) -> None:
    fields = {"package": '"p"', "id": '"CVE-1"', "reason": '"r"', "until": "2027-01-01"}
    lines = [f"{key} = {value}" for key, value in fields.items() if key != missing]
    (tmp_path / "accepted.toml").write_text("\n".join(["[[accepted]]", *lines]))
    with pytest.raises(Exception, match=f"accepted.toml: entry 1 has no '{missing}'"):
        audit.read_accepted(tmp_path / "accepted.toml")


def test_without_the_service_one_line_says_so(
    audit: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(audit, "_ARCHIVE", "http://127.0.0.1:9/all.zip")
    assert audit.main([]) == 3
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("audit: the advisories at http://127.0.0.1:9/all.zip cannot be fetched")
    assert "Nothing was audited." in shown.err


def test_the_accepted_findings_of_the_locks_are_complete_and_end_with_the_fallback_stack(audit: ModuleType) -> None:
    accepted = audit.read_accepted(ROOT / "requirements/accepted.toml")
    pins = {name for name, _ in audit.read_pins(sorted((ROOT / "requirements").glob("*.lock")))}
    assert len(pins) > 200
    assert {one.package for one in accepted} <= pins
    assert "2027-06-30" in (ROOT / "SECURITY.md").read_text(encoding="utf-8")
