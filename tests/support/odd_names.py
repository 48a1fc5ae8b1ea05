"""Folders of masks that are named in many ways; see `odd_sets`."""

import layouts
import numpy as np
from layouts import CLASSES, COUNT, indices, mask
from mutated_sets import STOPS
from odd_parts import COLORS, SPLITS, numbered, one_class, picture
from odd_sets import ANSWERED, GITHUB, Odd
from PIL import Image
from tool_files import names, write


def class_prefix(root):
    """`car_i1.png` is the car of `i1.jpg`."""
    names(root)
    for i in range(COUNT):
        for k, name in enumerate(CLASSES):
            picture(root / f"masks/{name}_i{i}.png", 255 * mask(i, k))
    return {f"i{i}.jpg": {name: mask(i, k) for k, name in enumerate(CLASSES)} for i in range(COUNT)}


def class_prefix_folders(root):
    """`mask_car/i1.png`."""
    names(root)
    for i in range(COUNT):
        for k, name in enumerate(CLASSES):
            picture(root / f"mask_{name}/i{i}.png", 255 * mask(i, k))
    return {f"i{i}.jpg": {name: mask(i, k) for k, name in enumerate(CLASSES)} for i in range(COUNT)}


def resolutions(root):
    """Images and masks of three sizes."""
    sizes = ((24, 40), (30, 22), (48, 80))
    truth = {}
    (root / "masks").mkdir(parents=True)
    for i in range(COUNT):
        layouts.image(root / f"images/i{i}.jpg", i, sizes[i % 3])
        drawn = np.zeros(sizes[i % 3], np.uint8)
        drawn[3 : 9 + i, 4:15] = 1
        picture(root / f"masks/i{i}.png", 255 * drawn)
        truth[f"i{i}.jpg"] = {"mask": drawn}
    return truth


def mask_one_of_another_size(root):
    """One mask at half the size of its image."""
    names(root)
    for i in range(COUNT):
        drawn = mask(i, 0)
        picture(root / f"masks/i{i}.png", 255 * (drawn[::2, ::2] if i == 3 else drawn))
    return {}


def path_pairs(root):
    """A table with the path of each image and of its mask."""
    for i, split in enumerate(SPLITS):
        layouts.image(root / f"{split}/images/i{i}.jpg", i)
        picture(root / f"{split}/masks/i{i}.png", 255 * mask(i, 0))
    for split in ("train", "val"):
        rows = [f"{split}/images/i{i}.jpg,{split}/masks/i{i}.png" for i in range(COUNT) if SPLITS[i] == split]
        layouts.lines(root / f"{split}.csv", "image_path,mask_path", *rows)
    return one_class("i{}.jpg")


def labelme2voc(root):
    """What labelme2voc writes: NumPy files and colored pictures as well."""
    for i in range(COUNT):
        layouts.image(root / f"JPEGImages/i{i}.jpg", i)
        image = Image.fromarray(indices(i))
        image.putpalette([*COLORS.reshape(-1).tolist()])
        for folder in ("SegmentationClass", "SegmentationObject"):
            (root / folder).mkdir(exist_ok=True)
            image.save(root / folder / f"i{i}.png")
            (root / f"{folder}Visualization").mkdir(exist_ok=True)
            layouts.image(root / f"{folder}Visualization/i{i}.jpg", 50 + i)
            np.save(root / folder / f"i{i}.npy", indices(i))
    write(root / "class_names.txt", "_background_\ncar\nroad\n")
    return numbered("i{}.jpg", CLASSES)


def labelme2voc_png(root):
    """Older versions: the masks in SegmentationClassPNG."""
    for i in range(COUNT):
        layouts.image(root / f"JPEGImages/i{i}.jpg", i)
        layouts.image(root / f"SegmentationClassVisualization/i{i}.jpg", 50 + i)
        picture(root / f"SegmentationClassPNG/i{i}.png", indices(i))
        (root / "SegmentationClass").mkdir(exist_ok=True)
        np.save(root / f"SegmentationClass/i{i}.npy", indices(i))
    write(root / "class_names.txt", "_background_\ncar\nroad\n")
    return numbered("i{}.jpg", CLASSES)


def voc_both(root):
    """VOC's objects, classes, and boxes."""
    layouts.pascal_voc(root)
    for i in range(COUNT):
        picture(root / f"SegmentationObject/i{i}.png", indices(i))
        write(root / f"Annotations/i{i}.xml", f"<annotation><filename>i{i}.jpg</filename></annotation>")
    write(root / "ImageSets/Main/train.txt", "".join(f"i{i}\n" for i in range(6)))
    return numbered("i{}.jpg")


def pets(root):
    """Trimaps, boxes of heads, lists with classes, and classes in names."""
    for i in range(COUNT):
        layouts.image(root / f"images/{('Abyssinian', 'beagle')[i % 2]}_{i}.jpg", i)
        picture(root / f"annotations/trimaps/{('Abyssinian', 'beagle')[i % 2]}_{i}.png", 1 + indices(i))
        write(root / f"annotations/xmls/{('Abyssinian', 'beagle')[i % 2]}_{i}.xml", "<annotation></annotation>")
    rows = [f"{('Abyssinian', 'beagle')[i % 2]}_{i} {1 + i % 2} 1 1" for i in range(COUNT)]
    for name in ("list", "trainval", "test"):
        write(
            root / f"annotations/{name}.txt",
            "\n".join(rows if name == "list" else rows[:6] if name == "trainval" else rows[6:]) + "\n",
        )
    return {
        f"{('Abyssinian', 'beagle')[i % 2]}_{i}.jpg": {
            str(n): (1 + indices(i) == n).astype(np.uint8) for n in (1, 2, 3)
        }
        for i in range(COUNT)
    }


def roboflow_masks(root):
    """Roboflow's semantic masks: `_mask.png` next to images, and `_classes.csv` of each split."""
    for i, split in enumerate(["train"] * 6 + ["valid"] * 2):
        layouts.image(root / f"{split}/i{i}_jpg.rf.0a{i}.jpg", i)
        picture(root / f"{split}/i{i}_jpg.rf.0a{i}_mask.png", indices(i))
        layouts.lines(root / f"{split}/_classes.csv", "Pixel Value, Class", "0, background", "1, car", "2, road")
    write(root / "README.roboflow.txt", "exported\n")
    truth = numbered("{}", CLASSES)
    return {f"i{i}_jpg.rf.0a{i}.jpg": truth[str(i)] for i in range(COUNT)}


_RF = f"{GITHUB}roboflow/"
_SMP = f"{GITHUB}qubvel-org/segmentation_models.pytorch/issues/1"
_MM = f"{GITHUB}open-mmlab/mmsegmentation/issues/1"
ODD = {
    "class prefix": Odd(_SMP, class_prefix, "masks", ANSWERED),
    "class prefix of folders": Odd(_SMP, class_prefix_folders, "masks", ANSWERED),
    "masks of sizes": Odd(_MM, resolutions),
    "a mask of another size": Odd(_MM, mask_one_of_another_size, "masks", STOPS, cause="size"),
    "pairs of paths": Odd(f"{GITHUB}milesial/Pytorch-UNet/issues/1", path_pairs, "masks", ANSWERED),
    "labelme2voc": Odd(f"{GITHUB}wkentaro/labelme", labelme2voc),
    "labelme2voc before 5.3": Odd(f"{GITHUB}wkentaro/labelme", labelme2voc_png, "masks", ANSWERED),
    "VOC of all": Odd("http://host.robots.ox.ac.uk/pascal/VOC", voc_both),
    "Pets": Odd(
        "https://www.robots.ox.ac.uk/~vgg/data/pets",
        pets,
        "masks",
        ANSWERED,
        tested=("Abyssinian_6.jpg", "beagle_7.jpg"),
    ),
    "Roboflow masks": Odd(_RF, roboflow_masks, "masks", ANSWERED),
}
