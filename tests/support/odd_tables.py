"""Tables that users reported as read wrongly by some tool; see `odd_sets`."""

import unicodedata

import layouts
import numpy as np
from layouts import CLASSES, COUNT, HEIGHT, WIDTH, mask
from mutated_sets import RIGHT, STOPS
from odd_sets import ANSWERED, BOXES, GITHUB, Odd, edit
from PIL import Image
from tool_files import car, filled, names, square

# --- tables of run lengths


def rle_rows(root, text, header="ImageId,ClassId,EncodedPixels"):
    keys = names(root)
    rows = [
        f'{key},{name},"{text(layouts.runs(i, k))}"' for i, key in enumerate(keys) for k, name in enumerate(CLASSES)
    ]
    layouts.lines(root / "train.csv", header, *rows)
    return {key: {name: mask(i, k) for k, name in enumerate(CLASSES)} for i, key in enumerate(keys)}


def pairs(text):
    numbers = text.split()
    return [" ".join(numbers[i : i + 2]) for i in range(0, len(numbers), 2)]


def rle_doubled(text):
    """A pair again, and one that overlaps the pair before."""
    found = pairs(text)
    start, length = map(int, found[0].split())
    return " ".join([*found, found[1], f"{start} {max(1, length - 1)}"])


def rle_with(change):
    return lambda root: rle_rows(root, change)


def rle_twice(root):
    """Rows that are there twice."""
    truth = rle_rows(root, str)
    edit(root / "train.csv", lambda text: text + "\n".join(text.splitlines()[1:9]) + "\n")
    return truth


def siim(root):
    """SIIM-ACR: relative positions, a blank in the header, -1 for none; column by column."""
    keys = names(root)
    rows = [f"i{i}, {layouts.runs(i, 0, 'relative') if i % 3 else -1}" for i in range(COUNT)]
    layouts.lines(root / "train-rle.csv", "ImageId, EncodedPixels", *rows)
    return {key: {"mask": mask(i, 0)} if i % 3 else {} for i, key in enumerate(keys)}


def sartorius(root):
    """Sartorius: a row for each cell, row by row, with the size of the image."""
    names(root, "train")
    rows = [
        f"i{i},{layouts.runs(i, k, 'absolute', 'row')},{WIDTH},{HEIGHT},{('cort', 'shsy5y')[i % 2]}"
        for i in range(COUNT)
        for k in range(2)
    ]
    layouts.lines(root / "train.csv", "id,annotation,width,height,cell_type", *rows)
    return {f"i{i}.jpg": {"mask": mask(i, 0) | mask(i, 1)} for i in range(COUNT)}


def carvana(root):
    """Masks as GIF files and as run lengths, which say the same."""
    (root / "train_masks").mkdir(parents=True)
    names(root, "train")
    for i in range(COUNT):
        Image.fromarray(mask(i, 0) * np.uint8(255)).save(root / f"train_masks/i{i}_mask.gif")
    layouts.lines(root / "train_masks.csv", "img,rle_mask", *(f"i{i}.jpg,{layouts.runs(i, 0)}" for i in range(COUNT)))
    return {f"i{i}.jpg": {"mask": mask(i, 0)} for i in range(COUNT)}


def salt(root):
    """TGS: images, masks, run lengths, and a table of depths."""
    names(root, "train/images", "i{}.png")
    (root / "train/masks").mkdir()
    for i in range(COUNT):
        Image.fromarray(mask(i, 0) * np.uint8(255)).save(root / f"train/masks/i{i}.png")
    layouts.lines(root / "train.csv", "id,rle_mask", *(f"i{i},{layouts.runs(i, 0)}" for i in range(COUNT)))
    layouts.lines(root / "depths.csv", "id,z", *(f"i{i},{100 + 7 * i}" for i in range(COUNT)))
    return {f"i{i}.png": {"mask": mask(i, 0)} for i in range(COUNT)}


def airbus(root):
    keys = names(root, "train_v2")
    rows = [
        f"{key},{layouts.runs(i, k) if i % 3 else ''}" for i, key in enumerate(keys) for k in range(2 if i % 3 else 1)
    ]
    layouts.lines(root / "train_ship_segmentations_v2.csv", "ImageId,EncodedPixels", *rows)
    return {key: {"mask": mask(i, 0) | mask(i, 1)} if i % 3 else {} for i, key in enumerate(keys)}


# --- tables of classes


def label_rows(root, rows, header="filename,label", images="i{}.jpg", encoding="utf-8", folder="images"):
    keys = names(root, folder, images)
    text = "\n".join([header, *rows]) + "\n"
    (root / "labels.csv").write_bytes(text.encode(encoding))
    return keys


def classes_of(keys):
    return {key: {CLASSES[i % 2]: None} for i, key in enumerate(keys)}


def simple(form="i{}.jpg,{}"):
    return [form.format(i, CLASSES[i % 2]) for i in range(COUNT)]


def table(rows=None, **options):
    return lambda root: classes_of(label_rows(root, rows or simple(), **options))


def label_cp1252(root):
    keys = label_rows(root, [f"i{i}.jpg,{('Straße', 'car')[i % 2]}" for i in range(COUNT)], encoding="cp1252")
    return {key: {("Straße", "car")[i % 2]: None} for i, key in enumerate(keys)}


def label_excel(root):
    """`sep=;` and semicolons and a byte order mark."""
    keys = label_rows(root, [], encoding="utf-8")
    rows = ["sep=;", "filename;label", *simple("i{}.jpg;{}")]
    (root / "labels.csv").write_bytes("\r\n".join(rows).encode("utf-8-sig"))
    return classes_of(keys)


def label_floats(root):
    """Ids as pandas writes them: 1.0."""
    return classes_of(label_rows(root, simple("{}.0,{}"), header="id,label", images="{}.jpg"))


def label_zeros(root):
    """Excel took the zeros off: 1 for 0001.jpg."""
    return classes_of(label_rows(root, simple("{},{}"), header="id,label", images="000{}.jpg"))


def label_powers(root):
    """Excel's 2.02E+11 for several images."""
    label_rows(root, simple("2.02111E+11,{1}"), header="id,label", images="20211100000{}.jpg")
    return {}


def label_spellings(root):
    """A class in three spellings."""
    spelled = ("car", "Car", "car ", "road")
    keys = label_rows(root, [f"i{i}.jpg,{spelled[i % 4]}" for i in range(COUNT)])
    return {key: {"road" if i % 4 == 3 else "car": None} for i, key in enumerate(keys)}


def label_conflict(root):
    """An image has two rows with two classes, and all others one."""
    label_rows(root, [*simple(), "i0.jpg,road"])
    return {}


def label_same_twice(root):
    return classes_of(label_rows(root, [*simple(), *simple()[:3]]))


def label_nfd(root):
    """The table is NFC, the files are as macOS writes them."""
    name = unicodedata.normalize("NFD", "Übung é{}.jpg")
    keys = label_rows(root, simple(unicodedata.normalize("NFC", "Übung é{}.jpg,{}")), images=name)
    return classes_of([unicodedata.normalize("NFC", key) for key in keys])


def label_windows(root):
    return classes_of(label_rows(root, simple("D:\\Data\\Photos\\I{}.JPG,{}")))


def label_blank_end(root):
    """Blanks behind names and classes."""
    return classes_of(label_rows(root, simple("i{}.jpg ,{} ")))


def label_probabilities(root):
    """Galaxy Zoo: shares of votes in a column for each class."""
    keys = label_rows(root, [f"i{i}.jpg,{i / 10},{1 - i / 10:.1f}" for i in range(COUNT)], header="id,smooth,disk")
    return {key: {} for key in keys}


def label_is_valid(root):
    """fastai's column is_valid."""
    rows = [f"i{i}.jpg,{CLASSES[i % 2]},{i > 5}" for i in range(COUNT)]
    return classes_of(label_rows(root, rows, header="name,label,is_valid"))


def checkpoints(root):
    """Jupyter's copies in a folder of their own, which torchvision takes for a class."""
    layouts.class_folders(root)
    layouts.image(root / ".ipynb_checkpoints/0-checkpoint.jpg", 0)
    layouts.image(root / "car/.ipynb_checkpoints/0-checkpoint.jpg", 0)
    return {f"{i}.jpg": {CLASSES[i % 2]: None} for i in range(COUNT)}


def folder_spellings(root):
    """Folders Car and car."""
    for number in range(COUNT):
        layouts.image(root / ("car", "road", "Car")[number % 3] / f"{number}.jpg", number)
    return {f"{i}.jpg": {"road" if i % 3 == 1 else "car": None} for i in range(COUNT)}


def folder_empty(root):
    layouts.class_folders(root)
    (root / "tree").mkdir()
    return {f"{i}.jpg": {CLASSES[i % 2]: None} for i in range(COUNT)}


# --- tables of boxes


def wheat(root):
    """Global Wheat: a list in one field, and no class."""
    keys = names(root, "train")
    edges = (car(i) for i in range(COUNT))
    boxes = (f"[{left}.0, {top}.0, {right - left}.0, {bottom - top}.0]" for left, top, right, bottom in edges)
    rows = (f'i{i},{WIDTH},{HEIGHT},"{box}",usask_1' for i, box in enumerate(boxes))
    layouts.lines(root / "train.csv", "image_id,width,height,bbox,source", *rows)
    return {key: {"object": filled(*car(i))} for i, key in enumerate(keys)}


def rsna(root):
    """RSNA: patientId, Target 0 and empty edges where there is nothing."""
    keys = names(root, "train", "p{}.jpg")
    rows = []
    for i in range(COUNT):
        left, top, right, bottom = car(i)
        rows.append(f"p{i},{left},{top},{right - left},{bottom - top},1" if i % 2 else f"p{i},,,,,0")
    layouts.lines(root / "stage_2_train_labels.csv", "patientId,x,y,width,height,Target", *rows)
    return {key: {"1": filled(*car(i))} if i % 2 else {} for i, key in enumerate(keys)}


def vindr(root):
    """VinBigData: 'No finding' has no edges."""
    keys = names(root, "train")
    rows = []
    for i in range(COUNT):
        edges = ",".join(map(str, car(i)))
        rows.append(f"i{i},Mass,1,R9,{edges}" if i % 2 else f"i{i},No finding,14,R9,,,,")
    layouts.lines(root / "train.csv", "image_id,class_name,class_id,rad_id,x_min,y_min,x_max,y_max", *rows)
    return {key: {"1": filled(*car(i))} if i % 2 else {} for i, key in enumerate(keys)}


def box_edges_as_sizes(root):
    """Headers of sizes over edges."""
    keys = names(root)
    rows = [
        f"{key},{','.join(map(str, edges))},{name}"
        for i, key in enumerate(keys)
        for name, edges in (("car", car(i)), ("road", square(i)))
    ]
    layouts.lines(root / "boxes.csv", "image,x,y,width,height,label", *rows)
    return {}


_KAGGLE = "https://www.kaggle.com/competitions/"
ODD: dict[str, Odd] = {
    "runs doubled": Odd(
        f"{_KAGGLE}airbus-ship-detection/overview/evaluation", rle_with(rle_doubled), "masks", ANSWERED | STOPS
    ),
    "runs unsorted": Odd(
        f"{_KAGGLE}airbus-ship-detection/overview/evaluation", rle_with(lambda text: " ".join(pairs(text)[::-1]))
    ),
    "runs with blanks": Odd(
        f"{_KAGGLE}siim-acr-pneumothorax-segmentation", rle_with(lambda text: f" {text.replace(' ', '  ')} ")
    ),
    "runs with commas": Odd(
        f"{_KAGGLE}data-science-bowl-2018",
        rle_with(lambda text: text.replace(" ", ",")),
        "masks",
        ANSWERED | STOPS,
        cause="start length start length",
    ),
    "runs in brackets": Odd(
        f"{_KAGGLE}data-science-bowl-2018",
        rle_with(lambda text: f"[{text.replace(' ', ', ')}]"),
        "masks",
        ANSWERED | STOPS,
        cause="start length start length",
    ),
    "runs in two lines": Odd(
        f"{_KAGGLE}airbus-ship-detection", rle_with(lambda text: text.replace(" ", "\n", 2)), "masks", ANSWERED | STOPS
    ),
    "rows of runs twice": Odd(f"{_KAGGLE}understanding_cloud_organization", rle_twice),
    "SIIM": Odd(f"{_KAGGLE}siim-acr-pneumothorax-segmentation", siim),
    "Sartorius": Odd(f"{_KAGGLE}sartorius-cell-instance-segmentation/discussion/278936", sartorius, "masks", ANSWERED),
    "Carvana": Odd(f"{_KAGGLE}carvana-image-masking-challenge", carvana, "masks", ANSWERED),
    "salt": Odd(f"{_KAGGLE}tgs-salt-identification-challenge", salt, "masks", ANSWERED),
    "Airbus": Odd(f"{_KAGGLE}airbus-ship-detection/overview/evaluation", airbus, "masks", ANSWERED),
    "classes in cp1252": Odd(
        "https://pandas.pydata.org/docs/reference/api/pandas.read_csv.html",
        label_cp1252,
        "classes",
        ANSWERED | STOPS,
        cause="not UTF-8",
    ),
    "classes by Excel": Odd(
        "https://support.microsoft.com/excel", label_excel, "classes", allowed=STOPS, cause="for Excel"
    ),
    "classes in UTF-16": Odd(
        "https://pandas.pydata.org/docs/reference/api/pandas.read_csv.html",
        table(encoding="utf-16"),
        "classes",
        allowed=STOPS,
        cause="UTF-16",
    ),
    "ids as floats": Odd(f"{_KAGGLE}rsna-pneumonia-detection-challenge", label_floats, "classes", ANSWERED | STOPS),
    "ids without zeros": Odd(f"{_KAGGLE}carvana-image-masking-challenge", label_zeros, "classes", ANSWERED | STOPS),
    "ids as powers": Odd("https://support.microsoft.com/excel", label_powers, "classes", STOPS, cause="2.02111E"),
    "classes in spellings": Odd(
        f"{GITHUB}penny4860/tf2-eager-yolo3/issues/11", label_spellings, "classes", ANSWERED | STOPS
    ),
    "classes in conflict": Odd(
        f"{GITHUB}Andrewsher/X-Net/issues/3", label_conflict, "classes", STOPS, cause="conflicting_labels"
    ),
    "classes twice": Odd("https://github.com/Andrewsher/X-Net/issues/3", label_same_twice, "classes"),
    "names in NFD": Odd(f"{GITHUB}llmsresearch/paperbanana/pull/240", label_nfd, "classes"),
    "names of Windows": Odd(
        f"{GITHUB}ultralytics/yolov3/issues/1879",
        label_windows,
        "classes",
        allowed=STOPS,
        cause="upper and lower case|matched an image",
    ),
    "blanks at the end": Odd("https://github.com/apple/turicreate/issues/1528", label_blank_end, "classes"),
    "probabilities": Odd(f"{_KAGGLE}galaxy-zoo-the-galaxy-challenge", label_probabilities, "classes", STOPS | {RIGHT}),
    "is_valid": Odd("https://docs.fast.ai/vision.data.html", label_is_valid, "classes"),
    "checkpoints": Odd(f"{GITHUB}open-mmlab/mmpretrain/issues/507", checkpoints, "classes"),
    "folders in spellings": Odd(
        f"{GITHUB}roboflow/supervision/issues/1641", folder_spellings, "classes", ANSWERED | STOPS
    ),
    "an empty folder": Odd(f"{GITHUB}pytorch/vision/issues/8297", folder_empty, "classes"),
    "Wheat": Odd(f"{GITHUB}ultralytics/yolov5/issues/443", wheat, "boxes", ANSWERED, BOXES),
    "RSNA": Odd(f"{_KAGGLE}rsna-pneumonia-detection-challenge", rsna, "boxes", ANSWERED, BOXES),
    "VinDr": Odd(f"{_KAGGLE}vinbigdata-chest-xray-abnormalities-detection", vindr, "boxes", ANSWERED, BOXES),
    "edges as sizes": Odd(
        f"{GITHUB}Megvii-BaseDetection/YOLOX/issues/969", box_edges_as_sizes, "boxes", STOPS, BOXES, cause="as edges"
    ),
}
