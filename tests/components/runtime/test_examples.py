"""Examples of other components as a dataset: compressed TFRecords without a manifest."""

import gzip
from pathlib import Path

import pytest
from tfx.types import artifact_utils, standard_artifacts

from shardwright.components.data_gate.anomalies import records_of
from shardwright.components.runtime.open_examples import open_examples
from shardwright.dataset.reader import ImageDataset
from shardwright.errors import DatasetError
from shardwright.tfrecords.encode import byte_strings, encode_example, ints
from shardwright.tfrecords.records import frame

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def artifact_of(folder, splits):
    examples = standard_artifacts.Examples()
    examples.uri, examples.split_names = str(folder), artifact_utils.encode_split_names(sorted(splits))
    return examples


def as_stock_components_write(dataset, folder):
    """The records of a dataset as TFX writes them: one compressed file for each split."""
    for split in ImageDataset.open(dataset).splits:
        target = Path(folder, f"Split-{split}", "data_tfrecord-00000-of-00001.gz")
        target.parent.mkdir(parents=True)
        target.write_bytes(gzip.compress(b"".join(map(frame, records_of(str(dataset), split)))))
    return artifact_of(folder, ImageDataset.open(dataset).splits)


def written(folder, *examples):
    target = Path(folder, "Split-train", "a.gz")
    target.parent.mkdir(parents=True)
    target.write_bytes(gzip.compress(b"".join(frame(encode_example(example)) for example in examples)))
    return artifact_of(folder, ["train"])


@pytest.mark.parametrize(
    ("task", "classes", "labels"),
    [("segmentation", ("Sugar", "Fish"), "masks"), ("classification", ("rose", "daisy"), "single")],
)
def test_compressed_records_are_the_dataset_that_they_were(small_dataset, tmp_path, task, classes, labels):
    source = small_dataset(tmp_path, task=task, classes=classes, counts={"train": [4, 3], "eval": [4]})
    examples = as_stock_components_write(source, tmp_path / "stock")
    opened = open_examples(examples, lambda: str(tmp_path / "temporary"))
    before, after = ImageDataset.open(source).manifest, opened.manifest
    for name in ("task", "classes", "features", "labels"):
        assert getattr(after, name) == getattr(before, name), name
    assert after.labels == labels
    for split in ("train", "eval"):
        found = records_of(opened.root, split)
        assert list(found) == list(records_of(str(source), split)) == list(records_of(examples.uri, split))
    # A second component of the run gets the same dataset; a dataset is opened where it is.
    assert open_examples(examples, lambda: str(tmp_path / "other")).manifest.digest == after.digest
    assert open_examples(artifact_of(source, ["train"]), lambda: "nowhere").root == str(source)


def test_several_classes_and_none(tmp_path):
    example = {"image/key": b"a", "image/encoded": b"x"}
    labeled = {"image/class/label": ints([0, 2]), "image/class/text": byte_strings([b"cat", b"dog"])}
    several = open_examples(written(tmp_path / "several", {**example, **labeled}), lambda: str(tmp_path / "1")).manifest
    assert (several.labels, several.classes) == ("multi", ("cat", "class 1", "dog"))
    none = open_examples(written(tmp_path / "none", example), lambda: str(tmp_path / "2")).manifest
    assert (none.labels, none.classes) == ("none", ())


def test_what_is_not_ours_is_refused(tmp_path):
    def opened(examples):
        return open_examples(examples, lambda: str(tmp_path / "temporary"))

    with pytest.raises(DatasetError, match=r"no features 'image/key' and 'image/encoded' of bytes"):
        opened(written(tmp_path / "foreign", {"pixels": b"x"}))
    with pytest.raises(DatasetError, match=r"a\.gz: a record has no feature 'image/key' of bytes"):
        opened(written(tmp_path / "unnamed", {"image/encoded": b"x"}))
    with pytest.raises(DatasetError, match=r"has no records\. Check the component"):
        opened(written(tmp_path / "empty"))
    damaged = written(tmp_path / "damaged", {"image/key": b"a", "image/encoded": b"x" * 99})
    file = next((tmp_path / "damaged").glob("*/*.gz"))
    file.write_bytes(gzip.compress(gzip.decompress(file.read_bytes())[:-5]))
    with pytest.raises(DatasetError, match=r"record 0 at offset 0: the file is cut off"):
        opened(damaged)
    with pytest.raises(DatasetError, match="record 0 at offset 0"):
        list(records_of(damaged.uri, "train"))
