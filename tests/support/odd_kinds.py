"""Several kinds of pictures of each image, masks of several people, and folders that only look like classes."""

import layouts
import numpy as np
from layouts import CLASSES, COUNT, HEIGHT, WIDTH, indices, mask
from mutated_sets import QUESTION, STOPS
from odd_parts import COLORS, SPLITS, classes, numbered, one_class, picture, with_values
from odd_sets import ANSWERED, Odd

GRADIENT = (np.linspace(0, 255, WIDTH) * np.ones((HEIGHT, 1))).astype(np.uint8)
COLORED = ("color_804080", "color_00008e")


def chase(root):
    """Masks of two people next to each image."""
    for i in range(COUNT):
        layouts.image(root / f"Image_0{i}.jpg", i)
        for k, who in enumerate(("1stHO", "2ndHO")):
            picture(root / f"Image_0{i}_{who}.png", 255 * mask(i, k))
    return one_class("Image_0{}.jpg")


def observers(root):
    """A folder for each of two people."""
    for i in range(COUNT):
        layouts.image(root / f"images/i{i}.jpg", i)
        for k in range(2):
            picture(root / f"masks/observer{k + 1}/i{i}.png", 255 * mask(i, k))
    return one_class("i{}.jpg")


def mask_before_number(root):
    for i in range(COUNT):
        layouts.image(root / f"{i}.jpg", i)
        picture(root / f"mask{i}.png", 255 * mask(i, 0))
    return one_class("{}.jpg")


def instruments(root):
    """EndoVis: numbers of frames that every video has, and a folder of masks for each tool."""
    for i in range(COUNT):
        video, frame = root / f"instrument_dataset_{i // 4}", f"frame{i:03}.png"
        layouts.image(video / f"left_frames/{frame}", i)
        for k, side in enumerate(("Left", "Right")):
            picture(video / f"ground_truth/{side}_Prograsp_labels/{frame}", 10 * mask(i, k))
    return numbered("frame00{}.png", ("Left_Prograsp_labels", "Right_Prograsp_labels"))


def class_in_split(root):
    for i, split in enumerate(SPLITS):
        layouts.image(root / f"images/{split}/i{i}.jpg", i)
        for k, name in enumerate(CLASSES):
            picture(root / f"masks/{split}/{name}/i{i}.png", 255 * mask(i, k))
    return numbered("i{}.jpg", CLASSES)


def class_in_masks_of_split(root):
    for i, split in enumerate(SPLITS):
        layouts.image(root / f"{split}/images/i{i}.jpg", i)
        for k, name in enumerate(CLASSES):
            picture(root / f"{split}/masks/{name}/i{i}.png", 255 * mask(i, k))
    return numbered("i{}.jpg", CLASSES)


def forest(root):
    """Freiburg: color and infrared of each place, masks with another suffix than the images."""
    for i, split in enumerate(["train"] * 6 + ["test"] * 2):
        layouts.image(root / f"{split}/rgb/b{i}-0951_Clipped.jpg", i)
        layouts.image(root / f"{split}/nir_gray/b{i}-0951.jpg", i + 30)
        picture(root / f"{split}/GT_color/b{i}-0951_mask.png", COLORS[indices(i)])
    return numbered("b{}-0951_Clipped.jpg", COLORED)


def plants(root):
    """PhenoBench: four kinds of masks in each split, and images of the test alone."""
    for i, split in enumerate(SPLITS):
        layouts.image(root / f"{split}/images/p{i}.png", i)
        layouts.image(root / f"test/images/t{i}.png", i + 40)
        kinds = {
            "semantics": (1, 2),
            "plant_instances": (5, 9),
            "leaf_instances": (17, 23),
            "plant_visibility": (99, 80),
        }
        for kind, values in kinds.items():
            picture(root / f"{split}/{kind}/p{i}.png", with_values(i, values))
    return numbered("p{}.png")


def organs(root):
    """NuInsSeg: a folder for each organ, with masks of two kinds and distances."""
    for i in range(COUNT):
        organ = root / ("human bladder", "mouse liver")[i // 4]
        layouts.image(organ / f"tissue images/o{i}.png", i)
        picture(organ / f"mask binary/o{i}.png", 255 * mask(i, 0))
        picture(organ / f"label masks/o{i}.tif", with_values(i))
        picture(organ / f"distance maps/o{i}.png", GRADIENT)
    return one_class("o{}.png")


def frames_with_annotations(root):
    """RUGD: both folders are called after annotations."""
    for i in range(COUNT):
        place = ("creek", "park")[i // 4]
        layouts.image(root / f"RUGD_frames-with-annotations/{place}/c{i}.png", i)
        picture(root / f"RUGD_annotations/{place}/c{i}.png", COLORS[indices(i)])
    return numbered("c{}.png", COLORED)


def around(root):
    """0 is a class, and 255 all around what is labeled."""
    for i in range(COUNT):
        layouts.image(root / f"images/i{i}.jpg", i)
        picture(root / f"masks/i{i}.png", np.array([255, 0, 7], np.uint8)[indices(i)])
    drawn = [indices(i) for i in range(COUNT)]
    return {
        f"i{i}.jpg": {"0": (one == 1).astype(np.uint8), "7": (one == 2).astype(np.uint8)} for i, one in enumerate(drawn)
    }


def other_numbers(root):
    """Each split numbers the classes anew."""
    for i, split in enumerate(SPLITS):
        names = ("0_cat", "1_dog") if split == "train" else ("1_cat", "0_dog")
        layouts.image(root / f"{split}/{names[i % 2]}/{i}.jpg", i)
    return classes("{}.jpg", lambda i: ("cat", "dog")[i % 2])


def to_predict(root):
    """Images to predict, in the folder that programs ask for."""
    for i in range(COUNT):
        layouts.image(root / f"train/{CLASSES[i % 2]}/{i}.jpg", i)
        layouts.image(root / f"test/unknown/t{i}.jpg", i + 40)
    return classes("{}.jpg")


def without_common_class(root):
    """miniImageNet: no class of the test is one to learn."""
    of = lambda i: f"n{i % 2}{SPLITS[i]}"  # noqa: E731
    for i, split in enumerate(SPLITS):
        layouts.image(root / f"{split}/{of(i)}/{i}.jpg", i)
    return classes("{}.jpg", of)


def recorded(*names):
    """Folders by day, camera or patient: whether these are classes is not in the files."""

    def draw(root):
        for i in range(5 * COUNT):
            layouts.image(root / f"{names[i % len(names)]}/IMG_{i:04}.jpg", i)
        return {}

    return draw


def worn_masks(root):
    """What is to be seen is called a mask."""
    for i in range(5 * COUNT):
        layouts.image(root / f"{('with_mask', 'without_mask')[i % 2]}/{i}.png", i)
    return {f"{i}.png": {("with_mask", "without_mask")[i % 2]: None} for i in range(5 * COUNT)}


_K = "https://www.kaggle.com/datasets/"
_G = "https://github.com/"
_ASKS = frozenset((QUESTION,))
ODD = {
    "two observers": Odd("https://blogs.kingston.ac.uk/retinal/chasedb1", chase, "masks", _ASKS),
    "a folder per observer": Odd("https://cecas.clemson.edu/~ahoover/stare", observers, "masks", _ASKS),
    "mask before a number": Odd(f"{_G}milesial/Pytorch-UNet/issues/1", mask_before_number, "masks", ANSWERED),
    "EndoVis": Odd("https://endovissub-instrument.grand-challenge.org", instruments),
    "a class in each split": Odd(f"{_G}qubvel-org/segmentation_models.pytorch/issues/1", class_in_split),
    "classes in the masks of each split": Odd(f"{_G}qubvel-org/segmentation_models.pytorch", class_in_masks_of_split),
    "Freiburg Forest": Odd("http://deepscene.cs.uni-freiburg.de", forest, "masks", _ASKS),
    "PhenoBench": Odd("https://www.phenobench.org", plants, "masks", _ASKS),
    "NuInsSeg": Odd(f"{_K}ipateam/nuinsseg", organs, "masks", _ASKS),
    "RUGD": Odd("http://rugd.vision", frames_with_annotations, "masks", ANSWERED),
    "255 around": Odd(f"{_G}nightrome/cocostuff", around, "masks", _ASKS),
    "other numbers in each split": Odd(f"{_G}pytorch/vision/issues", other_numbers, "classes", _ASKS),
    "unknown to predict": Odd(f"{_G}keras-team/keras/issues", to_predict, "classes", _ASKS),
    "miniImageNet": Odd(f"{_G}yaoyao-liu/mini-imagenet-tools", without_common_class, "classes", _ASKS),
    "days": Odd(_K, recorded("2023-05-01", "2023-05-02", "2023-06-11"), "classes", STOPS),
    "cameras": Odd(_K, recorded("100CANON", "101CANON"), "classes", STOPS),
    "patients": Odd(_K, recorded("patient001", "patient002"), "classes", STOPS),
    "worn masks": Odd(f"{_K}ashishjangra27/face-mask-12k-images-dataset", worn_masks, "classes"),
}
