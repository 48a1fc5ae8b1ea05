"""Folders of data sets of factories and fields, each with its truth; see `odd_sets`."""

import layouts
import numpy as np
from layouts import CLASSES, COUNT, HEIGHT, WIDTH, indices, mask
from mutated_sets import QUESTION, STOPS
from odd_parts import classes, numbered, one_class, picture
from odd_sets import ANSWERED, BOXES, Odd
from tool_files import square, voc_boxes, write

EMPTY = np.zeros((HEIGHT, WIDTH), np.uint8)


def mvtec(root):
    """Good images without masks, also in the test, and a folder of masks for each defect."""
    truth = {}
    for i in range(COUNT):
        layouts.image(root / f"bottle/train/good/{i:03}.png", i)
        truth[f"{i:03}.png"] = {}
        for k, kind in enumerate(("good", "broken_large", "contamination")):
            number = 100 * (k + 1) + i
            layouts.image(root / f"bottle/test/{kind}/{number}.png", number)
            truth[f"{number}.png"] = {"mask": mask(i, k - 1)} if k else {}
            if k:
                picture(root / f"bottle/ground_truth/{kind}/{number}_mask.png", 255 * mask(i, k - 1))
    write(root / "bottle/license.txt", "CC BY-NC-SA 4.0\n")
    write(root / "bottle/readme.txt", "MVTec AD\n")
    return truth


def kolektor(root):
    """A folder for each item, with a mask as BMP next to each image of the same name."""
    truth = {}
    for i in range(COUNT):
        layouts.image(root / f"kos0{i // 2}/Part{i}.jpg", i)
        picture(root / f"kos0{i // 2}/Part{i}_label.bmp", 255 * mask(i, 0))
        truth[f"Part{i}.jpg"] = {"mask": mask(i, 0)}
    return truth


def kolektor_two(root):
    """`train` and `test`, with `_GT` next to each image; most are empty."""
    truth = {}
    for i in range(COUNT):
        folder = root / ("train" if i < 6 else "test")
        layouts.image(folder / f"1000{i}.png", i)
        drawn = mask(i, 0) if i % 2 else EMPTY
        picture(folder / f"1000{i}_GT.png", 255 * drawn)
        truth[f"1000{i}.png"] = {"mask": drawn} if i % 2 else {}
    return truth


def dagm(root):
    """Masks of some images in a folder `Label` below them, and a text about all."""
    truth = {}
    for i in range(COUNT):
        folder = root / f"Class1/{('Train', 'Test')[i > 5]}"
        layouts.image(folder / f"057{i}.PNG", i)
        truth[f"057{i}.PNG"] = {}
        if i % 2:
            picture(folder / f"Label/057{i}_label.PNG", 255 * mask(i, 0))
            truth[f"057{i}.PNG"] = {"mask": mask(i, 0)}
        (folder / "Label").mkdir(exist_ok=True)
    for part, numbers in (("Train", range(6)), ("Test", (6, 7))):
        rows = "".join(f"{i}\t{i % 2}\t057{i}.PNG\t0\t057{i}_label.PNG\n" for i in numbers)
        write(root / f"Class1/{part}/Label/Labels.txt", f"1\n{rows}")
    return truth


def visa(root):
    """Tables of several divisions, with the path of each image, its class and its mask."""
    rows = ["object,split,label,image,mask"]
    for i in range(COUNT):
        kind = ("Normal", "Anomaly")[i % 2]
        layouts.image(root / f"candle/Data/Images/{kind}/00{i}.JPG", i)
        if i % 2:
            picture(root / f"candle/Data/Masks/Anomaly/00{i}.png", 255 * mask(i, 0))
        of_mask = f"candle/Data/Masks/Anomaly/00{i}.png" if i % 2 else ""
        split = "test" if i > 5 else "train"
        rows.append(f"candle,{split},{kind.lower()},candle/Data/Images/{kind}/00{i}.JPG,{of_mask}")
    (root / "split_csv").mkdir()
    layouts.lines(root / "split_csv/1cls.csv", *rows)
    layouts.lines(root / "split_csv/2cls_fewshot.csv", *(row.replace("train", "test") for row in rows[:5]))
    layouts.lines(
        root / "candle/image_anno.csv",
        "image,label,mask",
        *(",".join(row.split(",")[3:4] + row.split(",")[2:3] + row.split(",")[4:]) for row in rows[1:]),
    )
    return {f"00{i}.JPG": {"mask": mask(i, 0)} if i % 2 else {} for i in range(COUNT)}


def neu(root):
    """NEU-DET: VOC's boxes of each split, with images in a folder for each class."""
    truth = voc_boxes(root / "x")
    for i in range(COUNT):
        part = root / ("train" if i < 6 else "validation")
        kind = ("crazing", "patches")[i % 2]
        for folder in (f"images/{kind}", "annotations"):
            (part / folder).mkdir(parents=True, exist_ok=True)
        (root / f"x/images/i{i}.jpg").rename(part / f"images/{kind}/i{i}.jpg")
        (root / f"x/Annotations/i{i}.xml").rename(part / f"annotations/i{i}.xml")
    for folder in ("x/images", "x/Annotations", "x"):
        (root / folder).rmdir()
    return {key.rpartition("/")[2]: value for key, value in truth.items()}


def magnetic_tile(root):
    """Images as JPEG and masks as PNG, with the same names in the same folder."""
    truth = {}
    for i in range(COUNT):
        folder = root / f"MT_{('Blowhole', 'Crack')[i % 2]}/Imgs"
        layouts.image(folder / f"exp{i}_num_1.jpg", i)
        picture(folder / f"exp{i}_num_1.png", 255 * mask(i, 0))
        truth[f"exp{i}_num_1.jpg"] = {"mask": mask(i, 0)}
    return truth


def same_stem(root):
    """The same in one folder, as Crack500 and sets of salient objects have it."""
    for i in range(COUNT):
        layouts.image(root / f"i{i}.jpg", i)
        picture(root / f"i{i}.png", 255 * mask(i, 0))
    return one_class("i{}.jpg")


def crack(root):
    """Crack500: the same in the folder of each split, and lists of pairs."""
    for i in range(COUNT):
        part = "traincrop" if i < 6 else "testcrop"
        layouts.image(root / f"{part}/i{i}.jpg", i)
        picture(root / f"{part}/i{i}.png", 255 * mask(i, 0))
    for part, numbers in (("train", range(6)), ("test", (6, 7))):
        write(root / f"{part}.txt", "".join(f"{part}crop/i{i}.jpg {part}crop/i{i}.png\n" for i in numbers))
    return one_class("i{}.jpg")


def three_looks(root):
    """PlantVillage: the set in color, in gray, and without its background."""
    for i in range(COUNT):
        for k, kind in enumerate(("color", "grayscale", "segmented")):
            layouts.image(root / f"raw/{kind}/{CLASSES[i % 2]}/{i}.jpg", i + 20 * k)
    return classes("{}.jpg")


def deep_weeds(root):
    """All labels in one table, and those of five divisions in further ones."""
    head, rows = "Filename,Label,Species", []
    for i in range(COUNT):
        layouts.image(root / f"images/2016-{i}.jpg", i)
        rows.append(f"2016-{i}.jpg,{i % 2},{('Chinee apple', 'Lantana')[i % 2]}")
    (root / "labels").mkdir()
    layouts.lines(root / "labels/labels.csv", head, *rows)
    for fold in range(2):
        turned = [*rows[fold:], *rows[:fold]]
        for split, part in (("train", turned[:4]), ("val", turned[4:6]), ("test", turned[6:])):
            layouts.lines(
                root / f"labels/{split}_subset{fold}.csv", "Filename,Label", *(row.rpartition(",")[0] for row in part)
            )
    return classes("2016-{}.jpg", lambda i: str(i % 2))


def seedlings(root):
    for i in range(COUNT):
        layouts.image(root / f"train/{('Black-grass', 'Maize')[i % 2]}/a{i}.png", i)
        layouts.image(root / f"test/t{i}.png", 30 + i)
    layouts.lines(root / "sample_submission.csv", "file,species", *(f"t{i}.png,Maize" for i in range(COUNT)))
    return classes("a{}.png", lambda i: ("Black-grass", "Maize")[i % 2])


def leaves(root):
    """CVPPP: the image, its leaves by number and its foreground, next to each other."""
    for i in range(COUNT):
        layouts.image(root / f"A1/plant00{i}_rgb.png", i)
        picture(root / f"A1/plant00{i}_label.png", indices(i))
        picture(root / f"A1/plant00{i}_fg.png", 255 * (indices(i) > 0))
    layouts.lines(root / "A1.csv", *(f"plant00{i},2" for i in range(COUNT)))
    return numbered("plant00{}_rgb.png")


def carrots(root):
    """CWFID: three folders with a suffix each."""
    for i in range(COUNT):
        layouts.image(root / f"images/00{i}_image.png", i)
        picture(root / f"masks/00{i}_mask.png", 255 * mask(i, 0))
        picture(root / f"annotations/00{i}_annotation.png", np.array([[0, 0, 0], [0, 255, 0], [255, 0, 0]])[indices(i)])
    write(root / "train_test_split.yaml", "train: [1, 2]\ntest: [3]\n")
    return one_class("00{}_image.png")


def boxes_beside(root):
    """OID's toolkit: a folder for each class, with boxes as text in a folder below it."""
    for i in range(COUNT):
        folder = root / f"OID/Dataset/train/{('Apple', 'Orange')[i % 2]}"
        layouts.image(folder / f"a{i}.jpg", i)
        left, top, right, bottom = square(i)
        write(folder / f"Label/a{i}.txt", f"{('Apple', 'Orange')[i % 2]} {left}.0 {top}.0 {right}.0 {bottom}.0\n")
    return classes("a{}.jpg", lambda i: ("Apple", "Orange")[i % 2])


def stray_texts(root):
    """YOLO, with texts of all kinds among the annotations and next to data.yaml."""
    from tool_files import yolo

    truth = yolo(root)
    for name, text in {
        "README.txt": "by Ann\n",
        "requirements.txt": "ultralytics==8.3\nnumpy\n",
        "LICENSE.txt": "CC-0\n",
        "classes.txt": "car\nroad\n",
        "labels.txt": "car\nroad\n",
        "notes.txt": "",
        "todo.txt": "0 2 9\n",
        "labels/empty.txt": "",
        "labels/train/notes.txt": "two cars are doubtful\n",
        "labels/train/classes.txt": "car\nroad\n",
    }.items():
        write(root / name, text)
    return truth


def one_stray(text, name="notes.txt"):
    """The same with one text alone."""

    def draw(root):
        from tool_files import yolo

        truth = yolo(root)
        write(root / name, text)
        return truth

    return draw


_K = "https://www.kaggle.com/datasets/"
_U = "https://docs.ultralytics.com/datasets"
ODD = {
    "MVTec AD": Odd("https://www.mvtec.com/company/research/datasets/mvtec-ad", mvtec, "masks", ANSWERED),
    "KolektorSDD": Odd("https://www.vicos.si/resources/kolektorsdd", kolektor, "masks", ANSWERED),
    "KolektorSDD2": Odd("https://www.vicos.si/resources/kolektorsdd2", kolektor_two, tested=("10006.png", "10007.png")),
    "DAGM": Odd(
        "https://hci.iwr.uni-heidelberg.de/content/weakly-supervised-learning-industrial-optical-inspection",
        dagm,
        "masks",
        ANSWERED,
        tested=("0576.PNG", "0577.PNG"),
    ),
    "VisA": Odd("https://github.com/amazon-science/spot-diff", visa, "masks", ANSWERED),
    "NEU-DET": Odd(f"{_K}kaustubhdikshit/neu-surface-defect-database", neu, "boxes", ANSWERED, BOXES),
    "magnetic tile": Odd("https://github.com/abin24/Magnetic-tile-defect-datasets.", magnetic_tile, "masks", ANSWERED),
    "masks of the same name": Odd("https://www.kaggle.com/datasets", same_stem, "masks", ANSWERED),
    "Crack500": Odd("https://github.com/fyangneil/pavement-crack-detection", crack, "masks", ANSWERED),
    "PlantVillage in three looks": Odd(f"{_K}abdallahalidev/plantvillage-dataset", three_looks, "classes", ANSWERED),
    "DeepWeeds": Odd("https://github.com/AlexOlsen/DeepWeeds", deep_weeds, "classes", ANSWERED),
    "Plant Seedlings": Odd("https://www.kaggle.com/c/plant-seedlings-classification", seedlings, "classes"),
    "CVPPP": Odd("https://www.plant-phenotyping.org/datasets", leaves, "masks", ANSWERED),
    "CWFID": Odd("https://github.com/cwfid/dataset", carrots, "masks", ANSWERED),
    "OIDv4 toolkit": Odd("https://github.com/EscVM/OIDv4_ToolKit", boxes_beside, "classes", ANSWERED | STOPS),
    "stray texts": Odd(_U, stray_texts),
    **{
        f"a stray {name}": Odd(_U, one_stray(text, name))
        for name, text in {
            "notes.txt": "",
            "train.log.txt": "epoch 1\n",
            "todo.txt": "0 2 9\n",
            "1.txt": "",
            "labels/labels.txt": "car\nroad\n",
        }.items()
    },
    # Among texts of images, an empty one states that an image is missing.
    "a text of no image": Odd(_U, one_stray("", "labels/train/i9.txt"), "masks", frozenset((QUESTION,))),
}
