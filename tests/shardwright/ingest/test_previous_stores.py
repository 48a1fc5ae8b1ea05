"""`previous` on object stores: an object that has not changed is never requested, also if its stored bytes differ."""

import shutil
from dataclasses import replace

import pytest
from emulators import Trouble
from ingesting import config, ledger, run, tree
from monthly import COPIED, GONE, NEW, OLD, READ, copied_of, picture, raw_of, run_telling, write_months
from object_stores import SCHEMES
from PIL import Image

from shardwright.dataset.reader import ImageDataset
from shardwright.ingest import select_spans as spans
from shardwright.ingest import survey
from shardwright.ingest.retry import retry_rejects
from shardwright.storage import buckets

pytestmark = pytest.mark.slow
# Stores differ in what they list of an object; the rest is behind one protocol, tested on both by test_object_stores.
both = pytest.mark.parametrize("scheme", SCHEMES)
one = pytest.mark.parametrize("scheme", SCHEMES[:1])


@pytest.fixture(scope="module")
def months(tmp_path_factory):
    folder = tmp_path_factory.mktemp("months")
    write_months(folder)
    return folder


def deliver(stores, url, folder, before=None):
    """Makes a bucket's folder hold what a local one does; what is the same stays the very object."""
    old = {} if before is None else {p.relative_to(before).as_posix(): p.read_bytes() for p in before.rglob("*.jpg")}
    new = {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*.jpg")}
    for name in old.keys() - new.keys():
        buckets.delete(f"{url}/{name}")
    for name, data in new.items():
        if old.get(name) != data:
            stores.write(f"{url}/{name}", data)


def image_requests(stores):
    """Requests for single images of the input; not for the encryption of a few, which belong to the listing."""
    return [path for method, path in stores.requests if method == "GET" and ".jpg" in path]


OPTIONS = [
    {},
    {"images": {"resize": "stretch", "size": [24, 32]}},
    {"images": {"verify": "full"}, "duplicates": {"exact": "first", "pixels": "first"}},
]


@pytest.mark.parametrize(("scheme", "options"), list(zip(("s3", "gs", "gs"), OPTIONS, strict=True)))
def test_only_what_has_changed_is_asked_for(stores, months, tmp_path, scheme, options):
    url = f"{stores.bucket(scheme)}/in"
    deliver(stores, url, months / "first")
    earlier = f"{url.removesuffix('/in')}/one"
    run(raw_of(url, **options), earlier)
    deliver(stores, url, months / "second", months / "first")
    run(raw_of(url, **options), tmp_path / "full")
    stores.requests.clear()
    notes = run_telling({**raw_of(url, **options), "reuse_from": earlier}, tmp_path / "copied")
    assert copied_of(notes) == (COPIED, READ)
    asked = image_requests(stores)
    # Once to be written, and once before where the plan depends on pixels.
    assert len(asked) == (2 * READ if "duplicates" in options else READ)
    assert len({path.split("?")[0] for path in asked}) == READ
    assert tree(tmp_path / "copied") == tree(tmp_path / "full")
    # A dataset of one shard per split needs few requests.
    shards = [path for method, path in stores.requests if method == "GET" and ".tfrecord" in path]
    assert len(shards) <= 2 * len(ImageDataset.open(earlier).manifest.shards)


@both
def test_without_origins_the_bytes_in_the_shards_are_compared(stores, months, tmp_path, scheme):
    url = f"{stores.bucket(scheme)}/in"
    run(raw_of(months / "first"), tmp_path / "one")
    assert not (tmp_path / "one" / "origins").exists()
    deliver(stores, url, months / "second")
    run(raw_of(url), tmp_path / "full")
    stores.requests.clear()
    notes = run_telling({**raw_of(url), "reuse_from": str(tmp_path / "one")}, tmp_path / "copied")
    assert copied_of(notes) == (COPIED, READ)
    assert len(image_requests(stores)) == READ
    assert tree(tmp_path / "copied") == tree(tmp_path / "full")


@both
def test_an_image_that_is_uploaded_again_with_the_same_bytes_is_the_same(stores, months, tmp_path, scheme):
    url = f"{stores.bucket(scheme)}/in"
    deliver(stores, url, months / "first")
    run(raw_of(url), tmp_path / "one")
    deliver(stores, url, months / "first")
    stores.requests.clear()
    notes = run_telling({**raw_of(url), "reuse_from": str(tmp_path / "one")}, tmp_path / "two")
    assert copied_of(notes) == (OLD, 0)
    assert not image_requests(stores)
    assert tree(tmp_path / "two") == tree(tmp_path / "one")


@both
def test_what_the_store_lists_no_checksum_of_is_hashed_and_then_copied(stores, months, tmp_path, scheme, monkeypatch):
    url = f"{stores.bucket(scheme)}/in"
    deliver(stores, url, months / "first")
    listed = spans.read_spans

    def without(*arguments):
        delivered = listed(*arguments)
        checksums = [""] * len(delivered.listing.keys)
        return replace(delivered, listing=replace(delivered.listing, checksums=checksums))

    run(raw_of(url), tmp_path / "one")
    monkeypatch.setattr(survey, "read_spans", without)
    stores.requests.clear()
    notes = run_telling({**raw_of(url), "reuse_from": str(tmp_path / "one")}, tmp_path / "two")
    assert copied_of(notes) == (OLD, 0)
    assert len(image_requests(stores)) == OLD
    assert tree(tmp_path / "two") == tree(tmp_path / "one")


def test_what_cannot_be_copied_is_read(stores, months, tmp_path):
    """Shards that are gone since the run began."""
    url = f"{stores.bucket('gs')}/in"
    deliver(stores, url, months / "first")
    earlier = f"{url.removesuffix('/in')}/one"
    run(raw_of(url), earlier)
    stores.meddle = lambda method, path: Trouble(404) if ".tfrecord" in path and "alt=media" in path else None
    notes = run_telling({**raw_of(url), "reuse_from": earlier}, tmp_path / "two")
    stores.meddle = None
    assert copied_of(notes) == (0, OLD)
    assert tree(tmp_path / "two") == tree(url_copy(stores, earlier, tmp_path / "one"))


def url_copy(stores, url, folder):
    for name, data in stores.tree(url).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    return folder


@one
def test_staging_on_a_bucket(stores, months, tmp_path, scheme):
    url = f"{stores.bucket(scheme)}/in"
    deliver(stores, url, months / "first")
    run(raw_of(url), tmp_path / "one")
    deliver(stores, url, months / "second", months / "first")
    run(raw_of(url), tmp_path / "full")
    root = url.removesuffix("/in")
    raw = {**raw_of(url), "reuse_from": str(tmp_path / "one"), "run": {"staging": f"{root}/staging"}}
    notes = run_telling(raw, f"{root}/two")
    assert copied_of(notes) == (COPIED, READ)
    assert OLD - GONE + NEW == COPIED + READ
    assert tree(url_copy(stores, f"{root}/two", tmp_path / "two")) == tree(tmp_path / "full")


@one
def test_retry_rejects_asks_for_what_was_rejected_only(stores, months, tmp_path, scheme):
    url = f"{stores.bucket(scheme)}/in"
    deliver(stores, url, months / "first")
    stores.write(f"{url}/cat/00.jpg", b"no image")
    earlier = f"{url.removesuffix('/in')}/one"
    run(raw_of(url), earlier)
    stores.write(f"{url}/cat/00.jpg", picture(0))
    stores.requests.clear()
    _, retried = retry_rejects(earlier, config(raw_of(url)), tmp_path / "two", quiet=True)
    assert [(one.before.key, one.status) for one in retried] == [("cat/00.jpg", "written")]
    assert len(image_requests(stores)) == 1
    run(raw_of(url), tmp_path / "full")
    assert tree(tmp_path / "two") == tree(tmp_path / "full")


@pytest.mark.parametrize(("scheme", "span"), [("gs", "newest"), ("s3", "all")])
def test_an_image_that_the_next_span_delivers_again_is_not_asked_for(stores, months, tmp_path, scheme, span):
    url = f"{stores.bucket(scheme)}/in"
    deliver(stores, f"{url}/1", months / "first")
    raw = raw_of(f"{url}/{{SPAN}}")
    raw["input"]["span"] = span
    run(raw, tmp_path / "one")
    deliver(stores, f"{url}/2", months / "second")
    run(raw, tmp_path / "full")
    stores.requests.clear()
    notes = run_telling({**raw, "reuse_from": str(tmp_path / "one")}, tmp_path / "copied")
    # With all spans, the image that is gone from the second is still there.
    assert copied_of(notes) == (COPIED + (GONE if span == "all" else 0), READ)
    names = {path.split("?")[0].replace("%2F", "/").split("/in/")[1][2:] for path in image_requests(stores)}
    first, second = (
        {path.relative_to(months / month).as_posix(): path.read_bytes() for path in (months / month).rglob("*.jpg")}
        for month in ("first", "second")
    )
    assert names == {name for name, data in second.items() if first.get(name) != data}
    assert tree(tmp_path / "copied") == tree(tmp_path / "full")


@pytest.mark.parametrize(
    ("before", "now", "code"),
    [({}, {"max_pixels": 10_000}, "too_large"), ({"unsupported_formats": "png"}, {}, "unsupported_format")],
)
def test_what_would_be_refused_now_is_refused(stores, months, tmp_path, before, now, code):
    url = f"{stores.bucket('gs')}/in"
    shutil.copytree(months / "first", tmp_path / "in")
    kind = "bmp" if before else "jpeg"
    Image.new("RGB", (200, 100), "red").save(tmp_path / "in/cat/large.jpg", kind)
    deliver(stores, url, tmp_path / "in")
    run(raw_of(url, images={"verify": "full", **before}), tmp_path / "one")
    raw = raw_of(url, images={"verify": "full", **now})
    run(raw, tmp_path / "full")
    run({**raw, "reuse_from": str(tmp_path / "one")}, tmp_path / "copied")
    assert ledger(tmp_path / "full")["cat/large.jpg"].code == code
    assert tree(tmp_path / "copied") == tree(tmp_path / "full")
