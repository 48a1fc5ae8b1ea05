"""TFRecords on object stores: the bytes of a local run."""

import numpy as np
import pytest
from ingesting import run, tree
from recording import labeled, mask_png, reading, record, write_records

from shardwright.errors import CheckFailed, StorageError
from shardwright.ingest import plan

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("scheme", ["gs", pytest.param("s3", marks=pytest.mark.slow)])
def test_records_on_a_bucket_make_the_bytes_of_local_ones(stores, tmp_path, scheme):
    masks = [mask_png(np.random.default_rng(i).integers(0, 3, (5, 6)).repeat(2, 0).repeat(2, 1)) for i in range(18)]
    payloads = [record(i, key=b"%d.jpg" % i, mask=mask, depth=i / 3) for i, mask in enumerate(masks)]
    write_records(tmp_path / "in/a.tfrecord", payloads[:9])
    write_records(tmp_path / "in/deep/b.tfrecord.gz", payloads[9:], "gzip")
    run(reading(tmp_path / "in", "segmentation"), tmp_path / "local")
    url = f"{stores.bucket(scheme)}/records"
    stores.copy_of(tmp_path / "in", url)
    run(reading(url, "segmentation"), tmp_path / "out")
    assert tree(tmp_path / "out") == tree(tmp_path / "local")


@pytest.mark.parametrize("when", ["read_input", "split_images", "write_labels"])
def test_labels_that_change_on_the_bucket_while_the_input_is_read_make_no_dataset(stores, tmp_path, monkeypatch, when):
    """The images stay what they were, and where."""
    url = f"{stores.bucket('gs')}/records"
    write_records(tmp_path / "in/a.tfrecord", labeled(6))
    stores.copy_of(tmp_path / "in", url)
    original = getattr(plan, when)

    def changed_behind(*given, **options):
        write_records(tmp_path / "in/a.tfrecord", [one.replace(b"cat", b"cow") for one in labeled(6)])
        stores.copy_of(tmp_path / "in", url)
        return original(*given, **options)

    monkeypatch.setattr(plan, when, changed_behind)
    with pytest.raises(CheckFailed, match=r"a\.tfrecord: has been changed"):
        run(reading(url), tmp_path / "out", workers=1)
    assert not (tmp_path / "out").exists()


def test_records_that_change_on_the_bucket_end_the_run(stores, tmp_path, monkeypatch):
    from shardwright.ingest import run_ingest as ingest_run
    from shardwright.ingest import write_shards as ingest_write

    url = f"{stores.bucket('gs')}/records"
    write_records(tmp_path / "in/a.tfrecord", [record(i, label=i % 2) for i in range(6)])
    stores.copy_of(tmp_path / "in", url)
    write = ingest_write.write_range

    def late(*arguments, **named):
        write_records(tmp_path / "in/a.tfrecord", [record(i, label=i % 2) for i in range(10, 16)])
        stores.copy_of(tmp_path / "in", url)
        return write(*arguments, **named)

    monkeypatch.setattr(ingest_run, "write_range", late)
    with pytest.raises((CheckFailed, StorageError), match="changed"):
        run(reading(url), tmp_path / "out")
    assert not (tmp_path / "out").exists()
