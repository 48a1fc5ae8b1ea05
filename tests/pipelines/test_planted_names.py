"""Whatever a command opens, makes, renames or deletes under a name that can be guessed, somebody may have put there.

Nobody lists these names: each command's example in the catalog is run twice, and the names that it touches both times
can be guessed. Then something is planted under each, and the command runs again: what a link leads to stays as it is,
to the byte, nothing waits, no traceback is printed, and the command ends with an error or the right result.
"""

import itertools
import json
import os
import re
import shlex
import shutil
import stat
import subprocess
import sys
import traceback
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from descent import Months, record_months
from observing import PROGRAM, observe
from PIL import Image

from shardwright.pipelines.cli import main
from shardwright.pipelines.commands.catalog import CLOUD, ENTRIES
from shardwright.storage.own_names import LOCK_FILE, MARK

pytestmark = pytest.mark.one_stack

# What a command needs besides the example: another form of it that does more.
MORE = {
    "export": [
        "export datasets/photos --out files --to imagefolder",
        "export datasets/photos --out files --to webdataset",
    ],
    "ingest": ["ingest probing.yaml --out datasets/photos"],
    "merge": ["merge datasets/october datasets/november --out autumn"],
}
# Instead of an example that draws many pictures, or that leaves all as it is.
INSTEAD = {
    "clean": "clean runs/photos --keep 1 --superseded",
    "init": "init photos photos/labels.csv --out photos.yaml --set rejects.max_fraction=0.5",
    "init-pipeline": "init-pipeline flowers --images test_images",
    "sample": "sample --out demo-data --count 2 --height 64 --width 96",
}
# These compute for long, need TensorFlow or a trained model; `make test-all` runs them.
HEAVY = {"run", "transform", "predict", "convert", "bench loader", "preflight", "compile", "doctor", "review", "try"}
# Under how many names of a call something is planted: of others, and of those.
MOST = (24, 1)
# Without a network, credentials or a blessed model they end with an error; they must do so under any plant, too.
REFUSED = {name for name in CLOUD if name not in ("compile", "estimate")} | {"weights fetch"}
GROUPS = {"schema", "weights", "bench"}  # Names of commands without work of their own.
# Nothing of them is written: they print.
COMMANDS = [name for name in ENTRIES if name not in GROUPS]
LINKS = ("link to a folder", "link to a file")
KINDS = (*LINKS, "dangling link", "file", "pipe", "folder of another user")
PRECIOUS = b"precious"


@dataclass
class World:
    """A folder in which the examples of the catalog work, and what lies around it."""

    template: Path
    base: Path

    @property
    def work(self):
        return self.base / "a/b/work"

    def fresh(self):
        shutil.rmtree(self.base, ignore_errors=True)
        self.work.parent.mkdir(parents=True)
        shutil.copytree(self.template, self.work)

    def run(self, arguments):
        """Runs a command; returns exit code, what it printed, and the names that it touched."""
        result, printed = self.base / "names.json", self.base / "printed"
        # Where other tests have imported JAX, its threads may hold locks that a fork waits for.
        if "jax" in sys.modules or {arguments[0], " ".join(arguments[:2])} & HEAVY:
            code = self._start(result, printed, arguments)
        else:
            code = self._fork(result, printed, arguments)
        names, output = set(json.loads(result.read_text()) if result.exists() else ()), printed.read_text()
        result.unlink(missing_ok=True)
        printed.unlink()
        return code, output, names

    def _start(self, result, printed, arguments):
        environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1] / "support")}
        command = [sys.executable, "-c", PROGRAM, str(result), str(self.work), *arguments]
        with printed.open("w") as out:
            return subprocess.run(
                command, cwd=self.work, env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=out, check=False
            ).returncode

    def _fork(self, result, printed, arguments):
        child = os.fork()
        if not child:
            code = 99
            try:
                out = os.open(printed, os.O_WRONLY | os.O_CREAT)
                for stream in (1, 2):
                    os.dup2(out, stream)
                os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
                sys.stdin, sys.stdout, sys.stderr = (os.fdopen(stream, mode) for stream, mode in enumerate("rww"))
                os.chdir(self.work)
                code = observe(str(result), str(self.work), list(arguments))
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def photo(index):
    coarse = np.random.default_rng(index).integers(0, 255, (8, 8, 3), np.uint8)
    return Image.fromarray(coarse.repeat(8, 0).repeat(8, 1))


@pytest.fixture(scope="module")
def world(tmp_path_factory, small_dataset):
    base = tmp_path_factory.mktemp("planted")
    here = base / "template"
    for index in range(8):
        place = here / "photos" / ("daisy" if index % 2 else "rose") / f"{index}.jpg"
        place.parent.mkdir(parents=True, exist_ok=True)
        photo(index).save(place)
    shutil.copytree(here / "photos", here / "test_images")
    (here / "photos/daisy/broken.jpg").write_bytes(b"no image")
    rows = [f"{file.relative_to(here / 'photos')},{file.parent.name}" for file in sorted(here.glob("photos/*/*.jpg"))]
    (here / "photos/labels.csv").write_text("\n".join(["image_id,label", *rows]) + "\n")
    (here / "corrected.csv").write_text("\n".join(["image_id,label", *rows[:-1], rows[-1].replace(",rose", ",tulip")]))
    options = (
        "task: classification\nsplit: {ratios: {train: 1}}\nshards: {count: 2}\nrejects: {max_fraction: 0.5}\n"
        "transform: {size: [32, 32]}\ntrainer: {epochs: 1}\n"
    )
    for name, images, more in (
        ("photos", "photos", ""),
        ("probing", "photos", "images: {verify: full}\nduplicates: {pixels: keep}\n"),
        ("october", "photos/*/[0-3].jpg", ""),
        ("november", "photos/*/[4-7].jpg", ""),
    ):
        source = f"input: {{images: '{images}', classes: [daisy, rose, tulip], labels: {{format: class_folders}}}}\n"
        (here / f"{name}.yaml").write_text(f"{source}{options}{more}")
    (here / "keys.txt").write_text("daisy/1.jpg\n")
    (here / "prices.yaml").write_text("currency: USD\ncore_hour: 1\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(here)
        for name in ("photos", "october", "november"):
            assert main(["ingest", f"{name}.yaml", "--out", f"datasets/{name}"]) == 0
        assert main(["schema", "render", "photos.yaml"]) == 0
    for name in ("old", "new"):
        shutil.copy(here / "photos.schema.pbtxt", here / f"{name}.pbtxt")
    (here / "photos.schema.pbtxt").unlink()
    months = Months(here / "runs/photos", small_dataset)
    record_months(months)
    return World(here, base / "x")


def scenarios(name):
    """The calls of a command: that of the catalog, without the option that makes it do nothing, and further ones."""
    for call in map(shlex.split, (INSTEAD.get(name, ENTRIES[name].example), *MORE.get(name, []))):
        call = call[: call.index(">")] if ">" in call else call
        yield [word for word in call if word != "--dry-run" or name in CLOUD]


def tree(folder):
    """Path -> kind and content of everything in a folder; links are not followed."""
    found = {}
    for here, folders, files in os.walk(folder):
        for entry in (*folders, *files):
            place = os.path.join(here, entry)
            status = os.lstat(place)
            kind = stat.S_IFMT(status.st_mode)
            content = os.readlink(place) if kind == stat.S_IFLNK else b""
            found[os.path.relpath(place, folder)] = (
                kind,
                Path(place).read_bytes() if kind == stat.S_IFREG else content,
                status.st_uid,
            )
    return found


@dataclass
class Reference:
    """What a command does where nothing is planted."""

    code: int
    names: list[str]
    before: dict
    same: dict
    changed: set


def reference(world, call):
    seen = []
    for _ in (1, 2):
        remove_output(world, call)
        before = tree(world.work)
        code, output, names = world.run(call)
        assert "Traceback" not in output, output
        seen.append((code, names, tree(world.work), before, output))
        if not names and seen[0][2] == before:
            seen *= 2
            break
    (code, names, after, before, output), (again, others, later, _, _) = seen
    assert code == again, output
    changed = {name for name in {*before, *after} if before.get(name) != after.get(name)}
    guessed = (names & others) | {name for name in changed if name in later or name not in after}
    guessed |= {str(above) for name in guessed for above in Path(name).parents}
    same = {name: value for name, value in after.items() if later.get(name) == value and before.get(name) != value}
    given = {os.path.normpath(word) for word in call}
    named = {word for word in guessed if any(f"{one}/".startswith(f"{word}/") for one in given)}
    return Reference(code, sorted(guessed - named - {"."}), before, same, changed), output


def remove_output(world, call):
    world.fresh()
    for option, value in itertools.pairwise(call):
        if option == "--out" and os.path.lexists(world.work / value):
            (shutil.rmtree if (world.work / value).is_dir() else os.unlink)(world.work / value)


def plant(world, found, name, kind):
    """Puts something under a name of a fresh world; what a link leads to has all that the command expects there."""
    place, target = world.work / name, world.base / "precious"
    inside = [one.removeprefix(f"{name}/") for one in found.names if one.startswith(f"{name}/")]
    target.mkdir()
    (target / "taxes").mkdir()
    (target / "taxes/2025.ods").write_bytes(PRECIOUS)
    for one in sorted(inside, key=len, reverse=True):
        (target / one).parent.mkdir(parents=True, exist_ok=True)
        if not (target / one).exists():
            (target / one).write_bytes(PRECIOUS)
    for above in reversed(Path(name).parents):
        if not (world.work / above).exists():
            (world.work / above).mkdir()
            if f"{above}/{LOCK_FILE}" in found.names:
                (world.work / above / LOCK_FILE).write_bytes(MARK)
    if os.path.lexists(place):
        (os.unlink if place.is_symlink() or not place.is_dir() else shutil.rmtree)(place)
    if kind == "link to a folder":
        place.symlink_to(target)
    elif kind == "link to a file":
        place.symlink_to(target / "taxes/2025.ods")
    elif kind == "dangling link":
        place.symlink_to(target / "nothing")
    elif kind == "file":
        place.write_bytes(PRECIOUS)
    elif kind == "pipe":
        os.mkfifo(place)
    else:
        place.mkdir()
        (place / "theirs").write_bytes(PRECIOUS)
        os.chown(place / "theirs", 12345, 12345)
        os.chown(place, 12345, 12345)


def check(world, call, found, name, kind):
    remove_output(world, call)
    plant(world, found, name, kind)
    around = {path: value for path, value in tree(world.base).items() if not path.startswith("a/b/work")}
    planted = tree(world.work).get(name)
    code, output, _ = world.run(call)
    where = f"{shlex.join(call)}, {kind} at {name}: exit {code}\n{output}"
    assert {path: value for path, value in tree(world.base).items() if not path.startswith("a/b/work")} == around, where
    assert "Traceback" not in output, where
    assert code in {0, 1, 2, found.code}, where
    after = tree(world.work)
    for path, value in found.before.items():
        if path not in found.changed and path != name and not path.startswith(f"{name}/"):
            assert after.get(path) == value, f"{path}: {where}"
    if code == found.code == 0:
        for path, value in found.same.items():
            if path != name and not path.startswith(f"{name}/"):
                assert after.get(path) == value, f"{path}: {where}"
    elif found.code == 0:
        assert after.get(name) == planted, where
        assert any(f"{above}" in output for above in (Path(name).name, *Path(name).parts[:-1])), where


def shape(name):
    """Names that differ only in numbers and hashes are of one kind."""
    return re.sub(r"[0-9a-f]{16,}|\d+", "#", name)


def of_one_kind(names):
    return {shape(name): name for name in reversed(names)}.values()


@pytest.mark.parametrize("command", [name for name in COMMANDS if name not in HEAVY])
def test_nothing_is_followed_next_to_what_the_user_named(world, command):
    for call in itertools.islice(scenarios(command), 1):
        found, output = reference(world, call)
        assert found.code == 0 or command in REFUSED or command in CHECKS, (
            f"{call}: the world lacks something\n{output}"
        )
        made = [word for word in call if word not in found.before]
        tops = [name for name in found.names if not any(name.startswith(f"{one}/") for one in (*found.names, *made))]
        for name in of_one_kind(tops):
            check(world, call, found, name, LINKS[0])


# Their exit code is 1 where they find something.
CHECKS = {"diff", "drift", "schema diff", "lineage", "doctor", "validate", "verify"}


def kind_for(command, name):
    """The commands share most names, and each takes other ones and another kind for them."""
    kinds = KINDS if os.geteuid() == 0 else KINDS[:-1]
    return kinds[(zlib.crc32(shape(name).encode()) + COMMANDS.index(command)) % len(kinds)]


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_nothing_is_followed_under_any_name_that_can_be_guessed(world, command):
    seen = set()
    for call in scenarios(command):
        found, _ = reference(world, call)
        new = [name for name in of_one_kind(found.names) if shape(name) not in seen]
        seen |= {*map(shape, new)}
        step = max(1, -(-len(new) // MOST[command in HEAVY]))
        for name in new[COMMANDS.index(command) % step :: step]:
            check(world, call, found, name, kind_for(command, name))
