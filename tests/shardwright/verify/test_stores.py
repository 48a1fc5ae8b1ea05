"""Datasets on object stores are verified as those of this machine are: the same findings, and nothing left behind."""

import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest

from shardwright.errors import NotFound, UsageError
from shardwright.storage import buckets
from shardwright.verify import verify

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def local(small_dataset, tmp_path_factory):
    return small_dataset(tmp_path_factory.mktemp("verify"), task="classification", counts={"train": [3, 2]})


def flip(data, place):
    changed = bytearray(data)
    changed[place] ^= 1
    return bytes(changed)


@pytest.mark.parametrize("scheme", ["gs", "s3"])
def test_damage_is_found_where_it_is_found_in_a_folder(stores, local, scheme, tmp_path):
    url, folder = f"{stores.bucket(scheme)}/data", tmp_path / "data"
    shutil.copytree(local, folder)
    stores.copy_of(folder, url)
    whole = verify(url)
    assert (whole.findings, whole.dataset) == ((), url)
    assert replace(whole, dataset=str(folder)) == verify(folder)
    first, second = (f"Split-train/data-0000{n}-of-00002.tfrecord" for n in (0, 1))
    (folder / first).write_bytes(flip((folder / first).read_bytes(), 300))
    (folder / second).unlink()
    (folder / "index/Split-train/stray").write_bytes(b"x")
    ledger = next((folder / "ledger").iterdir())
    ledger.write_bytes(flip(ledger.read_bytes(), 5))
    stores.write(f"{url}/{first}", (folder / first).read_bytes())
    buckets.delete(f"{url}/{second}")
    stores.write(f"{url}/index/Split-train/stray", b"x")
    stores.write(f"{url}/ledger/{ledger.name}", ledger.read_bytes())
    found, expected = verify(url, deep=True).findings, verify(folder, deep=True).findings
    assert found == expected
    assert {finding.code for finding in found} == {"payload", "missing", "stray", "row"}
    assert not list(Path(tempfile.gettempdir()).glob("shardwright-verify-*"))


def test_names_of_strangers_lead_nowhere_else(stores, local, tmp_path):
    url = f"{stores.bucket('s3')}/data"
    stores.copy_of(local, url)
    stores.write(f"{url}/index/../../../evil", b"x")
    assert [finding.file for finding in verify(url).findings] == ["index/../../../evil"]
    assert not list(tmp_path.rglob("evil"))


def test_what_is_no_dataset_is_refused(stores):
    bucket = stores.bucket("gs")
    with pytest.raises(NotFound, match="nothing: there is no such folder"):
        verify(f"{bucket}/nothing")
    stores.write(f"{bucket}/something/file", b"x")
    with pytest.raises(UsageError, match=r"no manifest\.json, so it is not a dataset"):
        verify(f"{bucket}/something")
