"""`tools/setup.sh` on made-up machines: a PATH that holds only what the machine is meant to have."""

import hashlib
import http.server
import os
import shutil
import subprocess
import sys
import threading
import zipfile
from functools import partial
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SYSTEM = "bash cat chmod cp cut dirname env grep head mkdir mv rm rmdir sed sha256sum sort tail tr uname".split()

FAKE_UV = r"""#!/usr/bin/env bash
program() { mkdir -p "${1%/*}" && printf '#!/bin/sh\n' >"$1" && chmod +x "$1"; }
echo "$*" >>"$UV_LOG"
for last; do :; done
case "$1 ${2:-}" in
    "--version ") echo "uv $UV_VERSION" ;;
    "cache dir") echo "${UV_CACHE_DIR:-$HOME/.cache/uv}" ;;
    "python install")
        [ -n "${UV_INSTALLS:-}" ] || { echo "error: no network" >&2; exit 1; }
        made="$UV_PYTHON_INSTALL_DIR/cpython-$last.9-linux/bin"
        mkdir -p "$made" && cp "$UV_INSTALLS" "$made/python3" ;;
    "python find") set -- "$UV_PYTHON_INSTALL_DIR"/*/bin/python3; [ -x "$1" ] && echo "$1" ;;
    "venv --quiet") rm -rf "$last" && program "$last/bin/python" ;;
    "pip install")
        [ -z "${UV_FAILS:-}" ] || exit 1
        echo "${UV_CACHE_DIR:-}" >"$UV_LOG.cache"
        case "$*" in *--editable*) program "$last/.venv/bin/shardwright" ;; esac ;;
esac
"""


class Machine:
    """A checkout with the real scripts, and a PATH of its own."""

    def __init__(self, folder: Path, glibc: str) -> None:
        self.bin = folder / "bin"
        self.checkout = folder / "a checkout"
        self.home = folder / "home"
        self.uv_log = folder / "uv.log"
        for path in (self.bin, self.checkout / "requirements", self.home):
            path.mkdir(parents=True)
        shutil.copytree(ROOT / "tools", self.checkout / "tools")
        (self.checkout / "setup.py").write_text("setup()\n")
        for stack in ("current", "fallback"):
            (self.checkout / f"requirements/{stack}.lock").write_text("tfx==1.0\n")
        for name in SYSTEM:
            self.use(name)
        self.script("getconf", f"echo glibc {glibc}")
        for name in ("g++", "make"):
            self.script(name, "exit 0")
        self.env = {
            "PATH": str(self.bin),
            "HOME": str(self.home),
            "UV_LOG": str(self.uv_log),
            "UV_VERSION": "0.13.8",
            "UV_PYTHON_INSTALL_DIR": str(self.home / "none"),
        }

    def use(self, name: str) -> None:
        (self.bin / name).symlink_to(shutil.which(name) or pytest.skip(f"no {name} on this machine"))

    def script(self, name: str, text: str) -> Path:
        file = Path(os.path.normpath(self.bin / name))
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text if text.startswith("#!") else f"#!/usr/bin/env bash\n{text}\n")
        file.chmod(0o755)
        return file

    def python(self, name: str, version: str, answer: str = "usable") -> Path:
        """An interpreter that answers the probe of `usable` as a real one of that version would."""
        file = Path(os.path.normpath(self.bin / name))
        return self.script(name, f'[ "${{@: -1}}" = {version} ] && echo "{answer} {file}" || echo "no {file}"')

    def uv(self) -> None:
        self.script("uv", FAKE_UV)

    def uv_calls(self) -> list[str]:
        lines = self.uv_log.read_text().splitlines() if self.uv_log.exists() else []
        return [line for line in lines if line not in {"--version", "cache dir"}]

    def setup(self, *arguments: str, **env: str) -> "subprocess.CompletedProcess[str]":
        command = [str(self.checkout / "tools/setup.sh"), *arguments]
        return subprocess.run(command, env=self.env | env, capture_output=True, text=True, check=False)

    def which(self, **env: str) -> list[str]:
        done = self.setup("--which", **env)
        assert done.returncode == 0, done.stderr
        return done.stdout.rstrip("\n").split("\t")


@pytest.fixture
def old(tmp_path: Path) -> Machine:
    return Machine(tmp_path, "2.36")


@pytest.fixture
def new(tmp_path: Path) -> Machine:
    return Machine(tmp_path, "2.41")


def test_an_environment_behind_a_link_is_left_alone(old: Machine, tmp_path: Path) -> None:
    old.python("python3.10", "3.10")
    (tmp_path / "another/.venv").mkdir(parents=True)
    (tmp_path / "another/.venv/kept").touch()
    (old.checkout / ".venv").symlink_to(tmp_path / "another/.venv")
    done = old.setup()
    assert done.returncode == 2
    assert ".venv is a link to an environment that was not made for this checkout. Remove the link." in done.stderr
    assert (tmp_path / "another/.venv/kept").exists()
    assert old.uv_calls() == []


def test_old_glibc_takes_the_fallback_stack_whatever_newer_python_is_there(old: Machine) -> None:
    old.python("python3.13", "3.13")
    python = old.python("python3.10", "3.10")
    stack, chosen, reason = old.which()
    assert (stack, chosen) == ("fallback", str(python))
    assert "2.36" in reason
    assert "2.39" in reason


@pytest.mark.parametrize("glibc", ["2.39", "2.41", "2.100", "3.0"])
def test_glibc_is_compared_as_numbers(tmp_path: Path, glibc: str) -> None:
    machine = Machine(tmp_path, glibc)
    machine.python("python3.12", "3.12")
    assert machine.which()[0] == "current"


def test_newest_python_of_the_current_stack_wins(new: Machine) -> None:
    for minor in (10, 11, 12, 14):
        new.python(f"python3.{minor}", f"3.{minor}")
    assert new.which()[:2] == ["current", str(new.bin / "python3.12")]


def test_plain_python3_and_pyenv_are_looked_at(new: Machine) -> None:
    plain = new.python("python3", "3.11")
    assert new.which()[1] == str(plain)
    pyenv = new.python("../home/.pyenv/versions/3.13.0/bin/python", "3.13")
    assert new.which()[1] == str(pyenv)
    elsewhere = new.python("../pyenv/versions/3.13.2/bin/python", "3.13")
    assert new.which(PYENV_ROOT=str(new.bin / "../pyenv"))[1] == str(elsewhere)


def test_python_without_headers_is_passed_over(new: Machine) -> None:
    new.python("python3.13", "3.13", answer="headerless")
    new.python("python3.11", "3.11")
    assert new.which()[1] == str(new.bin / "python3.11")


def test_new_glibc_without_its_python_falls_back_and_says_why(new: Machine) -> None:
    new.uv()
    new.python("python3.10", "3.10")
    stack, _, reason = new.which()
    assert stack == "fallback"
    assert "no Python of 3.13 3.12 3.11" in reason
    assert any(call.startswith("python install --no-bin 3.13") for call in new.uv_calls())


def test_uv_installs_a_python_into_the_checkout(old: Machine) -> None:
    old.uv()
    interpreter = old.python("../made/python", "3.10")
    stack, chosen, _ = old.which(UV_INSTALLS=str(interpreter))
    assert (stack, chosen) == ("fallback", str(interpreter))
    assert list((old.checkout / ".tools/python").iterdir())


def test_forced_stack(new: Machine) -> None:
    new.python("python3.13", "3.13")
    new.python("python3.10", "3.10")
    assert new.which(SHARDWRIGHT_STACK="fallback")[0] == "fallback"
    assert new.which(SHARDWRIGHT_STACK="current")[0] == "current"


@pytest.mark.parametrize("stack", ["current", "other"])
def test_forced_stack_that_cannot_be(old: Machine, stack: str) -> None:
    old.python("python3.10", "3.10")
    done = old.setup("--which", SHARDWRIGHT_STACK=stack)
    assert done.returncode == 2
    assert f"SHARDWRIGHT_STACK{'=current needs glibc 2.39' if stack == 'current' else ' is'}" in done.stderr


@pytest.mark.parametrize(("glibc", "version"), [("2.36", "3.10"), ("2.41", "3.13")])
def test_no_interpreter_is_one_message_with_the_commands(tmp_path: Path, glibc: str, version: str) -> None:
    machine = Machine(tmp_path, glibc)
    machine.uv()
    machine.python("python3", version, answer="headerless")
    machine.script("apt-get", "exit 0")
    done = machine.setup()
    assert done.returncode == 2
    assert done.stderr.count("shardwright: ") == 1
    for command in (f"python install {version}", f"pyenv install {version}", "apt-get install -y python3-dev"):
        assert command in done.stderr
    assert f"{machine.bin}/python3 ({version})" in done.stderr
    assert not (machine.checkout / ".venv").exists()


def test_missing_compiler_exits_2_with_the_command(old: Machine) -> None:
    old.python("python3.10", "3.10")
    (old.bin / "g++").unlink()
    old.script("dnf", "exit 0")
    done = old.setup()
    assert done.returncode == 2
    assert "missing: g++" in done.stderr
    assert "dnf install -y gcc-c++ make" in done.stderr


@pytest.mark.parametrize(("system", "machine"), [("Linux", "aarch64"), ("Darwin", "arm64")])
def test_other_platforms_are_refused(old: Machine, system: str, machine: str) -> None:
    (old.bin / "uname").unlink()
    old.script("uname", f'[ "$1" = -s ] && echo {system} || echo {machine}')
    done = old.setup()
    assert done.returncode == 2
    assert f"{system}/{machine}" in done.stderr


def test_musl_has_no_glibc(old: Machine) -> None:
    old.script("getconf", "exit 1")
    done = old.setup()
    assert done.returncode == 2
    assert "glibc none" in done.stderr


@pytest.fixture
def made(old: Machine) -> Machine:
    """A machine whose environment is made."""
    old.uv()
    old.python("python3.10", "3.10")
    done = old.setup()
    assert done.returncode == 0, done.stderr
    assert "stack: fallback, with" in done.stderr
    return old


def test_set_up_installs_the_lock_with_hashes_then_the_checkout(made: Machine) -> None:
    venv, locked, own = made.uv_calls()
    assert venv.startswith("venv ")
    assert "--require-hashes" in locked
    assert "fallback.lock" in locked
    assert "--no-deps --no-build-isolation --editable" in own


def test_packages_are_kept_in_the_checkout_where_home_cannot_be_written_to(made: Machine) -> None:
    kept = Path(f"{made.uv_log}.cache")
    assert kept.read_text() == "\n"
    shutil.rmtree(made.checkout / ".venv")
    shutil.rmtree(made.home)
    made.home.write_text("no folder")
    assert made.setup().returncode == 0
    assert kept.read_text() == f"{made.checkout}/.tools/uv-cache\n"


def test_second_call_does_nothing(made: Machine) -> None:
    before = made.uv_calls()
    done = made.setup()
    assert (done.returncode, made.uv_calls()) == (0, before)
    assert "up to date (fallback stack)" in done.stderr
    assert made.setup(SHARDWRIGHT_STACK="fallback").returncode == 0
    assert made.uv_calls() == before


@pytest.mark.parametrize("change", ["lock", "setup.py", "python", "command", "glibc", "moved"])
def test_changes_make_the_environment_again(made: Machine, change: str) -> None:
    if change == "lock":
        (made.checkout / "requirements/fallback.lock").write_text("tfx==1.1\n")
    elif change == "setup.py":
        (made.checkout / "setup.py").write_text("setup(1)\n")
    elif change == "python":
        (made.checkout / ".venv/bin/python").unlink()
    elif change == "command":
        (made.checkout / ".venv/bin/shardwright").unlink()
    elif change == "glibc":
        made.script("getconf", "echo glibc 2.37")
    else:
        made.checkout = made.checkout.rename(made.checkout.with_name("moved"))
    before = made.uv_calls()
    assert made.setup().returncode == 0
    assert len(made.uv_calls()) == len(before) + 3
    assert made.setup().returncode == 0
    assert len(made.uv_calls()) == len(before) + 3


def test_the_other_lock_does_not_matter(made: Machine) -> None:
    (made.checkout / "requirements/current.lock").write_text("tfx==1.1\n")
    before = made.uv_calls()
    assert made.setup().returncode == 0
    assert made.uv_calls() == before


def test_unfinished_environment_is_made_again(made: Machine) -> None:
    (made.checkout / "setup.py").write_text("setup(2)\n")
    failed = made.setup(UV_FAILS="1")
    assert failed.returncode == 1
    assert "did not finish" in failed.stderr
    calls = len(made.uv_calls())
    assert made.setup().returncode == 0
    assert [call.split()[0] for call in made.uv_calls()[calls:]] == ["venv", "pip", "pip"]


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture
def index(tmp_path: Path):
    """A package index that has one uv, and its address."""
    served = tmp_path / "served"
    (served / "simple/uv").mkdir(parents=True)
    handler = partial(_Quiet, directory=str(served))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield served, f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


def publish(machine: Machine, served: Path, link: str, *, pin: bool = True) -> None:
    """Puts a wheel with the fake uv on the index, behind `link`, and pins its hash in the machine's checkout."""
    library = machine.checkout / "tools/lib/uv.sh"
    text = library.read_text()
    values = dict(line.split(" ")[0].split("=", 1) for line in text.splitlines() if line.startswith("uv_"))
    name = values["uv_wheel"].strip('"').replace("$uv_pinned", values["uv_pinned"])
    wheel = served / "files" / name
    wheel.parent.mkdir()
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("uv/__init__.py", "")
        archive.writestr(f"uv-{values['uv_pinned']}.data/scripts/uv", FAKE_UV)
    other = name.replace("x86_64", "aarch64")
    page = f'<a href="/files/{other}#sha256=0">{other}</a><br/>\n<a href="{link}{name}#sha256=0">{name}</a><br/>\n'
    (served / "simple/uv/index.html").write_text(page)
    if pin:
        library.write_text(text.replace(values["uv_sha256"], hashlib.sha256(wheel.read_bytes()).hexdigest()))


@pytest.mark.parametrize(
    ("fetcher", "unpacker", "variable"),
    [
        ("curl", "unzip", "UV_DEFAULT_INDEX"),
        ("curl", "perl", "PIP_INDEX_URL"),
        ("python3", "python3", "UV_DEFAULT_INDEX"),
    ],
)
def test_uv_is_fetched_from_the_index(old: Machine, index, fetcher: str, unpacker: str, variable: str) -> None:
    served, address = index
    old.python("python3.10", "3.10")
    publish(old, served, "../../files/")
    for name in {fetcher, unpacker} - {"python3"}:
        old.use(name)
    if fetcher == "python3":
        old.script("python3", f'exec "{sys.executable}" "$@"')
    done = old.setup(**{variable: f"{address}/simple/"})
    assert done.returncode == 0, done.stderr
    assert os.access(next((old.checkout / ".tools").glob("uv-*/uv")), os.X_OK)
    assert [call.split()[0] for call in old.uv_calls()] == ["venv", "pip", "pip"]


@pytest.mark.parametrize("link", ["/files/", "{address}/files/", "//{host}/files/"])
def test_links_of_an_index_lead_anywhere(old: Machine, index, link: str) -> None:
    served, address = index
    old.python("python3.10", "3.10")
    publish(old, served, link.format(address=address, host=address.removeprefix("http://")))
    for name in ("curl", "perl"):
        old.use(name)
    done = old.setup(UV_DEFAULT_INDEX=f"{address}/simple")
    assert done.returncode == 0, done.stderr


def test_uv_with_another_hash_is_not_run(old: Machine, index) -> None:
    served, address = index
    old.python("python3.10", "3.10")
    publish(old, served, "/files/", pin=False)
    for name in ("curl", "perl"):
        old.use(name)
    done = old.setup(UV_DEFAULT_INDEX=f"{address}/simple")
    assert done.returncode == 1
    assert "sha256" in done.stderr
    assert not list((old.checkout / ".tools").glob("uv-*/uv"))
    assert old.uv_calls() == []


def test_too_old_or_broken_uv_on_path_is_not_taken(old: Machine, index) -> None:
    served, address = index
    old.python("python3.10", "3.10")
    publish(old, served, "/files/")
    for name in ("curl", "perl"):
        old.use(name)
    old.uv()
    old.script("uv", old.bin.joinpath("uv").read_text().replace("$UV_VERSION", "0.4.1"))
    done = old.setup(UV_DEFAULT_INDEX=f"{address}/simple")
    assert done.returncode == 0, done.stderr
    assert list((old.checkout / ".tools").glob("uv-*/uv"))


def test_nothing_to_fetch_with(old: Machine) -> None:
    old.python("python3.10", "3.10")
    done = old.setup()
    assert done.returncode == 2
    assert "neither curl nor a python3" in done.stderr
