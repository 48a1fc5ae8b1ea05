"""Several runs in one staging folder on a bucket: the last one deletes it, and killed runs do not block others."""

import threading

import pytest
from ingesting import config, run
from object_stores import SCHEMES

from shardwright.dataset.reader import ImageDataset
from shardwright.errors import StorageError, UsageError
from shardwright.ingest import run_ingest as ingest_run
from shardwright.staging.staged import clear
from shardwright.staging.staging import Staging
from shardwright.storage import mirror as leases

both = pytest.mark.parametrize("scheme", ["gs", pytest.param("s3", marks=pytest.mark.slow)])
assert set(SCHEMES) == {"gs", "s3"}


@pytest.fixture
def url(stores, scheme, monkeypatch):
    """A folder with a staged object; a run that is silent for a third of a second counts as dead."""
    monkeypatch.setenv(leases.SILENT_VARIABLE, "0.3")
    there = f"{stores.bucket(scheme)}/staging/abc"
    stores.write(f"{there}/done/x", b"x")
    return there


@both
def test_a_folder_stays_while_another_run_lives(stores, url, scheme):
    other = leases._Lease(url)
    try:
        with leases.leased(url):
            assert not leases.remove_unless_leased(url)
            assert leases.buckets.stat(f"{url}/done/x") is not None
    finally:
        other.end()
    assert leases.remove_unless_leased(url)
    assert stores.tree(url) == {}


@pytest.mark.parametrize("scheme", ["gs"])
def test_what_a_run_elsewhere_stages_is_not_emptied(stores, url, scheme):
    root, name = url.rpartition("/")[0], "0" * 64
    stores.write(f"{root}/{name}/done/x", b"x")
    other = leases._Lease(f"{root}/{name}")
    try:
        with pytest.raises(UsageError, match="another run is active there"):
            clear(root)
        assert leases.buckets.stat(f"{root}/{name}/done/x") is not None
    finally:
        other.end()
    assert clear(root) == [f"{root}/{name}"]


@pytest.mark.parametrize("scheme", ["gs"])
def test_no_lease_outlives_its_run_where_the_store_was_away_meanwhile(stores, url, scheme, monkeypatch):
    monkeypatch.setenv(leases.SILENT_VARIABLE, "0")  # Nothing renews it but the test.

    def away(*_):
        raise StorageError("the store did not answer")

    lease = leases._Lease(url)
    for call in ("create", "delete"):
        with monkeypatch.context() as patch:
            patch.setattr(leases.buckets, call, away)
            with pytest.raises(StorageError):
                lease.renew()
    lease.renew()
    assert len(stores.tree(f"{url}/leases")) == 1
    lease.end()
    assert stores.tree(f"{url}/leases") == {}


@both
def test_a_run_that_was_killed_keeps_nothing(stores, url, scheme, monkeypatch):
    monkeypatch.setenv(leases.SILENT_VARIABLE, "0.05")
    killed = leases._Lease(url)
    killed._over.set()
    killed._thread.join()
    stores.write(f"{url}/removing", b"of another that was killed while it cleared up")
    with leases.leased(url):
        assert leases.buckets.stat(f"{url}/removing") is None
        assert leases.buckets.stat(f"{url}/done/x") is not None
        assert leases.remove_unless_leased(url)
    assert stores.tree(url) == {}


@pytest.mark.parametrize("scheme", ["gs"])
def test_a_run_that_begins_during_a_removal_waits_for_it(stores, url, scheme, monkeypatch):
    began, entered, delete = threading.Event(), threading.Event(), leases.buckets.delete

    def enter():
        began.set()
        with leases.leased(url):
            assert leases.buckets.stat(f"{url}/done/x") is None
            entered.set()

    second = threading.Thread(target=enter)

    def slowly(place):
        if place.endswith("done/x"):
            second.start()
            began.wait()
            assert not entered.wait(0.05)
        delete(place)

    monkeypatch.setattr(leases.buckets, "delete", slowly)
    assert leases.remove_unless_leased(url)
    second.join()
    assert entered.is_set()


@pytest.mark.parametrize("scheme", ["gs"])
def test_a_run_that_waited_is_known_to_the_next_removal(stores, url, scheme, monkeypatch):
    """The first one may have deleted the lease of a waiting run, and a third may be waiting to remove, too."""
    monkeypatch.setenv(leases.SILENT_VARIABLE, "60")
    monkeypatch.setattr(leases, "_LONGEST_PAUSE", 0.01)
    stores.write(f"{url}/removing", b"of another")
    stat = leases.buckets.stat

    def removed(place):
        found = stat(place)
        if found is not None:
            for name in stores.tree(url):
                leases.buckets.delete(f"{url}/{name}")
        return found

    monkeypatch.setattr(leases.buckets, "stat", removed)
    with leases.leased(url):
        assert [name for name in stores.tree(url) if name.startswith("leases/")]


@pytest.mark.parametrize("scheme", ["gs"])
def test_what_begins_between_looking_and_deleting_is_seen(stores, url, scheme, monkeypatch):
    create, others = leases.buckets.create, []

    def late(place, data):
        if place.endswith("/removing"):
            others.append(leases._Lease(url))
        return create(place, data)

    monkeypatch.setattr(leases.buckets, "create", late)
    assert not leases.remove_unless_leased(url)
    others[0].end()
    assert set(stores.tree(url)) == {"done/x"}


@pytest.mark.parametrize("text", ["x", "-1", "nan", "inf"])
def test_what_is_no_time_is_refused(monkeypatch, text):
    monkeypatch.setenv(leases.SILENT_VARIABLE, text)
    with pytest.raises(UsageError, match="SHARDWRIGHT_SILENT_SECONDS: .* is not a number of seconds"):
        leases.silent_seconds()


@pytest.mark.parametrize("scheme", ["gs"])
def test_a_run_that_ends_leaves_another_one_its_shards(stores, scheme, image_input, tmp_path, monkeypatch):
    """Two runs of the same data on two machines, as on Vertex AI: with separate outputs, and one staging folder."""
    monkeypatch.setenv(leases.SILENT_VARIABLE, "0.3")
    bucket = stores.bucket(scheme)
    raw = {**image_input(tmp_path / "in"), "run": {"staging": f"{bucket}/staging"}}
    commit, machines = ingest_run.commit_ingest, []

    def meanwhile(*given):
        """When the first is about to publish, the second does all of it."""
        monkeypatch.setattr(ingest_run, "commit_ingest", commit)
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "other"))
        machines.append(dict(leases._held))
        leases._held.clear()
        run(raw, f"{bucket}/second", workers=1)
        leases._held.update(machines[0])
        monkeypatch.setattr("tempfile.tempdir", None)
        return commit(*given)

    (tmp_path / "other").mkdir()
    monkeypatch.setattr(ingest_run, "commit_ingest", meanwhile)
    run(raw, f"{bucket}/first", workers=1)
    assert machines
    assert ImageDataset.open(f"{bucket}/first").manifest == ImageDataset.open(f"{bucket}/second").manifest
    assert stores.tree(f"{bucket}/staging") == {}
    assert config(raw).run.staging


@pytest.mark.parametrize("scheme", ["gs"])
def test_a_run_that_finds_its_output_made_lets_another_of_this_machine_alone(stores, scheme, image_input, tmp_path):
    """The same dataset is being made for another output: by the lock, not by what is on the bucket, it is known."""
    bucket = stores.bucket(scheme)
    raw = {**image_input(tmp_path / "in"), "run": {"staging": f"{bucket}/staging"}}
    made = run(raw, f"{bucket}/first", workers=1)
    staging = Staging.open(f"{bucket}/staging", made.fingerprint)
    with staging.locked():
        staging.write_file("tasks/x", b"x")
        staging.share("shared", b"x")
        assert run(raw, f"{bucket}/first", workers=1) == made
        assert staging.path("tasks/x").exists()
        assert staging.is_shared("shared")
    assert run(raw, f"{bucket}/first", workers=1) == made
    assert not staging.path("tasks/x").exists()
    assert stores.tree(f"{bucket}/staging") == {}
