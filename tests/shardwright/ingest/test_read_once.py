"""Local files are read once: writers make the content IDs, and states identify files until then."""

import os
from pathlib import Path

import numpy as np
import pytest
from ingesting import run, tree
from PIL import Image

from shardwright.errors import CheckFailed, UsageError
from shardwright.ingest import run_ingest as ingest_run
from shardwright.storage import file_pins, look_at_files
from shardwright.storage.listing import Listing

NEVER, AT_ONCE = 1 << 62, -(1 << 62)


@pytest.fixture
def settled(monkeypatch):
    """Sets how long ago a file must have changed, in nanoseconds."""
    return lambda least: monkeypatch.setattr(file_pins, "_SETTLED_NANOSECONDS", least)


def folders(root, *, images=24, size=64):
    """Images of noise in two class folders; one copy, and two that have the size of another one and other bytes."""
    random = np.random.default_rng(7)
    for i in range(images):
        file = root / ("cat", "dog")[i % 2] / f"{i:03}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(random.integers(0, 256, (size, size, 3), np.uint8)).save(file)
    first = (root / "cat/000.png").read_bytes()
    (root / "cat/copy.png").write_bytes(first)
    for i, at in enumerate((len(first) // 2, len(first) // 2 + 1)):
        (root / f"dog/same_size_{i}.png").write_bytes(first[:at] + bytes([first[at] ^ 1]) + first[at + 1 :])
    return {
        "input": {"images": str(root)},
        "task": "classification",
        "duplicates": {"exact": "first"},
        "shards": {"target_size": "64KB"},
    }


def bytes_read():
    fields = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    return int(fields["rchar"])


def test_a_file_is_read_once_and_the_dataset_is_the_same(tmp_path, settled):
    raw = folders(tmp_path / "in", size=256)
    total = sum(file.stat().st_size for file in (tmp_path / "in").rglob("*.png"))
    read = {}
    for name, least in (("once", AT_ONCE), ("twice", NEVER)):
        settled(least)
        before = bytes_read()
        run(raw, tmp_path / name, workers=1)
        read[name] = (bytes_read() - before) / total
    assert tree(tmp_path / "once") == tree(tmp_path / "twice")
    # The copy is read before. Headers, samples and task files are some more bytes.
    assert read["once"] < 1.25 < 1.9 < read["twice"]


@pytest.mark.parametrize("verify", ["header", "full"])
def test_workers_and_measures_make_no_difference(tmp_path, settled, verify):
    raw = {**folders(tmp_path / "in"), "images": {"verify": verify}}
    settled(NEVER)
    expected = run(raw, tmp_path / "hashed", workers=1)
    settled(AT_ONCE)
    assert run(raw, tmp_path / "out", workers=2) == expected
    assert tree(tmp_path / "out") == tree(tmp_path / "hashed")
    assert expected.totals["duplicate"] == 1
    assert expected.totals["inputs"] == 27


def test_files_of_one_size_and_the_same_times_are_not_copies(tmp_path, settled, monkeypatch):
    raw = folders(tmp_path / "in")
    settled(NEVER)
    expected = run(raw, tmp_path / "hashed", workers=1)
    settled(AT_ONCE)
    # As after `tar -x`: times of whole seconds, and the clock has not ticked between two files.
    monkeypatch.setattr(file_pins, "state_text", lambda file: f"{file.st_size} 0 0")
    assert run(raw, tmp_path / "out", workers=1) == expected
    assert tree(tmp_path / "out") == tree(tmp_path / "hashed")


def test_a_file_that_changes_before_it_is_written_ends_the_run(tmp_path, settled, monkeypatch):
    raw = folders(tmp_path / "in")
    settled(AT_ONCE)
    write_all = ingest_run.map_processes
    file = tmp_path / "in/dog/005.png"

    def changed_before(*given):
        data = file.read_bytes()
        file.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
        return write_all(*given)

    monkeypatch.setattr(ingest_run, "map_processes", changed_before)
    with pytest.raises(CheckFailed, match=r"005\.png: the file has changed"):
        run(raw, tmp_path / "out", workers=1)
    assert not (tmp_path / "out").exists()


def test_after_an_interruption_finished_shards_are_kept_only_of_the_same_files(tmp_path, settled, monkeypatch):
    raw = folders(tmp_path / "in")
    settled(AT_ONCE)
    write_all, write_shard = ingest_run.map_processes, ingest_run.write_range

    def stop_after_two(*given):
        done = write_all(*given)
        yield next(done)
        yield next(done)
        raise KeyboardInterrupt

    written = []
    monkeypatch.setattr(
        ingest_run, "write_range", lambda number, **given: written.append(number) or write_shard(number, **given)
    )
    for change in (False, True):
        monkeypatch.setattr(ingest_run, "map_processes", stop_after_two)
        with pytest.raises(KeyboardInterrupt):
            run(raw, tmp_path / "out", workers=1)
        monkeypatch.setattr(ingest_run, "map_processes", write_all)
        if change:
            file = tmp_path / "in/cat/002.png"
            file.write_bytes((tmp_path / "in/cat/004.png").read_bytes() + b"behind the end")
        written.clear()
        manifest = run(raw, tmp_path / "out", workers=1)
        assert len(written) == len(manifest.shards) - (0 if change else 2)
        settled(NEVER)
        assert manifest == run(raw, tmp_path / "whole", workers=1)
        settled(AT_ONCE)
        assert tree(tmp_path / "out") == tree(tmp_path / "whole")
        for name in ("out", "whole"):
            (tmp_path / name).rename(tmp_path / f"{name}-{change}")
    assert not list(tmp_path.glob(".*"))


def test_content_decides_whether_an_output_is_this_dataset(tmp_path, settled):
    raw = folders(tmp_path / "in")
    settled(AT_ONCE)
    expected = run(raw, tmp_path / "out")
    file = tmp_path / "in/dog/005.png"
    known = file.stat()
    os.utime(file)
    assert run(raw, tmp_path / "out") == expected
    data = file.read_bytes()
    file.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    os.utime(file, ns=(known.st_atime_ns, known.st_mtime_ns))
    with pytest.raises(UsageError, match="contains another dataset"):
        run(raw, tmp_path / "out")


def test_what_cannot_be_opened_or_has_just_changed_has_no_state(tmp_path, settled):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").write_bytes(b"some")
    names = ["file", "missing", "pipe"]
    listing = Listing(str(tmp_path), names, names, [4, 4, 4], [])
    settled(AT_ONCE)
    states, samples = look_at_files(listing, np.ones(3, np.bool_))
    assert [bool(state) for state in states] == [True, False, False]
    assert samples.any(axis=1).tolist() == [True, False, False]
    settled(NEVER)
    assert list(look_at_files(listing, np.ones(3, np.bool_))[0]) == ["", "", ""]


@pytest.mark.parametrize("at", [0, 4095, 10_000, 14_095])
def test_samples_are_of_the_start_and_of_the_middle(tmp_path, at):
    data = bytes(20_000)
    (tmp_path / "one").write_bytes(data)
    (tmp_path / "other").write_bytes(data[:at] + b"x" + data[at + 1 :])
    names = ["one", "other"]
    _, samples = look_at_files(Listing(str(tmp_path), names, names, [20_000] * 2, []), np.ones(2, np.bool_))
    assert samples[0].tolist() != samples[1].tolist()
