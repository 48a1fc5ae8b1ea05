"""Power cuts on a real ext4 and a real xfs while a command writes files: they are whole, or not there. Needs root."""

import os
import subprocess

import pytest
import yaml
from ingesting import tree
from real_disks import KINDS, real_disk
from running import SHARDWRIGHT

from shardwright.dataset.reader import ImageDataset
from shardwright.pipelines.cli import main
from shardwright.storage.fingerprint import checksum_matches
from shardwright.verify import verify

pytestmark = pytest.mark.soak

_CUTS = int(os.environ.get("SHARDWRIGHT_CUTS", "50"))
# Each writes `made/out`, a folder or a file.
_SUBSET = ["subset", "sets/one", "--share", "0.5", "--shard-records", "3"]
_WRITING = {
    "ingest": ["ingest", "one.yaml"],
    "ingest with a look at the pixels": ["ingest", "look.yaml"],
    "subset": _SUBSET,
    "merge": ["merge", "sets/one", "sets/two"],
    "reshard": ["reshard", "sets/one", "--shard-records", "4"],
    "relabel": ["relabel", "sets/one", "new.csv"],
    "forget": ["forget", "sets/one", "--keys", "keys.txt"],
    "retry-rejects": ["retry-rejects", "broken.yaml", "sets/broken"],
    "export": ["export", "sets/one", "--masks", "png"],
    "sample": ["sample", "--count", "12", "--height", "64", "--width", "96"],
    "report": ["report", "sets/one"],
    "diff": ["diff", "sets/one", "sets/two"],
    "drift": ["drift", "sets/one", "sets/two"],
    "card": ["card", "sets/one"],
    "init": ["init", "in/one/images", "in/one/labels.csv"],
    "schema infer": ["schema", "infer", "sets/one"],
    "get": ["get", "sets/one", "000.jpg"],
}
# They end with code 1 where datasets differ.
_COMPARING = ("diff", "drift")
# They write one small file at their end. Its temporary name, which no two calls share, may stay.
_OF_FILES = ("report", "diff", "drift", "card", "init", "schema infer", "get")
# A second call may not replace what may have been edited: code 2.
_KEEPING = (*_OF_FILES, "sample")


def arguments(command):
    words = _WRITING[command]
    return [*words, *(["--html"] if command in _COMPARING else ["--out"]), "made/out"]


@pytest.fixture(scope="module", params=KINDS)
def disk(request):
    with real_disk(request.param) as made:
        yield made


def called(folder, *words, codes=(0,)):
    """Calls a command in this process: a start takes longer than most of them."""
    before = os.getcwd()
    os.chdir(folder)
    try:
        assert main(list(words)) in codes
    finally:
        os.chdir(before)


@pytest.fixture(scope="module")
def base(disk, image_input):
    """A disk with inputs and datasets."""

    def prepare(folder):
        configs = {"one": {}, "two": {"seed": 1}, "broken": {}}
        for name, options in configs.items():
            raw = image_input(folder / "in" / name, images=40, **options)
            raw["shards"] = {"records": 5}
            (folder / f"{name}.yaml").write_text(yaml.safe_dump(raw))
        look = {**raw, "images": {"verify": "full"}, "duplicates": {"pixels": "keep"}}
        (folder / "look.yaml").write_text(yaml.safe_dump(look))
        for number, file in enumerate(sorted((folder / "in/two/images").iterdir())):
            file.rename(file.with_name(f"more-{number:03d}.jpg"))
        table = folder / "in/two/labels.csv"
        head, *rows = table.read_text().splitlines()
        table.write_text("\n".join([head, *(f"more-{row}" for row in rows)]) + "\n")
        for name in configs:
            images = sorted((folder / "in" / name / "images").iterdir())
            whole = images[0].read_bytes()
            if name == "broken":
                images[0].write_bytes(whole[:100])
            called(folder, "ingest", f"{name}.yaml", "--out", f"sets/{name}")
        images[0].write_bytes(whole)
        head, *rows = (folder / "in/one/labels.csv").read_text().splitlines()
        (folder / "new.csv").write_text("\n".join([head, *(f"{row.partition(',')[0]},5 3" for row in rows)]) + "\n")
        (folder / "keys.txt").write_text("000.jpg\n007.jpg\n")
        (folder / "made").mkdir()

    return disk.prepared(prepare)


def content(out):
    """The files of a result; a single file has the name ''."""
    return {"": out.read_bytes()} if out.is_file() else tree(out)


def sound(out):
    """Returns false if a file that may differ from run to run is not whole."""
    if not (out / "manifest.json").exists():
        return True
    ImageDataset.open(out)
    return all(checksum_matches((out / name).read_text()) for name in ("build.json", "lineage.json"))


@pytest.mark.parametrize("command", _WRITING)
def test_the_result_is_whole_or_absent_and_a_second_call_writes_it(disk, base, command, capsys):
    words, codes = arguments(command), (0, 1) if command in _COMPARING else (0,)

    def start():
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        return subprocess.Popen([SHARDWRIGHT, *words], cwd=disk.folder, **quiet)

    def ready():
        return command in _OF_FILES or any((disk.folder / "made").iterdir())

    ((finished,), seconds) = disk.run(base, start, codes=codes, ready=ready)
    with disk.mounted(finished.image) as folder:
        whole = content(folder / "made/out")
        if (folder / "made/out/manifest.json").exists():
            assert verify(folder / "made/out", workers=1, deep=True, quiet=True).findings == ()
    assert whole
    counts = {"whole": 0, "absent": 0, "staged": 0}
    for cut in disk.cuts(base, start, seconds, _CUTS, codes=codes, ready=ready):
        with disk.mounted(cut.image) as folder:
            out = folder / "made/out"
            there = out.exists()
            assert there or not cut.ended, "what was reported as written is not there"
            if there:
                assert content(out) == whole
                assert sound(out)
            if not cut.ended:
                counts["whole" if there else "absent"] += 1
                counts["staged"] += not there and any((folder / "made").iterdir())
            called(folder, *words, codes=(0, 2) if there and command in _KEEPING else codes)
            assert content(out) == whole
            assert sound(out)
            names = {place.name for place in (folder / "made").iterdir()}
            assert names == {"out"} or command in _OF_FILES, "leftovers"
    with capsys.disabled():
        print(f"\n{disk.kind}, {command}: {_CUTS} cuts: {counts}, all recovered")


def fill(folder, room):
    """Fills the disk, but for some bytes."""
    filler = folder / "filler"
    with filler.open("wb") as file:
        size = os.statvfs(folder).f_bfree * os.statvfs(folder).f_frsize
        while True:
            try:
                os.posix_fallocate(file.fileno(), 0, size)
                break
            except OSError:
                size -= 64 << 10
        file.truncate(max(0, size - room))
    return filler


@pytest.mark.parametrize("command", _WRITING)
def test_a_full_disk_ends_a_command_with_a_sentence_and_nothing_by_half(disk, base, command):
    words, codes = arguments(command), (0, 1) if command in _COMPARING else (0,)
    image = disk.prepared(lambda folder: called(folder, *words, codes=codes), base)
    with disk.mounted(image) as folder:
        whole = content(folder / "made/out")
    failed = 0
    for room in (0, 24 << 10, 100 << 10):
        with disk.mounted(disk.prepared(lambda folder, room=room: fill(folder, room), base)) as folder:
            out = folder / "made/out"
            done = subprocess.run([SHARDWRIGHT, *words], cwd=folder, capture_output=True, text=True, check=False)
            assert done.returncode in (0, 1, 2), done.stderr
            assert "Traceback" not in done.stderr
            if out.exists():
                assert content(out) == whole
            elif done.returncode:
                failed += 1
                assert len(done.stderr.strip().splitlines()) == 1, done.stderr
            (folder / "filler").unlink()
            called(folder, *words, codes=(0, 2) if out.exists() and command in _KEEPING else codes)
            assert content(out) == whole
    # A small file may fit into what is left.
    assert failed or command in _OF_FILES
