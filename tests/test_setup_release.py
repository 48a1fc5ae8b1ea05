"""A release: what must be ready before it, its steps, and the changelog."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from shardwright.version import __version__

ROOT = Path(__file__).parents[1]
CHANGELOG = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


# A registry's images, by digest: what a release is built from.
IMAGES = {name: f"docker.io/{name.lower()}@sha256:{'0' * 64}" for name in ("BASE", "BEAM_SDK")}


def git(folder: Path, *arguments: str) -> str:
    names = {f"GIT_{who}_{what}": "x" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    env = {**os.environ, **names}
    return subprocess.run(["git", *arguments], cwd=folder, env=env, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A checkout with what a release looks at; none of its commands could run there."""
    for name in ("tools/release", "tools/lib", "shardwright/version.py"):
        target = tmp_path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        (shutil.copytree if (ROOT / name).is_dir() else shutil.copy)(ROOT / name, target)
    (tmp_path / "CHANGELOG.md").write_text(f"# Changelog\n\n## [{__version__}] - 2026-11-23\n")
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", "--all")
    git(tmp_path, "commit", "--quiet", "--message", "all")
    return tmp_path


def release(project: Path, *arguments: str, env: dict[str, str] | None = None) -> "subprocess.CompletedProcess[str]":
    command = ["bash", str(project / "tools/release"), *arguments]
    return subprocess.run(command, cwd="/", capture_output=True, text=True, check=False, env=env)


def test_a_dry_run_prints_every_step_and_changes_nothing(project: Path) -> None:
    before = sorted(path for path in project.rglob("*") if ".git" not in path.parts)
    done = release(project, "--dry-run")
    assert done.returncode == 0, done.stderr
    steps = [line.removeprefix("release: ") for line in done.stderr.splitlines() if line.startswith("release: ")]
    assert steps == [
        *("make test", "make test-all", "make test-full", "audit", "build"),
        *(f"env ACCELERATOR={name} tools/image.sh try" for name in ("gpu", "tpu")),
        f"git tag --annotate v{__version__} --message Shardwright {__version__}"
        " --message Images from BASE and BEAM_SDK",
    ]
    assert sorted(path for path in project.rglob("*") if ".git" not in path.parts) == before
    assert git(project, "tag") == ""


def test_the_first_step_that_fails_ends_a_release(project: Path) -> None:
    # There is no Makefile.
    done = release(project, env={**os.environ, **IMAGES})
    assert done.returncode != 0
    assert "release: make test\n" in done.stderr
    assert "release: make test-all" not in done.stderr
    assert git(project, "tag") == ""


def test_a_release_makes_the_packages_and_the_tag(project: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    # The tools that take minutes only write down that they were called.
    tools, log = tmp_path_factory.mktemp("bin"), project / "log"
    (project / ".gitignore").write_text("log\ndist\n.tools\n")
    uv = 'case "$1" in --version) echo uv 99.0.0 ;; cache) echo /tmp ;; *) mkdir dist && touch dist/made.whl ;; esac\n'
    for file in (tools / "make", project / "tools/audit", project / "tools/image.sh", tools / "uv"):
        file.write_text(f'#!/bin/sh\necho "{file.name} $*" >>{log}\n' + uv * (file.name == "uv"))
        file.chmod(0o755)
    git(project, "add", "--all")
    git(project, "commit", "--quiet", "--message", "tools")
    names = {f"GIT_COMMITTER_{what}": "x" for what in ("NAME", "EMAIL")}
    done = release(project, env={**os.environ, **names, **IMAGES, "PATH": f"{tools}:{os.environ['PATH']}"})
    assert done.returncode == 0, done.stderr
    assert git(project, "tag").split() == [f"v{__version__}"]
    assert f"Images from {IMAGES['BASE']} and {IMAGES['BEAM_SDK']}" in git(
        project, "cat-file", "tag", f"v{__version__}"
    )
    assert (project / "dist/made.whl").exists()
    called = [
        line.split()[0] for line in log.read_text().splitlines() if not line.startswith(("uv --version", "uv cache"))
    ]
    assert called == ["make", "make", "make", "audit", "uv", "image.sh", "image.sh"]
    assert done.stderr.splitlines()[-1].startswith(f"To publish: git push origin v{__version__}; uv publish dist/*")


def test_everything_that_is_not_ready_is_reported_at_once(project: Path) -> None:
    (project / "CHANGELOG.md").write_text("# Changelog\n\n## [Unreleased]\n")
    git(project, "tag", f"v{__version__}")
    done = release(project, "--dry-run")
    assert done.returncode == 2
    for part in (
        f"no section '## [{__version__}] - DATE'",
        f"The tag v{__version__} exists",
        "The checkout has changes",
    ):
        assert part in done.stderr
    assert "release: make" not in done.stderr


@pytest.mark.parametrize("given", [{}, {**IMAGES, "BASE": "debian:trixie-slim"}, {**IMAGES, "BEAM_SDK": ""}])
def test_images_of_a_release_are_built_from_images_by_digest(project: Path, given: dict[str, str]) -> None:
    """A tag can move, and without Beam's image a stand-in for its launcher would be published."""
    done = release(project, env={**os.environ, **given})
    assert done.returncode == 2
    missing = [name for name in IMAGES if "@" not in given.get(name, "")]
    assert [name for name in IMAGES if f"{name}: name the image" in done.stderr] == missing
    assert "release: make" not in done.stderr


def test_entries_that_the_release_would_not_list_are_named(project: Path) -> None:
    text = f"# Changelog\n\n## [Unreleased]\n\n- One.\n- Two.\n\n## [{__version__}] - 2026-11-23\n\n- Three.\n"
    (project / "CHANGELOG.md").write_text(text)
    git(project, "commit", "--quiet", "--all", "--message", "more")
    done = release(project, "--dry-run")
    assert done.returncode == 0
    assert "CHANGELOG.md: [Unreleased] has entries (2)." in done.stderr


def test_a_wrong_option_is_refused(project: Path) -> None:
    done = release(project, "--dry")
    assert (done.returncode, done.stdout) == (2, "")


def test_the_changelog_has_the_form_and_a_section_of_every_version() -> None:
    sections = re.findall(r"^## (.+)$", CHANGELOG, re.MULTILINE)
    assert all(re.fullmatch(r"\[Unreleased\]|\[\d+\.\d+\.\d+\] - \d{4}-\d\d-\d\d", section) for section in sections)
    versions = [re.match(r"\[(.+?)\]", section)[1] for section in sections]
    assert __version__ in versions
    tags = (
        {tag.removeprefix("v") for tag in git(ROOT, "tag", "--list", "v*").split()}
        if (ROOT / ".git").exists()
        else set()
    )
    assert tags <= set(versions)
    assert "### Known limitations" in CHANGELOG
    # An entry is a line or two: what there is, not its history.
    entries = re.findall(r"^- (.+(?:\n  .+)*)", CHANGELOG, re.MULTILINE)
    assert len(entries) >= 20
    for section in CHANGELOG.split("\n## ")[1:]:
        assert len(re.findall(r"^- ", section, re.MULTILINE)) <= 80, section.split("\n")[0]
    assert max(len(entry.split()) for entry in entries) <= 60
