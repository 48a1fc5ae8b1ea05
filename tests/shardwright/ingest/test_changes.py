"""Files of annotations that change while a run reads them: the dataset must be that of the fingerprint."""

import os

import numpy as np
import pytest
from ingesting import changed, run, tree
from PIL import Image
from recording import labeled, mask_png, reading, record, write_records

from shardwright.errors import CheckFailed
from shardwright.ingest import plan


def table(root, image_input):
    return image_input(root / "in", layout="label_csv", images=6), root / "in/labels.csv", b"Fish", b"Sugar"


def split_list(root, image_input):
    raw = image_input(root / "in", layout="label_csv", images=6)
    file = root / "train.txt"
    file.write_text("000.jpg\n001.jpg\n")
    split = {"method": "predefined", "from_lists": {"train": str(file)}, "unlisted_images": "test"}
    return {**raw, "split": split, "evaluator": {"split": "train"}}, file, b"001", b"002"


def boxes(root, image_input):
    raw = image_input(root / "in", images=2)
    tree = root / "in/VOC"
    (tree / "SegmentationClass").mkdir(parents=True)
    (tree / "Annotations").mkdir()
    (root / "in/images").rename(tree / "JPEGImages")
    for file in sorted((tree / "JPEGImages").iterdir()):
        size = Image.open(file).size
        mask = Image.new("P", size, 1)
        mask.putpalette([0, 0, 0, 128, 0, 0])  # As Pascal VOC's begins.
        mask.save(tree / "SegmentationClass" / f"{file.stem}.png")
        (tree / "Annotations" / f"{file.stem}.xml").write_text(
            f"<annotation><size><width>{size[0]}</width><height>{size[1]}</height></size><object><name>cat</name>"
            "<bndbox><xmin>1</xmin><ymin>1</ymin><xmax>3</xmax><ymax>3</ymax></bndbox></object></annotation>"
        )
    raw = changed(raw, images=str(tree / "JPEGImages"), labels={"path": str(tree)}, classes=None)
    return raw, tree / "Annotations/001.xml", b"cat", b"cow"


def records(root, image_input):
    file = write_records(root / "in/a.tfrecord", labeled(6))
    return reading(root / "in"), file, b"cat", b"cow"


@pytest.mark.parametrize("layout", [table, split_list, boxes, records])
@pytest.mark.parametrize("when", ["read_input", "split_images", "tasks"])
def test_what_changes_between_any_two_looks_at_it_makes_no_dataset(tmp_path, image_input, monkeypatch, layout, when):
    raw, file, before, after = layout(tmp_path, image_input)
    # Tasks are in files, or stay in this process.
    when = ("keep_tasks" if layout in (table, split_list) else "write_labels") if when == "tasks" else when
    original = getattr(plan, when)

    def changed_behind(*given, **options):
        data = file.read_bytes()
        assert before in data
        file.write_bytes(data.replace(before, after))
        os.utime(file, ns=(1, 1))  # A change is detected even if the time is set back.
        return original(*given, **options)

    monkeypatch.setattr(plan, when, changed_behind)
    with pytest.raises(CheckFailed, match=rf"{file.name}: the file has changed while the run was reading the input"):
        run(raw, tmp_path / "ds", workers=1)
    assert not (tmp_path / "ds").exists()
    monkeypatch.undo()
    run(raw, tmp_path / "ds", workers=1)
    run(raw, tmp_path / "again", workers=1)
    assert tree(tmp_path / "ds") == tree(tmp_path / "again")


def test_a_plan_that_goes_on_with_earlier_task_files_is_held_to_the_same_table(tmp_path, image_input, monkeypatch):
    from shardwright.ingest import run_ingest as ingest_run
    from shardwright.ingest import survey as ingest_survey

    raw, file, before, after = boxes(tmp_path, image_input)

    def killed(*given, **named):
        raise KeyboardInterrupt

    monkeypatch.setattr(ingest_run, "write_range", killed)
    with pytest.raises(KeyboardInterrupt):
        run(raw, tmp_path / "ds", workers=1)
    monkeypatch.undo()
    data = file.read_bytes()
    read = ingest_survey.read_annotations

    def changed_after(*given):
        read(*given)
        file.write_bytes(data.replace(before, after))

    monkeypatch.setattr(ingest_run, "read_annotations", changed_after)
    with pytest.raises(CheckFailed, match=r"001\.xml: the file has changed"):
        run(raw, tmp_path / "ds", workers=1)


@pytest.mark.parametrize("packing", ["plain", "gzip"])
def test_masks_in_records_that_change_while_shards_are_written_make_no_dataset(
    tmp_path, image_input, monkeypatch, packing
):
    """The images next to them do not change, so these cannot show it."""
    from shardwright.ingest import run_ingest as ingest_run
    from shardwright.ingest import write_shards as ingest_write

    def payloads(value):
        return [record(i, key=b"%d.jpg" % i, mask=mask_png(np.full((10, 12), value))) for i in range(6)]

    before, after = payloads(1), payloads(3)
    assert [len(one) for one in before] == [len(one) for one in after]
    file = write_records(tmp_path / "in/a.tfrecord", before, packing)
    write = ingest_write.write_range

    def late(*given, **options):
        packed = next((tmp_path / ".ds.staging").rglob("*/a.tfrecord"), file)
        write_records(packed, after)
        return write(*given, **options)

    monkeypatch.setattr(ingest_run, "write_range", late)
    raw = reading(tmp_path / "in", "segmentation", classes=["one", "two", "three"])
    with pytest.raises(CheckFailed, match=r"a\.tfrecord, mask at byte \d+: the mask has changed"):
        run(raw, tmp_path / "ds", workers=1)
    assert not (tmp_path / "ds").exists()
