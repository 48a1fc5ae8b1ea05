"""Images that a table names by parts of their paths: what a pattern's groups find, joined by an underscore."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ingesting import examples, run
from PIL import Image

from shardwright.errors import CheckFailed, UsageError
from shardwright.formats.image_names import NameIndex, detect_key_pattern

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


@pytest.fixture
def uw_madison(tmp_path):
    """A raw configuration without a pattern; its images and table."""
    for key in KEYS:
        file = tmp_path / "train" / key
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.new("L", (6, 4)).save(file)
    rows = [
        f"{name},{label},{'1 3 9 2' if label == 'stomach' else ''}" for name in NAMES for label in ("stomach", "bowel")
    ]
    (tmp_path / "train.csv").write_text("id,class,segmentation\n" + "\n".join(rows))
    labels = {"path": str(tmp_path / "train.csv")}
    return {"task": "segmentation", "input": {"images": str(tmp_path / "train"), "labels": labels}}


@pytest.mark.parametrize("given", [{"key_regex": PATTERN, "rle": {"order": "row"}}, {}])
def test_uw_madison_is_ingested(uw_madison, tmp_path, given):
    uw_madison["input"]["labels"].update(given)
    notes = []
    manifest = run(uw_madison, tmp_path / "out", log=notes.append)
    assert manifest.totals["written"] == manifest.totals["inputs"] == 4
    for example in examples(tmp_path / "out").values():
        assert example["image/segmentation/stomach/area"].tolist() == [5]
        assert example["image/segmentation/bowel/area"].tolist() == [0]
    found = [note for note in notes if "key_regex" in note]
    line = f"input.labels.key_regex: '{PATTERN}', since no name is a path, and by their parts each of the first 4 is"
    assert [note.startswith(line) for note in found] == ([] if given else [True])


def test_what_only_some_names_fit_is_detected_as_a_line_to_paste_and_not_taken(uw_madison, tmp_path):
    with (tmp_path / "train.csv").open("a") as table:
        table.write("\ncase9_day1_slice_0001,bowel,")
    line = re.escape(f"4 of its first 5 names are images by input.labels.key_regex: '{PATTERN}'")
    with pytest.raises(CheckFailed, match=f"0 rows of train.csv matched an image. It names {NAMES[0]}.*{line}"):
        run(uw_madison, tmp_path / "out")


def test_a_number_that_stands_in_a_path_is_proposed_and_not_taken(tmp_path):
    # It may be the number of the row.
    for number in (1, 2):
        (tmp_path / "images").mkdir(exist_ok=True)
        Image.new("L", (6, 4)).save(tmp_path / "images" / f"photo-{number}-x.png")
    (tmp_path / "labels.csv").write_text("id,label\n1,a\n2,b\n")
    labels = {"path": str(tmp_path / "labels.csv")}
    raw = {"task": "classification", "input": {"images": str(tmp_path / "images"), "labels": labels}}
    with pytest.raises(CheckFailed, match=r"2 of its first 2 names are images by input.labels.key_regex: '\(\\d\+\)'"):
        run(raw, tmp_path / "out")


def test_patterns_that_mean_other_images_are_none():
    # Day 1 of case 2, or case 1 of day 2.
    keys = ["a_1/b_2/1_2.png", "a_1/b_3/1_3.png"]
    assert detect_key_pattern(["a_1_2"], ["a_1/2/x.png", "a/1_2/x.png"], frozenset()) is None
    assert detect_key_pattern(["a_1_b_2", "a_1_b_3"], keys, frozenset()) == (r"(a_\d+)/(b_\d+)", 2, 2)
    assert detect_key_pattern(["a_1_b_2", "a_1_b_3"], keys, frozenset((0, 1))) is None


@given(
    st.lists(st.tuples(st.integers(0, 99), st.integers(0, 99), st.integers(0, 99)), min_size=1, unique=True),
    st.sampled_from(["case{0}/day{1}/scan/slice_{2}_9_9.png", "case{0}/case{0}_x_day{1}/slice_{2}.png"]),
)
def test_a_detected_pattern_finds_the_image_that_was_meant(numbers, layout):
    paths = {layout.format(*three): "case{}_day{}_slice_{}".format(*three) for three in numbers}
    keys = sorted(paths)
    guess = detect_key_pattern([paths[key] for key in keys], keys, frozenset())
    assert guess is not None
    assert guess.found == len(keys)
    index = NameIndex(keys, pattern=guess.pattern)
    assert [index.find(paths[key]) for key in keys] == list(range(len(keys)))


def test_a_part_of_a_word_is_no_piece():
    assert detect_key_pattern(["a1_2"], ["xa1/2.png"], frozenset()) is None
    assert detect_key_pattern(["a1_2"], ["a1/2.png"], frozenset()) is not None


def test_names_may_begin_with_the_folder_that_is_read_already():
    """`JPEGImages/x.jpg`, where `input.images` is that folder; two folders that begin alike are not mixed up."""
    index = NameIndex(["a/x.jpg", "x.jpg", "y.jpg"], root="/data/train/JPEGImages")
    assert [index.find(f"{start}x.jpg") for start in ("JPEGImages/", "train/JPEGImages/", "JPEGImages/a/")] == [1, 1, 0]
    assert index.find("val/JPEGImages/x.jpg") is None
    assert index.find("Images/y.jpg") is None
    assert NameIndex(["y.jpg"], root="/data").find("JPEGImages/y.jpg") is None


def test_of_a_path_from_another_folder_the_end_may_be_an_image():
    index = NameIndex(["a/x.jpg", "y.jpg", "z.jpg"], root="/data/train")
    assert [index.find_end(name) for name in ("job\\y.jpg", "job/a/x.jpg", "x.jpg", "job/x.jpg")] == [1, 0, None, None]
    assert index.find_end("val/z.jpg") is None
    with pytest.raises(UsageError, match="'job/y.jpg' and 'other/y.jpg', and both could be y.jpg"):
        index.find_end("other/y.jpg")


def test_a_name_that_differs_in_case_is_shown():
    index = NameIndex(["a/img_1.JPG", "b.jpg"])
    assert index.find("IMG_1.jpg") is None
    assert index.alike("a/IMG_1.jpg") == "; a/img_1.JPG differs in upper and lower case"
    assert index.alike("b/img_1.JPG") == "; a/img_1.JPG has the same file name in another folder"
    assert index.alike("c.jpg") == ""


@pytest.mark.parametrize("prefix", ["/home/ann/photos/", "C:\\photos\\", "../elsewhere/", "gs://bucket/photos/"])
def test_a_path_of_another_machine_means_the_image_whose_whole_key_is_its_end(prefix):
    names = NameIndex(["a.jpg", "cats/1.jpg", "dogs/1.jpg"])
    separator = "\\" if "\\" in prefix else "/"
    assert names.find(f"{prefix}cats{separator}1.jpg") == 1
    assert names.find(f"{prefix}a.jpg") == 0
    assert names.find(f"{prefix}birds{separator}1.jpg") is None


def test_two_paths_that_could_mean_one_image_are_an_error():
    names = NameIndex(["1.jpg"])
    assert names.find("/a/cats/1.jpg") == 0
    assert names.find("/a/cats/1.jpg") == 0
    with pytest.raises(UsageError, match=r"'/a/cats/1.jpg' and '/a/dogs/1.jpg', and both could be 1.jpg"):
        names.find("/a/dogs/1.jpg")


def test_a_path_of_another_split_means_no_image_of_this_one():
    names = NameIndex(["1.jpg"], root="/data/train/images")
    assert names.find("/home/ann/val/images/1.jpg") is None
    assert names.find("/home/ann/train/images/1.jpg") == 0
    far_below = NameIndex(["1.jpg"], root="/data/val/images/city/day")
    assert far_below.find("/home/ann/train2017/1.jpg") is None
    assert far_below.find("/home/ann/val2017/1.jpg") == 0
    # Somebody's own folders, far above the set.
    for above in ("/home/ann/test", "/home/ann/training", "/work/test_run"):
        assert NameIndex(["1.jpg"], root=f"{above}/photos/set/images").find("/data/train2017/1.jpg") == 0
        assert NameIndex(["1.jpg"], root=f"{above}/photos/set/images").find("/data/test2017/1.jpg") == 0


def test_a_folder_that_only_sounds_like_a_split_states_it_next_to_another_one(tmp_path_factory):
    # Not the folder of this test, which is called `test_…` and lies next to those of others.
    tmp_path = tmp_path_factory.mktemp("set") / "data"
    root = tmp_path / "photo_test_set" / "images"
    root.mkdir(parents=True)
    assert NameIndex(["1.jpg"], root=str(root)).find("/home/ann/train2017/1.jpg") == 0
    (tmp_path / "photo_training_set").mkdir()
    assert NameIndex(["1.jpg"], root=str(root)).find("/home/ann/train2017/1.jpg") is None
    assert NameIndex(["1.jpg"], root=str(root)).find("/home/ann/test2017/1.jpg") == 0


def test_a_path_of_another_machine_may_share_only_the_end_with_one_image():
    names = NameIndex(["test/i6.jpg", "train/a/i0.jpg", "train/b/i0.jpg", "train/i1.JPG"], root="/set")
    assert names.find("/mnt/photos/i1.jpg") == 3
    assert names.find("D:\\photos\\b\\i0.jpg") == 2
    # Two fit, or the path is of another split.
    assert names.find("/mnt/photos/i0.jpg") is None
    assert names.find("/mnt/train/i6.jpg") is None


def test_a_part_of_a_path_means_the_only_image_that_ends_so():
    names = NameIndex(["images/car/1.jpg", "images/road/1.jpg", "old/road/1.jpg"])
    assert names.find("car/1") == names.find("car/1.jpg") == names.find("./car/1.JPG") == 0
    assert names.find("cat/1.jpg") is None
    with pytest.raises(UsageError, match="could be images/road/1.jpg or old/road/1.jpg"):
        names.find("road/1")


@pytest.mark.parametrize("name", ["my%20photo%20e%CC%81.jpg", "/data/upload/3/0a1b2c3d-my photo \u00e9.jpg"])
def test_names_that_a_server_wrote_mean_the_files_of_before(name):
    names = NameIndex(["100%25.jpg", "my photo \u00e9.jpg"])
    assert names.find(name) == 1
    assert names.find("100%25.jpg") == 0
