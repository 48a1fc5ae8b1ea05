"""Ingest from and to object stores: the bytes of a local run, or nothing at all if anything goes wrong."""

import base64
import json
import pickle
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import google_crc32c
import pytest
from emulators import Trouble
from ingesting import changed, run, tree
from object_stores import SCHEMES

from shardwright.config import parse_config
from shardwright.dataset.outputs import check_not_in_dataset
from shardwright.dataset.reader import ImageDataset
from shardwright.errors import CheckFailed, DatasetError, StorageError, UsageError
from shardwright.ingest import IngestRecipe, commit_ingest, ingest, locate, plan_ingest, write_range
from shardwright.staging import ranges
from shardwright.staging.staging import Staging
from shardwright.storage import buckets, gcs

pytestmark = pytest.mark.slow

# Both stores are behind one protocol, tested on both by test_object_stores. So not all pairs of cases are needed here.
both = pytest.mark.parametrize("scheme", ["gs", "s3"])
FREE = ("build.json", "lineage.json", "inputs.jsonl", "origins/inputs.jsonl")


def moved(stores, folder, raw, url):
    """Uploads an input; the configuration that reads it there."""
    stores.copy_of(folder, url)
    options = {"images": f"{url}/images"}
    if "labels" in raw["input"]:
        options["labels"] = {**raw["input"]["labels"], "path": f"{url}/labels.csv"}
    return changed(raw, **options)


def contents(root):
    return {
        str(p.relative_to(root)): p.read_bytes() for p in Path(root).rglob("*") if p.is_file() and p.name not in FREE
    }


def remote_contents(stores, url):
    return {name: data for name, data in stores.tree(url).items() if name not in FREE}


@pytest.mark.parametrize(("scheme", "layout"), [("gs", "image_label"), ("s3", "class_folders")])
def test_an_input_on_a_bucket_makes_the_bytes_of_a_local_one(stores, tmp_path, image_input, scheme, layout):
    raw = image_input(tmp_path / "in", layout=layout)
    local = run(raw, tmp_path / "local")
    there = moved(stores, tmp_path / "in", raw, f"{stores.bucket(scheme)}/data")
    assert run(there, tmp_path / "out") == local
    assert tree(tmp_path / "out") == tree(tmp_path / "local")


@pytest.mark.parametrize(
    ("scheme", "verify", "exact"),
    [("gs", "header", "keep"), ("gs", "full", "first"), ("s3", "header", "first"), ("s3", "full", "keep")],
)
def test_each_object_is_read_once(stores, tmp_path, image_input, scheme, verify, exact):
    """Also where duplicates are left out, and images rejected: from listed MD5, with the manifest of a local build."""
    raw = {
        **image_input(tmp_path / "in", layout="label_csv"),
        "images": {"verify": verify},
        "duplicates": {"exact": exact},
    }
    images = tmp_path / "in" / "images"
    for number in (3, 4):
        (images / f"{number:03d}.jpg").write_bytes((images / "002.jpg").read_bytes())
    (images / "005.jpg").write_bytes((images / "006.jpg").read_bytes()[:300])
    local = run(raw, tmp_path / "local")
    there = moved(stores, tmp_path / "in", raw, f"{stores.bucket(scheme)}/data")
    stores.requests.clear()
    assert run(there, tmp_path / "out") == local
    assert tree(tmp_path / "out") == tree(tmp_path / "local")
    reads = Counter(path.split("?")[0] for method, path in stores.requests if method == "GET" and ".jpg" in path)
    assert len(reads) == (22 if exact == "first" else 24)
    assert set(reads.values()) == {1}
    before = len(stores.requests)
    assert run(there, tmp_path / "out") == local
    assert not [path for method, path in stores.requests[before:] if method == "GET" and ".jpg" in path]


@both
def test_an_object_that_changes_while_the_run_reads_ends_it(stores, tmp_path, image_input, scheme, monkeypatch):
    raw = image_input(tmp_path / "in")
    there = moved(stores, tmp_path / "in", raw, f"{stores.bucket(scheme)}/data")
    read = buckets.read

    def flipped(url, *more):
        data = read(url, *more)
        return data[:-1] + bytes([data[-1] ^ 1]) if url.endswith("007.jpg") else data

    monkeypatch.setattr(buckets, "read", flipped)
    with pytest.raises(CheckFailed, match="the file has changed while the run was reading"):
        run(there, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_objects_without_a_checksum_of_their_own_are_read_before(stores, tmp_path, image_input, monkeypatch):
    """Composed objects have no MD5. A CRC-32C is enough for one whose size no other object has."""
    raw = {**image_input(tmp_path / "in", layout="label_csv"), "duplicates": {"exact": "first"}}
    images = tmp_path / "in" / "images"
    (images / "001.jpg").write_bytes((images / "000.jpg").read_bytes())
    (images / "002.jpg").write_bytes((images / "003.jpg").read_bytes() + bytes(1000))
    local = run(raw, tmp_path / "local")
    there = moved(stores, tmp_path / "in", raw, f"{stores.bucket('gs')}/data")
    listed = gcs._checksum

    def composed(md5, crc32c):
        crcs = [google_crc32c.value((images / f"{number:03d}.jpg").read_bytes()) for number in (1, 2)]
        of_these = int.from_bytes(base64.b64decode(crc32c), "big") in crcs
        return listed(None if of_these else md5, crc32c)

    monkeypatch.setattr(gcs, "_checksum", composed)
    stores.requests.clear()
    notes = []
    config = parse_config(there, base="/")
    assert ingest(config, tmp_path / "out", quiet=True, log=notes.append) == local
    # 000 and 001 have the same bytes, so neither has an MD5 here; 001 is left out.
    assert [note for note in notes if note.startswith("2 of 24 objects have no checksum that identifies them")]
    reads = Counter(path.split("?")[0].rpartition("F")[2] for method, path in stores.requests if ".jpg" in path)
    assert reads == {**{f"{number:03d}.jpg": 1 for number in range(24)}, "000.jpg": 2}


@pytest.mark.parametrize("encrypted", ["all", "the newest", "another"])
def test_encrypted_objects_are_read_before(stores, tmp_path, image_input, encrypted):
    """The entity tag of an object with SSE-KMS looks like an MD5. Equal objects have different ones."""
    raw = {**image_input(tmp_path / "in", layout="label_csv"), "duplicates": {"exact": "first"}}
    images = tmp_path / "in" / "images"
    (images / "001.jpg").write_bytes((images / "000.jpg").read_bytes())
    local = run(raw, tmp_path / "local")
    url = f"{stores.bucket('s3')}/data"
    there = moved(stores, tmp_path / "in", raw, url)
    for number in range(24) if encrypted == "all" else [7]:
        stores.encrypt(f"{url}/images/{number:03d}.jpg", later=60 if encrypted == "the newest" else 0)
    if encrypted == "another":
        # The listing does not show it, so the writer does.
        with pytest.raises(CheckFailed, match=r"007.jpg: is encrypted with SSE-KMS or SSE-C, unlike other objects"):
            run(there, tmp_path / "out")
        stores.encrypt(f"{url}/images/007.jpg", later=60)
    notes = []
    assert ingest(parse_config(there, base="/"), tmp_path / "out", quiet=True, log=notes.append) == local
    assert tree(tmp_path / "out") == tree(tmp_path / "local")
    assert [note for note in notes if note.startswith("24 of 24 objects have no checksum that identifies them")]


@both
def test_worker_processes_read_and_write_buckets(stores, tmp_path, image_input, scheme):
    raw = image_input(tmp_path / "in")
    run(raw, tmp_path / "local")
    bucket = stores.bucket(scheme)
    run(moved(stores, tmp_path / "in", raw, f"{bucket}/data"), f"{bucket}/out", workers=2)
    assert remote_contents(stores, f"{bucket}/out") == contents(tmp_path / "local")


@pytest.mark.parametrize(
    ("staging", "scheme"), [("adjacent", "gs"), ("adjacent", "s3"), ("local", "gs"), ("other store", "s3")]
)
def test_an_output_on_a_bucket_is_the_local_one(stores, tmp_path, image_input, scheme, staging):
    raw = image_input(tmp_path / "in")
    local = run(raw, tmp_path / "local")
    bucket = stores.bucket(scheme)
    other = stores.bucket(SCHEMES[1 - SCHEMES.index(scheme)])
    where = {"adjacent": None, "local": str(tmp_path / "staging"), "other store": f"{other}/staging"}[staging]
    out = f"{bucket}/sets/out"
    options = {**raw, "run": {"staging": where}}
    assert run(options, out) == local
    assert remote_contents(stores, out) == contents(tmp_path / "local")
    # Nothing is left: neither staging nor a claim, nor a working folder on this machine.
    assert not [path for path in (tmp_path / "tmp").rglob("*") if path.is_file()]
    assert {name.split("/")[0] for name in stores.tree(bucket)} == {"sets"}
    assert {name.split("/")[0] for name in stores.tree(f"{bucket}/sets")} == {"out"}
    assert not stores.tree(other)
    before = {info.name: info.pin for info in buckets.list_objects(f"{bucket}/")}
    assert run(options, out) == local
    assert {info.name: info.pin for info in buckets.list_objects(f"{bucket}/")} == before


@both
def test_a_bucket_as_staging_for_a_local_output(stores, tmp_path, image_input, scheme):
    raw = image_input(tmp_path / "in")
    local = run(raw, tmp_path / "local")
    bucket = stores.bucket(scheme)
    assert run({**raw, "run": {"staging": f"{bucket}/staging"}}, tmp_path / "out") == local
    assert tree(tmp_path / "out") == tree(tmp_path / "local")
    assert not stores.tree(bucket)


@both
def test_a_dataset_on_a_bucket_is_read_like_any_other(stores, tmp_path, image_input, scheme):
    raw = image_input(tmp_path / "in")
    run(raw, tmp_path / "local")
    out = f"{stores.bucket(scheme)}/out"
    run(raw, out)
    local, there = ImageDataset.open(tmp_path / "local"), ImageDataset.open(f"{out}/")
    assert there.manifest == local.manifest
    for split in local.splits:
        assert list(there.records(split)) == list(local.records(split))
        assert there.keys(split) == local.keys(split)
    assert list(there.ledger()) == list(local.ledger())
    shard = there.shards("train")[0]
    stores.write(shard.file, b"short")
    with pytest.raises(DatasetError, match="5 bytes instead of the manifest's"):
        ImageDataset.open(out)
    buckets.delete(shard.file)
    with pytest.raises(DatasetError, match="named by the manifest, but missing"):
        ImageDataset.open(out)
    with pytest.raises(DatasetError, match="not a finished dataset"):
        ImageDataset.open(f"{out}/index")


@both
def test_another_machine_goes_on_where_a_run_ended(stores, tmp_path, image_input, monkeypatch, scheme):
    from shardwright.ingest import run_ingest as ingest_run
    from shardwright.ingest import write_shards as write

    raw = image_input(tmp_path / "in")
    run(raw, tmp_path / "local")
    out = f"{stores.bucket(scheme)}/out"
    write_all, write_shard = ingest_run.map_processes, write.write_range

    def stop_after_two(*arguments):
        done = write_all(*arguments)
        yield next(done)
        yield next(done)
        raise KeyboardInterrupt

    monkeypatch.setattr(ingest_run, "map_processes", stop_after_two)
    with pytest.raises(KeyboardInterrupt):
        run(raw, out)
    with pytest.raises(DatasetError, match="not a finished dataset|no such folder"):
        ImageDataset.open(out)
    # Another machine has none of this one's files.
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "elsewhere"))
    monkeypatch.setattr(ingest_run, "map_processes", write_all)
    written = []
    monkeypatch.setattr(ingest_run, "write_range", lambda *a, **o: written.append(a) or write_shard(*a, **o))
    resumed = run(raw, out)
    assert len(written) == len(resumed.shards) - 2
    assert remote_contents(stores, out) == contents(tmp_path / "local")


@pytest.mark.parametrize(
    ("step", "scheme"), [("Split-train", "gs"), ("index", "gs"), ("ledger", "s3"), ("manifest.json", "gs")]
)
def test_a_publication_that_was_cut_short_is_finished_by_the_next_run(
    stores, tmp_path, image_input, monkeypatch, scheme, step
):
    raw = image_input(tmp_path / "in")
    run(raw, tmp_path / "local")
    out = f"{stores.bucket(scheme)}/out"

    def failing(function):
        def call(*arguments, **named):
            if any(str(value).startswith(f"{out}/{step}") for value in [*arguments, *named.values()]):
                raise StorageError("gone")
            return function(*arguments, **named)

        return call

    with monkeypatch.context() as patch:
        for name in ("upload", "copy", "create"):
            patch.setattr(buckets, name, failing(getattr(buckets, name)))
        with pytest.raises(StorageError, match="gone"):
            run(raw, out)
    with pytest.raises(DatasetError, match="not a finished dataset|no such folder"):
        ImageDataset.open(out)
    with pytest.raises(UsageError, match="another dataset .* is being published there"):
        run({**raw, "split": {"ratios": {"train": 0.5, "test": 0.5}}}, out)
    run(raw, out)
    assert remote_contents(stores, out) == contents(tmp_path / "local")


@both
def test_of_two_datasets_for_one_output_the_first_wins_whole(stores, tmp_path, image_input, monkeypatch, scheme):
    from shardwright.staging import output

    raw = image_input(tmp_path / "in")
    out = f"{stores.bucket(scheme)}/out"
    claim = output.claim

    def too_late(url, fingerprint):
        monkeypatch.setattr(output, "claim", claim)
        run({**raw, "split": {"ratios": {"train": 0.5, "test": 0.5}}}, out)
        claim(url, fingerprint)

    monkeypatch.setattr(output, "claim", too_late)
    with pytest.raises(UsageError, match="contains another dataset"):
        run(raw, out)
    assert ImageDataset.open(out).splits == ("test", "train")
    assert ".publishing" not in stores.tree(out)


@both
def test_what_else_is_at_the_output_is_refused(stores, tmp_path, image_input, scheme, monkeypatch):
    raw = image_input(tmp_path / "in")
    bucket = stores.bucket(scheme)
    stores.fill(bucket, {"file": b"", "full/a": b"", "full/b/c": b""})
    run({**raw, "split": {"ratios": {"train": 0.5, "test": 0.5}}}, f"{bucket}/other")
    for out, message in (
        (bucket, "is a whole bucket"),
        (f"{bucket}/file", "is not a folder"),
        (f"{bucket}/full", r"is not empty \(a, b/c, …\) and is not a dataset"),
        (f"{bucket}/other", "contains another dataset"),
        (f"{scheme}://no-such-bucket-here/out", "there is no such bucket"),
    ):
        with pytest.raises(UsageError, match=message):
            run(raw, out)
    there = moved(stores, tmp_path / "in", raw, f"{bucket}/data")
    with pytest.raises(UsageError, match="is inside the input folder"):
        run(there, f"{bucket}/data/images/out")
    with pytest.raises(UsageError, match=f"is inside the dataset {bucket}/other"):
        run(raw, f"{bucket}/other/below")
    stat = buckets.stat

    def only_below(url):
        """An account with rights to one folder of the bucket."""
        if url.startswith(f"{bucket}/other/") or url == f"{bucket}/manifest.json":
            raise UsageError(f"{bucket}: no permission to read objects")
        return stat(url)

    monkeypatch.setattr(buckets, "stat", only_below)
    check_not_in_dataset(f"{bucket}/other/below")


@both
def test_troubles_on_every_kind_of_request_end_in_the_same_bytes(stores, tmp_path, image_input, scheme):
    raw = image_input(tmp_path / "in")
    run(raw, tmp_path / "local")
    bucket = stores.bucket(scheme)
    there = moved(stores, tmp_path / "in", raw, f"{bucket}/data")
    count = [0]

    def every_seventh(method, path):
        count[0] += 1
        if count[0] % 7:
            return None
        return Trouble(cut=True) if method == "GET" and count[0] % 2 else Trouble((429, 500, 502, 503)[count[0] % 4])

    stores.meddle = every_seventh
    run(there, f"{bucket}/out")
    stores.meddle = None
    assert stores.pauses
    assert remote_contents(stores, f"{bucket}/out") == contents(tmp_path / "local")


@pytest.mark.parametrize(("scheme", "change"), [("gs", "rewritten"), ("s3", "deleted")])
def test_a_listing_that_changes_under_the_run_is_named_and_nothing_appears(
    stores, tmp_path, image_input, scheme, change
):
    raw = image_input(tmp_path / "in")
    bucket = stores.bucket(scheme)
    there = moved(stores, tmp_path / "in", raw, f"{bucket}/data")
    victim = f"{bucket}/data/images/007.jpg"
    done = []

    def after_the_listing(method, path):
        if method == "GET" and "007.jpg" in path and not done:
            done.append(path)
            buckets.delete(victim) if change == "deleted" else stores.write(victim, b"other")

    stores.meddle = after_the_listing
    with pytest.raises(CheckFailed, match="007.jpg: has been changed or deleted since the run listed it"):
        run(there, f"{bucket}/out")
    assert done
    assert not stores.tree(f"{bucket}/out")


@both
def test_a_store_that_goes_away_leaves_nothing_at_the_output(stores, tmp_path, image_input, scheme):
    raw = image_input(tmp_path / "in")
    bucket = stores.bucket(scheme)
    there = moved(stores, tmp_path / "in", raw, f"{bucket}/data")
    stores.meddle = lambda method, path: Trouble(503) if "017.jpg" in path else None
    with pytest.raises(StorageError, match="017.jpg: .* in 7 attempts"):
        run(there, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_names_that_no_file_could_have_go_to_the_ledger(stores, tmp_path, image_input):
    raw = image_input(tmp_path / "in", layout="class_folders")
    bucket = stores.bucket("gs")
    there = moved(stores, tmp_path / "in", raw, f"{bucket}/data")
    picture = next((tmp_path / "in").rglob("*.jpg")).read_bytes()
    bad = ["Fish/../../up.jpg", "Fish//x.jpg", "/etc/passwd", "Fish/nul\0.jpg"]
    stores.fill(f"{bucket}/data/images", {**dict.fromkeys(bad, picture), "Fish/line\nbreak.jpg": picture, "Fish/": b""})
    run(there, tmp_path / "out")
    rows = {row.key: row for row in ImageDataset.open(tmp_path / "out").ledger()}
    assert {key for key, row in rows.items() if row.code == "bad_name"} == set(bad)
    assert rows["Fish/line\nbreak.jpg"].status == "written"
    assert len(rows) == 24 + len(bad) + 1


FULL_DISK = """
import resource, sys, json
from shardwright.config import parse_config
from shardwright.errors import StorageError
from shardwright.ingest import ingest
raw, out, limit, workers = json.loads(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    try:
        ingest(parse_config(raw, base="/"), out, quiet=True, workers=workers)
    except StorageError as error:
        print(error)
        sys.exit(9)
"""


@pytest.mark.parametrize("workers", [1, 2])
def test_a_full_disk_is_named_and_nothing_appears(tmp_path, image_input, workers):
    raw = image_input(tmp_path / "in")
    script = tmp_path / "full_disk.py"
    script.write_text(FULL_DISK)
    call = [sys.executable, str(script), json.dumps(raw), str(tmp_path / "out")]
    done = subprocess.run([*call, "3000", str(workers)], capture_output=True, text=True, check=False)
    assert done.returncode == 9, done.stderr
    assert "cannot be written (File too large). Nothing was published." in done.stdout
    assert not (tmp_path / "out").exists()
    assert not [p for p in (tmp_path / ".out.staging").rglob("*") if p.name.startswith(".data")]
    done = subprocess.run([*call, str(1 << 30), str(workers)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    run(raw, tmp_path / "whole")
    assert tree(tmp_path / "out") == tree(tmp_path / "whole")


@both
def test_writers_on_another_machine_find_their_tasks_on_the_bucket(stores, tmp_path, image_input, scheme, monkeypatch):
    raw = image_input(tmp_path / "in")
    run(raw, tmp_path / "local")
    monkeypatch.setattr(ranges, "_MOST_IMAGES", 3)
    monkeypatch.setattr(ranges, "_SMALL", 0)
    config = parse_config(raw, base="/")
    prepared = plan_ingest(IngestRecipe.of(config), locate(config))
    plan = prepared.plan
    url = f"{stores.bucket(scheme)}/staging"
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "launcher"))
    here = Staging.open(url, plan.dataset.fingerprint, plan.tools)
    prepared.stage(here, elsewhere=True)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "other"))
    # As Beam passes it to a worker; the launcher's folder may be one that cannot be created there.
    there = pickle.loads(pickle.dumps(here))
    assert there == Staging.open(url, plan.dataset.fingerprint, plan.tools) != here
    assert not list(Path(there.root).iterdir())
    for part in plan.cut.missing(plan.dataset.shards, here, 16):
        write_range(part, plan.for_writers(), there)
    assert there.unfinished(plan.dataset.shards) == []
    assert not [p for name in ("Split-*", "index", "rows", "done") for p in Path(there.root, name).rglob("*.*")]
    commit_ingest(plan, here, tmp_path / "out", {})
    assert tree(tmp_path / "out") == tree(tmp_path / "local")
    # A later run from there must not take the fetched tasks for all of the tasks.
    assert not list(Path(there.root).glob("tasks*"))
