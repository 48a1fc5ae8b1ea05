"""Objects through the real clients: listed, pinned, read in full or not at all, errors with a name."""

import bisect
import threading
import unicodedata

import pytest
from emulators import Trouble
from object_stores import SCHEMES, forget_clients

from shardwright.errors import CheckFailed, CredentialsError, StorageError, UsageError
from shardwright.staging import output
from shardwright.storage import (
    buckets,
    hash_file,
    is_folder,
    list_inputs,
    open_file,
    open_table,
    read_bytes,
    read_start,
)
from shardwright.storage.object_store import ObjectInfo

both = pytest.mark.parametrize("scheme", SCHEMES)


@both
def test_a_folder_is_listed_by_key_with_sizes(stores, scheme):
    bucket = stores.bucket(scheme)
    names = ["b.jpg", "a/z.png", "a.jpg", "a/y/x.jpg", ".hidden.jpg", ".cache/c.jpg"]
    stores.fill(f"{bucket}/data", {name: name.encode() for name in names})
    stores.fill(bucket, {"data2/other.jpg": b"", "data.jpg": b""})
    for images in (f"{bucket}/data", f"{bucket}/data/"):
        listing = list_inputs(images)
        assert listing.keys == ["a.jpg", "a/y/x.jpg", "a/z.png", "b.jpg"]
        assert list(listing.sizes) == [5, 9, 7, 5]
        assert listing.root == f"{bucket}/data"
        assert [read_bytes(listing.path(i), listing.pin(i)) for i in range(4)] == [k.encode() for k in listing.keys]
    assert list_inputs(bucket).keys == ["data.jpg", *(f"data/{key}" for key in listing.keys), "data2/other.jpg"]


@pytest.mark.parametrize(
    ("encrypted", "later", "listed"),
    [("", 0, True), ("abcd", 0, False), ("a", 0, False), ("c", 60, False), ("c", -60, False), ("c", 0, True)],
)
def test_an_entity_tag_of_an_encrypted_object_is_no_checksum(stores, encrypted, later, listed):
    """The oldest and the newest object are checked, so a bucket whose default has changed is found out."""
    bucket = stores.bucket("s3")
    stores.fill(bucket, {f"{name}.jpg": name.encode() for name in "abcd"})
    for name in encrypted:
        stores.encrypt(f"{bucket}/{name}.jpg", later)
    stores.requests.clear()
    listing = list_inputs(bucket)
    assert bool(listing.checksums) == listed
    assert len([method for method, _ in stores.requests if method == "HEAD"]) <= 3
    assert [read_bytes(listing.path(i), listing.pin(i)) for i in range(4)] == [b"a", b"b", b"c", b"d"]


@both
@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("*.jpg", ["a.jpg"]),
        ("**/*.jpg", ["a.jpg", "x/b.jpg", "x/z/c.jpg", "y/d.jpg"]),
        ("x/**/*.jpg", ["b.jpg", "z/c.jpg"]),
        ("[x]/?.png", ["x/e.png"]),
        ("x*/*", ["x/b.jpg", "x/e.png"]),
    ],
)
def test_globs_take_what_they_take_on_disk(stores, tmp_path, scheme, pattern, expected):
    names = ["a.jpg", "x/b.jpg", "x/z/c.jpg", "y/d.jpg", "x/e.png"]
    bucket = stores.bucket(scheme)
    stores.fill(f"{bucket}/in", dict.fromkeys(names, b"1"))
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert list_inputs(f"{bucket}/in/{pattern}").keys == list_inputs(f"{tmp_path}/{pattern}").keys == expected


@both
def test_a_folder_with_wildcards_in_its_name_is_a_folder(stores, scheme):
    bucket = stores.bucket(scheme)
    stores.fill(bucket, {"data[1]/a.jpg": b""})
    assert list_inputs(f"{bucket}/data[1]").keys == ["a.jpg"]


@both
def test_the_labels_are_no_input_be_they_a_file_or_a_folder(stores, scheme):
    bucket = stores.bucket(scheme)
    stores.fill(bucket, {"a.jpg": b"", "train.csv": b"", "masks/a.png": b"", "masks2/a.png": b""})
    assert list_inputs(bucket, leave_out=f"{bucket}/train.csv").keys == ["a.jpg", "masks/a.png", "masks2/a.png"]
    assert list_inputs(bucket, leave_out=f"{bucket}/masks").keys == ["a.jpg", "masks2/a.png", "train.csv"]


def test_names_that_no_file_could_have_are_refused_by_name(stores):
    bucket = stores.bucket("gs")
    spelled = unicodedata.normalize("NFD", "é.jpg")
    names = ["good.jpg", "/lead.jpg", "x//y.jpg", "../up.jpg", "x/./y.jpg", "nul\0.jpg", "new\nline.jpg", spelled]
    stores.fill(f"{bucket}/in", dict.fromkeys(names, b"1"))
    stores.fill(f"{bucket}/in", {"empty/": b"", "full/": b"data"})
    listing = list_inputs(f"{bucket}/in")
    assert listing.keys == ["good.jpg", "new\nline.jpg", unicodedata.normalize("NFC", spelled)]
    assert [read_bytes(listing.path(i)) for i in range(3)] == [b"1"] * 3
    assert {r.key: r.code for r in listing.refused} == dict.fromkeys(
        ["/lead.jpg", "x//y.jpg", "../up.jpg", "x/./y.jpg", "nul\0.jpg", "full/"], "bad_name"
    )


def test_two_spellings_of_one_name_are_one_key_and_one_refusal(stores):
    bucket = stores.bucket("s3")
    stores.fill(bucket, {unicodedata.normalize(form, "é.jpg"): b"" for form in ("NFC", "NFD")})
    listing = list_inputs(bucket)
    assert len(listing.keys) == 1
    assert [r.code for r in listing.refused] == ["duplicate_key"]


@pytest.mark.slow
@both
def test_a_listing_of_several_pages_is_whole(stores, scheme):
    bucket = stores.bucket(scheme)
    names = [f"{number:04d}" for number in range(1001)]
    stores.fill(bucket, dict.fromkeys(names, b""))
    failed = set()

    def every_page_fails_once(method, path):
        return None if path in failed else failed.add(path) or Trouble(503)

    stores.meddle = every_page_fails_once
    assert list_inputs(bucket).keys == names
    assert len(stores.pauses) >= 2
    stores.meddle = None
    stores.requests.clear()
    assert list_inputs(bucket).keys == names
    # Each page is asked for once, after one that would show folders. A check for any object asks for one page only.
    assert len([path for method, path in stores.requests if method == "GET"]) == 3
    checked = len(stores.requests) - 3
    assert checked <= (3 if scheme == "s3" else 0)
    assert is_folder(bucket)
    assert len(stores.requests) == 4 + checked


@both
@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("{bucket}/absent", "does not exist"),
        ("{bucket}/absent/*.jpg", "the folder .*absent of .* does not exist"),
        ("{bucket}/full/*.gif", "matches no file"),
        ("{bucket}/full/a.jpg", "is a file"),
        ("{bucket}/full/*/../a", r"has `\.\.` after a wildcard"),
        ("{scheme}://no-such-bucket-here/a", "no-such-bucket-here: there is no such bucket"),
    ],
)
def test_wrong_paths_are_named(stores, scheme, path, message):
    bucket = stores.bucket(scheme)
    stores.fill(bucket, {"full/a.jpg": b""})
    with pytest.raises(UsageError, match=message):
        list_inputs(path.format(bucket=bucket, scheme=scheme))


@both
def test_an_empty_bucket_is_an_empty_folder(stores, scheme):
    with pytest.raises(UsageError, match="contains no files"):
        list_inputs(stores.bucket(scheme))


@both
def test_of_an_object_that_is_too_large_nothing_is_read(stores, scheme):
    url = f"{stores.bucket(scheme)}/list.txt"
    stores.write(url, b"12345")
    assert read_bytes(url, most=5) == b"12345"
    stores.requests.clear()
    with pytest.raises(OSError, match="5 bytes"):
        read_bytes(url, most=4)
    assert len(stores.requests) == 1
    with pytest.raises(FileNotFoundError):
        read_bytes(f"{url}.gz", most=4)


@both
def test_tables_are_streamed_without_their_mark(stores, scheme):
    bucket = stores.bucket(scheme)
    rows = "".join(f"{number},é\r\n" for number in range(500_000))
    stores.write(f"{bucket}/t.csv", b"\xef\xbb\xbf" + rows.encode())
    with open_table(f"{bucket}/t.csv") as file:
        assert file.readline() == "0,é\r\n"
    stores.requests.clear()
    with open_table(f"{bucket}/t.csv") as file:
        assert file.read() == rows
    assert len(stores.requests) <= 4
    for wrong, message in ((f"{bucket}/u.csv", "does not exist"), (bucket, "is a folder")):
        with pytest.raises(UsageError, match=message):
            open_table(wrong)


@both
def test_parts_of_objects_are_what_they_are_in_files(stores, scheme):
    bucket = stores.bucket(scheme)
    stores.fill(bucket, {"a": b"0123456789", "empty": b""})
    assert read_start(f"{bucket}/a", 3) == b"012"
    assert read_start(f"{bucket}/a", 30) == b"0123456789"
    assert read_start(f"{bucket}/empty", 30) == read_bytes(f"{bucket}/empty") == b""
    with open_file(f"{bucket}/a") as file:
        file.seek(-4, 2)
        assert file.tell() == 6
        assert file.read(2) == b"67"
        assert file.read() == b"89"
        assert file.read() == b""
    with pytest.raises(FileNotFoundError):
        open_file(f"{bucket}/b")
    with pytest.raises(FileNotFoundError):
        read_bytes(f"{bucket}/b")
    assert hash_file(f"{bucket}/b") is None


@both
@pytest.mark.parametrize("status", [429, 500, 503])
def test_what_is_transient_is_asked_for_again_after_growing_pauses(stores, scheme, status):
    bucket = stores.bucket(scheme)
    stores.write(f"{bucket}/a", b"data")
    left = [Trouble(status)] * 3
    # Newer clients of Google's look at a bucket the first time they use it, and do without an answer.
    stores.meddle = lambda method, path: left.pop() if left and path.split("?")[0].endswith("/a") else None
    assert read_bytes(f"{bucket}/a") == b"data"
    assert stores.pauses == [0.25, 0.5, 1.0]


@both
def test_a_store_that_stays_away_is_a_named_error(stores, scheme):
    bucket = stores.bucket(scheme)
    stores.meddle = lambda method, path: Trouble(503)
    with pytest.raises(StorageError, match=rf"{bucket}/a: .* in 7 attempts; the last one: HTTP 503"):
        read_bytes(f"{bucket}/a")
    assert stores.pauses == [0.25, 0.5, 1.0, 2.0, 4.0, 8.0]


@both
@pytest.mark.parametrize("read", [read_bytes, lambda url: open_file(url).read()], ids=["whole", "in pieces"])
def test_an_answer_that_breaks_off_is_read_again(stores, scheme, read):
    bucket = stores.bucket(scheme)
    data = bytes(range(256)) * 64
    stores.write(f"{bucket}/a", data)
    left = [Trouble(cut=True)] * 2
    stores.meddle = lambda method, path: left.pop() if left and method == "GET" else None
    assert read(f"{bucket}/a") == data
    assert not left


@both
def test_bytes_that_do_not_have_the_stores_checksum_are_read_again(stores, scheme):
    url = f"{stores.bucket(scheme)}/a"
    # The client gives S3 the checksum that S3 itself would make.
    buckets.create(url, b"data" * 99)
    left = [Trouble(flip=True)] * 2
    stores.meddle = lambda method, path: left.pop() if left and method == "GET" else None
    assert read_bytes(url) == b"data" * 99
    assert not left
    stores.meddle = lambda method, path: Trouble(flip=True)
    with pytest.raises(StorageError, match="/a: .*checksum|/a: .*Checksum"):
        read_bytes(url)


@both
def test_an_object_that_is_not_the_listed_version_is_named(stores, scheme):
    bucket = stores.bucket(scheme)
    stores.fill(bucket, {"a.jpg": b"one", "b.jpg": b"two"})
    listing = list_inputs(bucket)
    stores.write(f"{bucket}/a.jpg", b"ONE")
    buckets.delete(f"{bucket}/b.jpg")
    for i, key in enumerate(listing.keys):
        with pytest.raises(CheckFailed, match=rf"{bucket}/{key}: has been changed or deleted"):
            hash_file(listing.path(i), listing.pin(i))


@both
def test_a_file_that_is_open_stays_one_version(stores, scheme):
    bucket = stores.bucket(scheme)
    stores.write(f"{bucket}/a", bytes(9 << 20))
    with open_file(f"{bucket}/a") as file:
        assert file.read(10) == bytes(10)
        stores.write(f"{bucket}/a", b"1" * (9 << 20))
        with pytest.raises(CheckFailed, match="has been changed"):
            file.read()


@both
def test_of_many_writers_of_a_new_object_one_wins(stores, scheme):
    url = f"{stores.bucket(scheme)}/manifest.json"
    won = []
    threads = [
        threading.Thread(target=lambda data=bytes([number]): buckets.create(url, data) and won.append(data))
        for number in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert won == [buckets.read(url)]


@both
def test_a_lost_answer_to_a_write_is_no_failure(stores, scheme):
    url = f"{stores.bucket(scheme)}/a"
    assert buckets.create(url, b"1")
    assert buckets.create(url, b"1")
    assert not buckets.create(url, b"2")


@both
def test_what_is_deleted_while_another_writer_looks_at_it_is_written(stores, scheme, monkeypatch):
    """As a claim or a mark that its owner takes away just then."""
    bucket = stores.bucket(scheme)
    url = f"{bucket}/a"
    assert buckets.create(url, b"1")
    store, _ = buckets._locate(url)
    read = store.read

    def late(*given):
        buckets.delete(url)
        return read(*given)

    monkeypatch.setattr(store, "read", late)
    assert buckets.create(url, b"2")
    monkeypatch.undo()
    assert buckets.read(url) == b"2"


@both
def test_objects_are_uploaded_copied_and_deleted(stores, tmp_path, scheme):
    bucket, other = stores.bucket(scheme), stores.bucket(scheme)
    data = bytes(range(256)) * (9 << 12)
    (tmp_path / "file").write_bytes(data)
    buckets.upload(f"{bucket}/x/y", str(tmp_path / "file"))
    buckets.copy(f"{bucket}/x/y", f"{other}/z")
    assert buckets.read(f"{other}/z") == data
    buckets.delete(f"{bucket}/x/y")
    buckets.delete(f"{bucket}/x/y")
    assert buckets.stat(f"{bucket}/x/y") is None
    with pytest.raises(CheckFailed, match="x/y: was deleted"):
        buckets.copy(f"{bucket}/x/y", f"{other}/z")


@both
def test_no_permission_is_named_with_what_to_ask_for(stores, scheme):
    bucket = stores.bucket(scheme)
    stores.meddle = lambda method, path: Trouble(403)
    for call in (lambda: list_inputs(bucket), lambda: read_bytes(f"{bucket}/a")):
        with pytest.raises(UsageError, match=rf"{bucket}: no permission to .*(objectViewer|s3:GetObject)"):
            call()
    assert not stores.pauses


@both
def test_a_missing_bucket_is_named_on_writing_too(stores, tmp_path, scheme):
    (tmp_path / "file").touch()
    for write in (lambda url: buckets.create(url, b""), lambda url: buckets.upload(url, str(tmp_path / "file"))):
        with pytest.raises(UsageError, match="no-such-bucket-here: there is no such bucket"):
            write(f"{scheme}://no-such-bucket-here/a")


def test_no_credentials_are_named_with_how_to_get_them(stores, monkeypatch, tmp_path):
    for name in ("STORAGE_EMULATOR_HOST", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "absent.json"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "absent"))
    forget_clients()
    try:
        with pytest.raises(CredentialsError, match="(?s)gs://b: no valid Google credentials .*gcloud auth"):
            list_inputs("gs://b/a")
        with pytest.raises(CredentialsError, match="(?s)s3://b: no valid AWS credentials .*aws configure"):
            list_inputs("s3://b/a")
    finally:
        forget_clients()


def test_an_output_that_is_released_while_one_looks_at_its_claim_is_claimed(stores, monkeypatch):
    out = f"{stores.bucket('gs')}/ds"
    output.claim(out, "one")
    create = buckets.create

    def released(url, data):
        had = create(url, data)
        output.release(out)
        monkeypatch.undo()
        return had

    monkeypatch.setattr(buckets, "create", released)
    output.claim(out, "two")
    assert output.claimed(out) == "two"


@both
def test_folders_are_listed_concurrently_as_one_listing_has_them(stores, scheme, monkeypatch):
    """The answers to the first two folders wait for each other."""
    bucket = stores.bucket(scheme)
    names = [f"{folder}/{number}.jpg" for folder in ("a", "b", "c.d/e") for number in range(3)]
    stores.fill(f"{bucket}/data", dict.fromkeys([*names, "c", "c.jpg", "c.jpg.txt"], b"1"))
    expected = {info.name: info for info in buckets.list_objects(f"{bucket}/data/")}
    store, both_are_here = buckets._store(*bucket.split("://")), threading.Barrier(2, timeout=20)
    read, asked = store.list_page, []

    def list_page(prefix, *more):
        asked.append(prefix)
        if prefix in ("data/a/", "data/b/"):
            both_are_here.wait()
        return read(prefix, *more)

    monkeypatch.setattr(store, "list_page", list_page)
    found = list(buckets.list_tree(f"{bucket}/data/"))
    assert len(found) == len(expected) == 12
    assert {info.name: info for info in found} == expected
    assert sorted(asked) == [f"data/{name}" for name in ("a/", "b/", "c", "c.d/", "c.jpg", "c.jpg.txt")]


@both
def test_a_flat_folder_is_listed_in_several_places_concurrently(stores, scheme, monkeypatch):
    bucket = stores.bucket(scheme)
    store, prefix = buckets._store(*bucket.split("://")), "data/"
    names = [f"{prefix}img_{number * 7:06d}{ending}" for number in range(300) for ending in (".jpg", ".png")]
    names = sorted([*names, f"{prefix}img_000999", f"{prefix}z", f"{prefix}\u00e4/1.jpg"])
    read, starts = store.list_page, []

    def list_page(prefix, page, start=""):
        """Pages of ten names, of a listing that the store begins where it should."""
        starts.append(start)
        first = bisect.bisect_left(names, page or start)
        found = [ObjectInfo(name, 1, "1") for name in names[first : first + 10]]
        return found, names[first + 10] if first + 10 < len(names) else None

    monkeypatch.setattr(store, "names_page", lambda *_: (names[:10], "more"))
    monkeypatch.setattr(store, "list_page", list_page)
    found = [info.name for info in buckets.list_tree(f"{bucket}/{prefix}")]
    assert sorted(found) == names
    assert len(set(starts)) >= 8
    assert len(starts) <= 2 * 61
    monkeypatch.setattr(store, "list_page", read)
    stores.fill(f"{bucket}/data", dict.fromkeys("abcd", b"1"))
    after = [info.name for info in store.list_page(prefix, None, "data/b")[0]]
    assert after in (["data/b", "data/c", "data/d"], ["data/c", "data/d"])


@both
def test_a_folder_without_folders_is_one_listing(stores, scheme, monkeypatch):
    bucket = stores.bucket(scheme)
    stores.fill(f"{bucket}/data", dict.fromkeys(["a.jpg", "b.jpg", "c/d.jpg"], b"1"))
    before = len(stores.requests)
    assert len(list(buckets.list_tree(f"{bucket}/data/"))) == 3
    assert len(stores.requests) - before == 2
