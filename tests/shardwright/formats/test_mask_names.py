"""Which image a mask belongs to, by the names alone; nothing is guessed where two layouts fit."""

import pytest

from shardwright.errors import UsageError
from shardwright.formats.mask_names import SUFFIXES, ImageStems, MaskName, detect_mask_layout


def detect(images, masks, classes=None, pattern=None, skip=()):
    stems = ImageStems(images, frozenset(skip))
    layout = detect_mask_layout(masks, stems, classes, pattern)
    return layout, [layout.place(mask, stems) for mask in masks]


def test_the_same_path_without_extension():
    layout, places = detect(["a.jpg", "x/b.jpeg", "y/b.jpg"], ["a.png", "x/b.tif", "y/b.bmp", "z.png"])
    assert (layout.name, layout.by_class) == ("same path", False)
    assert places == [MaskName(0, ""), MaskName(1, ""), MaskName(2, ""), None]
    assert "3 of 4 find their image" in layout.reason


def test_a_bare_name_finds_its_image_in_any_folder_but_only_one():
    assert detect(["x/a.jpg", "y/b.jpg"], ["a.png", "b.png"])[1] == [MaskName(0, ""), MaskName(1, "")]
    with pytest.raises(UsageError, match="'a.png' could be that of x/a.jpg or y/a.jpg"):
        detect(["x/a.jpg", "y/a.jpg"], ["a.png"])
    with pytest.raises(UsageError, match="could be that of a.jpeg or a.jpg"):
        detect(["a.jpeg", "a.jpg"], ["a.png"])


def test_what_is_no_image_has_no_mask():
    assert detect(["a.csv", "a.jpg"], ["a.png"], skip=[0])[1] == [MaskName(1, "")]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_common_suffixes(suffix):
    images = [f"x/{name}{SUFFIXES[suffix]}.png" for name in "ab"]
    layout, places = detect(images, [f"x/a{suffix}.png", f"x/b{suffix}.png"])
    assert layout.name == f"the suffix {suffix}"
    assert places == [MaskName(0, ""), MaskName(1, "")]
    assert "input.labels.regex overrides this" in layout.reason


def test_a_folder_per_class():
    layout, places = detect(["x/a.jpg", "x/b.jpg"], ["car/x/a.png", "road/x/a.png", "road/x/b.png"])
    assert (layout.name, layout.by_class) == ("folder per class", True)
    assert places == [MaskName(0, "car"), MaskName(0, "road"), MaskName(1, "road")]


def test_a_suffix_per_class_is_the_shortest_whose_image_is_there():
    layout, places = detect(["a.jpg", "a_b.jpg"], ["a_car.png", "a_b_car.png", "a_b_big_truck.png"])
    assert (layout.name, layout.by_class) == ("class suffix", True)
    assert places == [MaskName(0, "car"), MaskName(1, "car"), MaskName(1, "big_truck")]


def test_given_classes_decide_what_a_folder_or_suffix_can_be():
    images = ["a.jpg", "b.jpg"]
    assert detect(images, ["a_ship.png"], {"ship": None})[1] == [MaskName(0, "ship")]
    assert detect(images, ["masks/a.png", "1/b.png"], {"ship": 1})[1] == [None, MaskName(1, "1")]
    # One suffix that nobody named is no class.
    assert detect(images, ["a_ship.png", "b_ship.png"])[1] == [MaskName(0, ""), MaskName(1, "")]


@pytest.mark.parametrize(
    ("images", "masks"),
    [
        (["image_1.png", "image_10.png", "image_2.png"], ["mask_1.png", "mask_10.png", "mask_2.png"]),
        (["a.jpg", "b.jpg"], ["a--av.png", "b--av.png"]),
        (["img1.jpg", "img2.jpg", "img3.jpg"], ["img1mask.png", "img2mask.png", "img3mask.png"]),
        (["A.JPG", "B.JPG"], ["a.png", "b.png"]),
        (["1.jpgpatch_00.jpg", "1.jpgpatch_01.jpg"], ["1.pngpatch_00.png", "1.pngpatch_01.png"]),
        (["1.jpgpatch_00.jpg", "2.jpgpatch_00.jpg"], ["1.pngpatch_00.png", "2.pngpatch_00.png"]),
        (["x/image_1.png", "y/image_1.png"], ["x/mask_1.png", "y/mask_1.png"]),
        (["scan-7-photo.png", "scan-8-photo.png"], ["lesion-7-truth.png", "lesion-8-truth.png"]),
        (["ISIC_0001.jpg", "ISIC_0002.jpg", "ISIC_0003.jpg"], ["GT_ISIC_0001.png", "GT_ISIC_0002.png"]),
    ],
)
def test_names_that_differ_in_their_fixed_parts(images, masks):
    _, places = detect(images, masks)
    assert places == [MaskName(i, "") for i in range(len(masks))]


@pytest.mark.parametrize(
    ("images", "masks"),
    [
        (["image_1.png", "image_2.png"], ["mask_1.png", "mask_3.png"]),
        (["image_1.png", "image_2.png"], ["mask_01.png", "mask_02.png"]),
        (["image_1.png", "image_1.jpg"], ["mask_1.png", "mask_2.png"]),
        (["A.png", "a.jpg"], ["B.png", "b.tif"]),
    ],
)
def test_names_of_which_one_finds_no_image_or_several_are_not_guessed(images, masks):
    assert set(detect(sorted(images), masks)[1]) == {None}


def test_the_image_has_a_pattern_of_its_own():
    images = ["photo 1 (left).jpg", "photo 2 (left).jpg"]
    stems = ImageStems(images, frozenset(), r"photo (\d+)")
    masks = ["m-2-final.png", "m-1-final.png"]
    layout = detect_mask_layout(masks, stems, None, r"m-(?P<image>\d+)-final")
    assert [layout.place(mask, stems) for mask in masks] == [MaskName(1, ""), MaskName(0, "")]


def test_folders_of_splits_are_no_classes():
    layout, places = detect(["a.jpg", "b.jpg"], ["train/a.png", "val/b.png"])
    assert layout.name == "same path"
    assert places == [None, None]


@pytest.mark.parametrize(
    ("images", "masks", "message"),
    [
        (["a.jpg", "a_car.jpg"], ["a_car.png", "a_car.png"], None),
        (["a.jpg"], ["a_gt.png", "a_color.png"], r"the suffix _gt or the suffix _color: as many \(1 of 2\)"),
        (["a.jpg"], ["a.png", "a_mask.png"], "same path or the suffix _mask"),
        (["a.jpg", "x/a.jpg", "y/a.jpg"], ["x/a.png", "y/a.png"], "same path or folder per class"),
    ],
)
def test_two_layouts_that_fit_equally_are_refused(images, masks, message):
    if message is None:
        assert detect(images, masks)[0].name == "same path"
        return
    with pytest.raises(UsageError, match=message):
        detect(images, masks)


def test_the_pattern_decides():
    images = ["a_leftImg8bit.png", "b.png"]
    masks = ["g/a_gtFine_labelIds.png", "g/a_gtFine_color.png", "g/b_gtFine_labelIds.png"]
    layout, places = detect(images, masks, pattern=r"(?P<image>[^/]+)_gtFine_labelIds$")
    assert places == [MaskName(0, ""), None, MaskName(1, "")]
    assert layout.reason == "input.labels.regex is given"
    layout, places = detect(["a.jpg"], ["car-a.png", "-a.png"], pattern=r"(?P<label>\w+)?-(?P<image>.+)")
    assert layout.by_class
    assert places == [MaskName(0, "car"), MaskName(0, "")]
