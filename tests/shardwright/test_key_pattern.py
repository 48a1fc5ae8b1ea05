"""Images that a table names by parts of their paths: what a pattern's groups find, joined by an underscore."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ingesting import examples, run
from PIL import Image

from shardwright.errors import CheckFailed, UsageError
from shardwright.sources.names import NameIndex

PATTERN = r"(case\d+_day\d+)/scans/(slice_\d+)"
KEYS = [
    f"case{case}/case{case}_day{day}/scans/slice_{number:04d}_266_266_1.50_1.50.png"
    for case, day, number in ((123, 20, 1), (123, 20, 2), (123, 22, 1), (7, 0, 1))
]
NAMES = ["case123_day20_slice_0001", "case123_day20_slice_0002", "case123_day22_slice_0001", "case7_day0_slice_0001"]


def test_ids_of_uw_madison_find_their_files():
    index = NameIndex(KEYS, pattern=PATTERN)
    assert [index.find(name) for name in NAMES] == [0, 1, 2, 3]
    assert index.find(f" {NAMES[1]} ") == 1
    assert index.find("case123_day20_slice_0003") is None
    assert index.find(KEYS[0]) is None


@given(st.lists(st.tuples(st.integers(0, 99), st.integers(0, 99)), min_size=1, unique=True))
def test_every_key_is_found_by_its_groups(pairs):
    keys = [f"{a}/x/{b}.png" for a, b in pairs]
    index = NameIndex(keys, pattern=r"^(\d+)/x/(\d+)\.png$")
    assert [index.find(f"{a}_{b}") for a, b in pairs] == list(range(len(pairs)))


def test_two_keys_of_one_name_are_refused():
    with pytest.raises(UsageError, match=r"finds 'case123' in both .*slice_0001.* and .*slice_0002.*Add a group"):
        NameIndex(KEYS, pattern=r"(case\d+)/")


def test_a_pattern_that_finds_nothing_is_refused():
    with pytest.raises(UsageError, match=r"'\(x\\\\d\)' finds nothing in any image: case123/case123_day20"):
        NameIndex(KEYS, pattern=r"(x\d)")
    with pytest.raises(UsageError, match="finds nothing"):
        NameIndex(KEYS, frozenset(range(4)), PATTERN)


def test_uw_madison_is_ingested(tmp_path):
    for key in KEYS:
        file = tmp_path / "train" / key
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.new("L", (6, 4)).save(file)
    rows = [
        f"{name},{label},{'1 3 9 2' if label == 'stomach' else ''}" for name in NAMES for label in ("stomach", "bowel")
    ]
    (tmp_path / "train.csv").write_text("id,class,segmentation\n" + "\n".join(rows))
    labels = {"path": str(tmp_path / "train.csv"), "key_pattern": PATTERN, "order": "row"}
    raw = {"task": "segmentation", "input": {"images": str(tmp_path / "train"), "labels": labels}}
    manifest = run(raw, tmp_path / "out")
    assert manifest.totals["written"] == manifest.totals["inputs"] == 4
    for example in examples(tmp_path / "out").values():
        assert example["image/segmentation/stomach/area"].tolist() == [5]
        assert example["image/segmentation/bowel/area"].tolist() == [0]
    del labels["key_pattern"]
    with pytest.raises(CheckFailed, match=f"0 rows of train.csv matched an image. It names {NAMES[0]}, {NAMES[1]}"):
        run(raw, tmp_path / "other")
