"""Folders of data sets of classes: folders in folders, tables of splits, names of files; see `odd_sets`."""

import layouts
from layouts import CLASSES, COUNT, HEIGHT, WIDTH
from mutated_sets import STOPS
from odd_parts import SPLITS, classes
from odd_sets import ANSWERED, GITHUB, Odd
from tool_files import names, write


def intel(root):
    """seg_train/seg_train/car, and images to predict in seg_pred."""
    for i in range(COUNT):
        part = "train" if i < 4 else "test"
        layouts.image(root / f"seg_{part}/seg_{part}/{CLASSES[i % 2]}/{i}.jpg", i)
        layouts.image(root / f"seg_pred/seg_pred/1{i}.jpg", 30 + i)
    return classes("{}.jpg")


def brain(root):
    for i in range(COUNT):
        part = "Training" if i < 4 else "Testing"
        layouts.image(root / f"{part}/{CLASSES[i % 2]}/Te-{i}.jpg", i)
    return classes("Te-{}.jpg")


def food(root):
    """Lists of both splits, as text and as JSON."""
    for i in range(COUNT):
        layouts.image(root / f"images/{CLASSES[i % 2]}/100{i}.jpg", i)
    for split, numbers in (("train", range(6)), ("test", range(6, COUNT))):
        write(root / f"meta/{split}.txt", "".join(f"{CLASSES[i % 2]}/100{i}\n" for i in numbers))
        lists = {name: [f"{name}/100{i}" for i in numbers if CLASSES[i % 2] == name] for name in CLASSES}
        write(root / f"meta/{split}.json", lists)
    write(root / "meta/classes.txt", "car\nroad\n")
    write(root / "meta/labels.txt", "Car\nRoad\n")
    return classes("100{}.jpg")


def birds(root):
    """CUB: text files of ids."""
    for i in range(COUNT):
        layouts.image(root / f"images/00{1 + i % 2}.{CLASSES[i % 2]}/{CLASSES[i % 2]}_{i}.jpg", i)
    paths = [f"00{1 + i % 2}.{CLASSES[i % 2]}/{CLASSES[i % 2]}_{i}.jpg" for i in range(COUNT)]
    write(root / "images.txt", "".join(f"{i + 1} {path}\n" for i, path in enumerate(paths)))
    write(root / "image_class_labels.txt", "".join(f"{i + 1} {1 + i % 2}\n" for i in range(COUNT)))
    write(root / "train_test_split.txt", "".join(f"{i + 1} {int(i < 6)}\n" for i in range(COUNT)))
    write(root / "classes.txt", "1 001.car\n2 002.road\n")
    return {f"{CLASSES[i % 2]}_{i}.jpg": {f"00{1 + i % 2}.{CLASSES[i % 2]}": None} for i in range(COUNT)}


def dogs(root):
    """dog.0.jpg to learn from, 1.jpg to predict."""
    for i in range(COUNT):
        layouts.image(root / f"train/{CLASSES[i % 2]}.{i}.jpg", i)
        layouts.image(root / f"test1/{i + 1}.jpg", 30 + i)
    return {f"{CLASSES[i % 2]}.{i}.jpg": {CLASSES[i % 2]: None} for i in range(COUNT)}


def faces(root):
    """UTKFace: age, gender and origin in names; no class."""
    for i in range(COUNT):
        layouts.image(root / f"{20 + i}_{i % 2}_0_2017011620123{i}.jpg.chip.jpg", i)
    return {}


def persons(root):
    """Market-1501: a person and a camera in each name, in three folders."""
    for folder, start in (("bounding_box_train", 0), ("bounding_box_test", 20), ("query", 40)):
        for i in range(COUNT):
            layouts.image(root / f"{folder}/000{i}_c{1 + i % 2}s1_0004{start + i}_00.jpg", start + i)
    return {}


def traffic_signs(root):
    """GTSRB: three tables, with paths; the images of `Meta` are pictures of the classes."""
    head = "Width,Height,Roi.X1,Roi.Y1,Roi.X2,Roi.Y2,ClassId,Path"
    for part, numbers in (("Train", range(6)), ("Test", range(6, COUNT))):
        rows = []
        for i in numbers:
            path = f"Train/{i % 2}/0000{i % 2}_0000{i}.png" if part == "Train" else f"Test/0000{i}.png"
            layouts.image(root / path, i)
            rows.append(f"{WIDTH},{HEIGHT},2,2,30,20,{i % 2},{path}")
        layouts.lines(root / f"{part}.csv", head, *rows)
    for k in range(2):
        layouts.image(root / f"Meta/{k}.png", 60 + k)
    layouts.lines(
        root / "Meta.csv", "Path,ClassId,ShapeId,ColorId,SignId", *(f"Meta/{k}.png,{k},0,0,3.{k}" for k in range(2))
    )
    keys = [f"0000{i % 2}_0000{i}.png" if i < 6 else f"0000{i}.png" for i in range(COUNT)]
    return {key: {str(i % 2): None} for i, key in enumerate(keys)}


def pairs_of_tables(root):
    """Kaggle: tables of train and test, of which one has no classes."""
    for i in range(COUNT):
        layouts.image(root / f"train/i{i}.jpg", i)
        layouts.image(root / f"test/t{i}.jpg", 30 + i)
    layouts.lines(root / "train.csv", "id,breed", *(f"i{i},{CLASSES[i % 2]}" for i in range(COUNT)))
    layouts.lines(root / "test.csv", "id", *(f"t{i}" for i in range(COUNT)))
    layouts.lines(root / "sample_submission.csv", "id,car,road", *(f"t{i},0.5,0.5" for i in range(COUNT)))
    return classes("i{}.jpg")


def names_of_numbers(root):
    """train.csv with numbers, classes.csv with their names."""
    names(root, "train")
    layouts.lines(root / "train.csv", "image_id,class_id", *(f"i{i},{i % 2}" for i in range(COUNT)))
    layouts.lines(root / "classes.csv", "class_id,name", "0,car", "1,road")
    return classes("i{}.jpg")


def two_tables(root):
    """Two tables that classify the same images by two things."""
    names(root)
    layouts.lines(root / "colors.csv", "image,label", *(f"i{i}.jpg,{('red', 'blue')[i % 2]}" for i in range(COUNT)))
    layouts.lines(root / "shapes.csv", "image,label", *(f"i{i}.jpg,{('round', 'flat')[i // 4]}" for i in range(COUNT)))
    return classes("i{}.jpg", lambda i: ("red", "blue")[i % 2])


def table_per_class(root):
    """car.csv and road.csv."""
    names(root)
    for k, name in enumerate(CLASSES):
        layouts.lines(root / f"{name}.csv", "filename", *(f"i{i}.jpg" for i in range(COUNT) if i % 2 == k))
    return {}


def eurosat(root):
    """Class folders and a table of each split with a nameless first column."""
    for i in range(COUNT):
        layouts.image(root / f"{CLASSES[i % 2]}/{CLASSES[i % 2]}_{i}.jpg", i)
    for split, numbers in (("train", range(4)), ("validation", (4, 5)), ("test", (6, 7))):
        rows = [
            f"{n},{CLASSES[i % 2]}/{CLASSES[i % 2]}_{i}.jpg,{i % 2},{CLASSES[i % 2]}" for n, i in enumerate(numbers)
        ]
        layouts.lines(root / f"{split}.csv", ",Filename,Label,ClassName", *rows)
    write(root / "label_map.json", {"car": 0, "road": 1})
    return {f"{CLASSES[i % 2]}_{i}.jpg": {CLASSES[i % 2]: None} for i in range(COUNT)}


def caffe_lists(root):
    """meta/train.txt with a path and a number in each line."""
    for i, split in enumerate(SPLITS):
        layouts.image(root / f"{split}/i{i}.jpg", i)
    for split in ("train", "val"):
        write(root / f"meta/{split}.txt", "".join(f"i{i}.jpg {i % 2}\n" for i in range(COUNT) if SPLITS[i] == split))
    return {}


def roboflow_classes(root):
    """Roboflow's `_classes.csv`: a column for each class, in each split."""
    for i, split in enumerate(["train"] * 4 + ["valid"] * 2 + ["test"] * 2):
        layouts.image(root / f"{split}/i{i}_jpg.rf.0a{i}.jpg", i)
    for split, numbers in (("train", range(4)), ("valid", (4, 5)), ("test", (6, 7))):
        rows = [f"i{i}_jpg.rf.0a{i}.jpg, {1 - i % 2}, {i % 2}" for i in numbers]
        layouts.lines(root / f"{split}/_classes.csv", "filename, car, road", *rows)
    return {f"i{i}_jpg.rf.0a{i}.jpg": {CLASSES[i % 2]: None} for i in range(COUNT)}


def nested_twice(root):
    """PlantVillage: the whole set again in a folder of its own name."""
    for i in range(COUNT):
        for top in ("PlantVillage", "PlantVillage/PlantVillage"):
            layouts.image(root / f"{top}/{CLASSES[i % 2]}/{i}.jpg", i)
    return classes("{}.jpg")


def yes_no(root):
    """Brain MRI: the folders of classes, and a folder with copies of both."""
    for i in range(COUNT):
        name = ("yes", "no")[i % 2]
        layouts.image(root / f"{name}/{name[0].upper()}{i}.jpg", i)
        layouts.image(root / f"brain_tumor_dataset/{name}/{name[0].upper()}{i}.jpg", i)
    return {f"{'YN'[i % 2]}{i}.jpg": {("yes", "no")[i % 2]: None} for i in range(COUNT)}


def image_folder_other_machine(root, form="/home/ann/data/{split}/{name}"):
    """Hugging Face's metadata.csv with paths of another machine, in each split."""
    for split in ("train", "test"):
        rows = []
        for i in range(COUNT):
            if (i < 6) == (split == "train"):
                layouts.image(root / split / f"i{i}.jpg", i)
                rows.append(f"{form.format(split=split, name=f'i{i}.jpg')},{CLASSES[i % 2]}")
        layouts.lines(root / split / "metadata.csv", "file_name,label", *rows)
    return classes("i{}.jpg")


def list_other_machine(root):
    """One table of two folders of splits, with paths of Windows."""
    for i, split in enumerate(SPLITS):
        layouts.image(root / f"{split}/i{i}.jpg", i)
    rows = [f"C:\\Users\\ann\\set\\{split}\\i{i}.jpg,{CLASSES[i % 2]}" for i, split in enumerate(SPLITS)]
    layouts.lines(root / "labels.csv", "path,label", *rows)
    return classes("i{}.jpg")


_K = "https://www.kaggle.com/datasets/"
_RF = f"{GITHUB}roboflow/"
_HF = "https://huggingface.co/docs/datasets/image_dataset"
ODD = {
    "Intel": Odd(f"{_K}puneet6060/intel-image-classification", intel, "classes", ANSWERED),
    "Training and Testing": Odd(
        f"{_K}masoudnickparvar/brain-tumor-mri-dataset",
        brain,
        "classes",
        tested=tuple(f"Te-{i}.jpg" for i in range(4, COUNT)),
    ),
    "Food-101": Odd(f"{_K}dansbecker/food-101", food, "classes", tested=("1006.jpg", "1007.jpg")),
    "CUB": Odd(
        "https://www.vision.caltech.edu/datasets/cub_200_2011", birds, "classes", tested=("car_6.jpg", "road_7.jpg")
    ),
    "Dogs vs. Cats": Odd("https://www.kaggle.com/c/dogs-vs-cats", dogs, "classes", ANSWERED),
    "UTKFace": Odd(f"{_K}jangedoo/utkface-new", faces, "classes", STOPS),
    "Market-1501": Odd(f"{_K}pengcw1/market-1501", persons, "classes", STOPS),
    "GTSRB": Odd(f"{_K}meowmeowmeowmeowmeow/gtsrb-german-traffic-sign", traffic_signs, "classes", ANSWERED),
    "tables of train and test": Odd(
        "https://www.kaggle.com/c/dog-breed-identification", pairs_of_tables, "classes", ANSWERED
    ),
    "names of numbers": Odd(
        "https://www.kaggle.com/c/cassava-leaf-disease-classification", names_of_numbers, "classes", ANSWERED
    ),
    "two tables": Odd("https://www.kaggle.com/c/imet-2020-fgvc7", two_tables, "classes", ANSWERED),
    "a table for each class": Odd("https://www.kaggle.com", table_per_class, "classes", STOPS),
    "EuroSAT": Odd(f"{_K}apollo2506/eurosat-dataset", eurosat, "classes", ANSWERED, tested=("car_6.jpg", "road_7.jpg")),
    "lists with numbers": Odd(f"{GITHUB}open-mmlab/mmpretrain", caffe_lists, "classes", STOPS, cause="train.txt"),
    "Roboflow classes": Odd(_RF, roboflow_classes, "classes", ANSWERED),
    "PlantVillage": Odd(f"{_K}emmarex/plantdisease", nested_twice, "classes", ANSWERED),
    "yes and no": Odd(f"{_K}navoneel/brain-mri-images-for-brain-tumor-detection", yes_no, "classes", ANSWERED),
    "image folder of another machine": Odd(_HF, image_folder_other_machine, "classes"),
    "image folder of Windows": Odd(
        _HF,
        lambda root: image_folder_other_machine(root, "D:\\set\\{split}\\{name}"),
        "classes",
    ),
    "image folder of another place": Odd(
        _HF,
        lambda root: image_folder_other_machine(root, "/mnt/photos/{name}"),
        "classes",
    ),
    "a table of another machine": Odd(_HF, list_other_machine, "classes"),
}
