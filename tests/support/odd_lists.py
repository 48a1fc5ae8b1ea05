"""Folders of data sets of classes, with lists, tables and splits of many forms, each with its truth; see `odd_sets`."""

import layouts
from layouts import CLASSES, COUNT, HEIGHT, WIDTH
from mutated_sets import QUESTION, STOPS
from odd_parts import classes
from odd_sets import ANSWERED, BOXES, Odd
from tool_files import car, names, square, write


def birds_alone(root):
    """CUB's lists of ids where the folders are no classes."""
    for i in range(COUNT):
        layouts.image(root / f"images/bird_{i}.jpg", i)
    write(root / "images.txt", "".join(f"{i + 1} bird_{i}.jpg\n" for i in range(COUNT)))
    write(root / "image_class_labels.txt", "".join(f"{i + 1} {1 + i % 2}\n" for i in range(COUNT)))
    write(root / "train_test_split.txt", "".join(f"{i + 1} {int(i < 6)}\n" for i in range(COUNT)))
    write(root / "classes.txt", "1 001.car\n2 002.road\n")
    return {}


def celebrities(root):
    """CelebA: attributes as -1 and 1, and the split as a number in a table of its own."""
    keys = names(root, "img_align_celeba/img_align_celeba", "00000{}.jpg")
    layouts.lines(
        root / "list_attr_celeba.csv",
        "image_id,Smiling,Young",
        *(f"{key},{(-1, 1)[i % 2]},{(1, -1)[i % 2]}" for i, key in enumerate(keys)),
    )
    layouts.lines(
        root / "list_eval_partition.csv",
        "image_id,partition",
        *(f"{key},{(i > 3) + (i > 5)}" for i, key in enumerate(keys)),
    )
    layouts.lines(root / "list_bbox_celeba.csv", "image_id,x_1,y_1,width,height", *(f"{key},2,3,9,9" for key in keys))
    layouts.lines(
        root / "list_landmarks_align_celeba.csv", "image_id,lefteye_x,lefteye_y", *(f"{key},2,3" for key in keys)
    )
    return classes("00000{}.jpg", lambda i: ("Young", "Smiling")[i % 2])


def partition(root):
    """One table of classes, another with the split of each image."""
    keys = names(root)
    layouts.lines(root / "labels.csv", "image,label", *(f"{key},{CLASSES[i % 2]}" for i, key in enumerate(keys)))
    splits = ["train"] * 4 + ["val"] * 2 + ["test"] * 2
    layouts.lines(root / "splits.csv", "image,split", *(f"{key},{splits[i]}" for i, key in enumerate(keys)))
    return classes("i{}.jpg")


def persons_by_name(root):
    """LFW: a folder for each person, lists of pairs and of persons."""
    for i in range(COUNT):
        layouts.image(root / f"lfw/{CLASSES[i % 2].title()}_Ann/{CLASSES[i % 2].title()}_Ann_000{i}.jpg", i)
    write(root / "pairs.txt", "10 300\nCar_Ann 1 4\n")
    write(root / "peopleDevTrain.txt", "1\nCar_Ann\t4\n")
    write(root / "lfw-names.txt", "Car_Ann 4\nRoad_Ann 4\n")
    return {f"{CLASSES[i % 2].title()}_Ann_000{i}.jpg": {f"{CLASSES[i % 2].title()}_Ann": None} for i in range(COUNT)}


def plankton(root):
    """WHOI: the classes again in the folder of each year."""
    for i in range(COUNT):
        layouts.image(root / f"20{13 + i // 4}/{('Ciliate_mix', 'detritus')[i % 2]}/IFCB1_{i}.png", i)
    return classes("IFCB1_{}.png", lambda i: ("Ciliate_mix", "detritus")[i % 2])


def plankton_twice(root):
    """A folder within a folder of its name, and images to predict."""
    for i in range(COUNT):
        layouts.image(root / f"train/train/{('acantharia', 'copepod')[i % 2]}/{i}.jpg", i)
        layouts.image(root / f"test/test/9{i}.jpg", 30 + i)
    layouts.lines(
        root / "sampleSubmission.csv", "image,acantharia,copepod", *(f"9{i}.jpg,0.5,0.5" for i in range(COUNT))
    )
    return classes("{}.jpg", lambda i: ("acantharia", "copepod")[i % 2])


def naturalist(root):
    """iNaturalist: COCO's form with classes of whole images; no annotations of those to predict."""
    rows = []
    for i in range(COUNT):
        name = f"train_val2018/Plantae/{100 + i % 2}/a{i}.jpg"
        layouts.image(root / name, i)
        rows.append({"id": i, "file_name": name, "height": HEIGHT, "width": WIDTH, "license": 0})
        layouts.image(root / f"test2018/t{i}.jpg", 30 + i)
    categories = [{"id": k, "name": f"Rosa {'ab'[k]}", "supercategory": "Plantae"} for k in range(2)]
    for split, numbers in (("train", range(6)), ("val", (6, 7))):
        marked = [{"id": i, "image_id": i, "category_id": i % 2} for i in numbers]
        document = {"info": {}, "images": [rows[i] for i in numbers], "annotations": marked, "licenses": []}
        write(root / f"{split}2018.json", {**document, "categories": categories})
    tests = [{"id": 50 + i, "file_name": f"test2018/t{i}.jpg", "height": HEIGHT, "width": WIDTH} for i in range(COUNT)]
    write(root / "test2018.json", {"info": {}, "images": tests, "licenses": []})
    return classes("a{}.jpg", lambda i: f"Rosa {'ab'[i % 2]}")


def places(root):
    """Places365: folders by letter, and lists of a path and a number."""
    for i in range(COUNT):
        layouts.image(root / f"data_256/{CLASSES[i % 2][0]}/{CLASSES[i % 2]}/0000{i}.jpg", i)
        layouts.image(root / f"val_256/Places365_val_0000{i}.jpg", 30 + i)
    paths = [f"/{CLASSES[i % 2][0]}/{CLASSES[i % 2]}/0000{i}.jpg {i % 2}\n" for i in range(COUNT)]
    write(root / "places365_train_standard.txt", "".join(paths))
    write(root / "places365_val.txt", "".join(f"Places365_val_0000{i}.jpg {i % 2}\n" for i in range(COUNT)))
    write(root / "categories_places365.txt", "/c/car 0\n/r/road 1\n")
    return {}


def imagenet_val(root):
    """A folder of images, and a number in each line of a text in their order."""
    for i in range(COUNT):
        layouts.image(root / f"val/ILSVRC2012_val_0000000{i}.JPEG", i)
    write(root / "ILSVRC2012_validation_ground_truth.txt", "".join(f"{1 + i % 2}\n" for i in range(COUNT)))
    return {}


def cifar(root):
    """CIFAR-10 as PNG: classes in folders, and a list of them."""
    for i in range(COUNT):
        layouts.image(root / f"{('train', 'test')[i > 5]}/{CLASSES[i % 2]}/{i}_{CLASSES[i % 2]}.png", i)
    write(root / "labels.txt", "car\nroad\n")
    return {f"{i}_{CLASSES[i % 2]}.png": {CLASSES[i % 2]: None} for i in range(COUNT)}


def cifar_kaggle(root):
    """CIFAR-10 of Kaggle: numbers for names in both folders, a table for one."""
    for i in range(COUNT):
        layouts.image(root / f"train/{i + 1}.png", i)
        layouts.image(root / f"test/{i + 1}.png", 30 + i)
    layouts.lines(root / "trainLabels.csv", "id,label", *(f"{i + 1},{CLASSES[i % 2]}" for i in range(COUNT)))
    layouts.lines(root / "sampleSubmission.csv", "id,label", *(f"{i + 1},car" for i in range(COUNT)))
    return {f"{i + 1}.png": {CLASSES[i % 2]: None} for i in range(COUNT)}


def mnist(root):
    """Numbers for classes."""
    for i in range(COUNT):
        layouts.image(root / f"mnist_png/{('training', 'testing')[i > 5]}/{i % 2}/{10 + i}.png", i)
    return {f"{10 + i}.png": {str(i % 2): None} for i in range(COUNT)}


def image_labels(root):
    """Open Images: labels of whole images, by people and by machines, and boxes of the same."""
    keys = names(root, "train", "0a{}.jpg")
    write(root / "class-descriptions.csv", "/m/0k4j,car\n/m/06gfj,road\n")
    ids = ("/m/0k4j", "/m/06gfj")
    rows = [
        f"{key[:-4]},verification,{ids[i % 2]},1\n{key[:-4]},verification,{ids[1 - i % 2]},0"
        for i, key in enumerate(keys)
    ]
    layouts.lines(root / "train-annotations-human-imagelabels.csv", "ImageID,Source,LabelName,Confidence", *rows)
    return classes("0a{}.jpg")


def cars(root):
    """Stanford Cars: tables without a header, names in a third."""
    for part, start in (("train", 0), ("test", 30)):
        keys = names(root, f"cars_{part}/cars_{part}", f"0{start // 30}00{{}}.jpg")
        rows = []
        for i, key in enumerate(keys):
            left, top, right, bottom = square(i)
            rows.append(f"{key},{left},{top},{right},{bottom},{1 + i % 2}")
        layouts.lines(root / f"anno_{part}.csv", *rows)
    layouts.lines(root / "names.csv", "AM General Hummer", "Acura RL")
    kinds = ("AM General Hummer", "Acura RL")
    return {f"0{p}00{i}.jpg": {kinds[i % 2]: None} for p in range(2) for i in range(COUNT)}


def dogs(root):
    """Stanford Dogs: annotations without an ending, lists for MATLAB."""
    kinds = ("n02085620-Chihuahua", "n02085782-Japanese_spaniel")
    for i in range(COUNT):
        layouts.image(root / f"Images/{kinds[i % 2]}/{kinds[i % 2][:9]}_{i}.jpg", i)
        write(root / f"Annotation/{kinds[i % 2]}/{kinds[i % 2][:9]}_{i}", "<annotation></annotation>")
    (root / "lists").mkdir()
    for name in ("train_list", "test_list", "file_list"):
        (root / f"lists/{name}.mat").write_bytes(b"MATLAB 5.0 MAT-file, Platform: GLNXA64" + bytes(90))
    return {f"{kinds[i % 2][:9]}_{i}.jpg": {kinds[i % 2]: None} for i in range(COUNT)}


def flowers(root):
    """Flowers 102: nothing but files for MATLAB says what is what."""
    names(root, "jpg", "image_0000{}.jpg")
    for name in ("imagelabels", "setid"):
        (root / f"{name}.mat").write_bytes(b"MATLAB 5.0 MAT-file, Platform: GLNXA64" + bytes(90))
    return {}


def textures(root):
    """DTD: ten divisions, each with three lists."""
    for i in range(COUNT):
        layouts.image(root / f"images/{('banded', 'woven')[i % 2]}/{('banded', 'woven')[i % 2]}_000{i}.jpg", i)
    paths = [f"{('banded', 'woven')[i % 2]}/{('banded', 'woven')[i % 2]}_000{i}.jpg\n" for i in range(COUNT)]
    for fold in range(1, 4):
        turned = paths[fold:] + paths[:fold]
        for split, part in (("train", turned[:4]), ("val", turned[4:6]), ("test", turned[6:])):
            write(root / f"labels/{split}{fold}.txt", "".join(part))
    write(root / "labels/labels_joint_anno.txt", "".join(f"{path[:-1]} {path.split('/')[0]} \n" for path in paths))
    return {f"{('banded', 'woven')[i % 2]}_000{i}.jpg": {("banded", "woven")[i % 2]: None} for i in range(COUNT)}


def aircraft(root):
    """FGVC: a bare name and a class with blanks in each line, at three levels, and lists of names alone."""
    keys = names(root, "data/images", "003{}.jpg")
    for split, numbers in (("train", range(4)), ("val", (4, 5)), ("test", (6, 7))):
        write(root / f"data/images_{split}.txt", "".join(f"{keys[i][:-4]}\n" for i in numbers))
        for level, kinds in (("variant", ("707-320", "DC-10")), ("manufacturer", ("Boeing", "McDonnell Douglas"))):
            write(
                root / f"data/images_{level}_{split}.txt", "".join(f"{keys[i][:-4]} {kinds[i % 2]}\n" for i in numbers)
            )
    write(root / "data/variants.txt", "707-320\nDC-10\n")
    write(root / "data/images_box.txt", "".join(f"{key[:-4]} 2 3 20 20\n" for key in keys))
    return {}


def trash(root):
    """TrashNet: classes in folders, and lists of a name and a number."""
    kinds = ("glass", "paper")
    for i in range(COUNT):
        layouts.image(root / f"dataset-resized/{kinds[i % 2]}/{kinds[i % 2]}{i}.jpg", i)
    for split, numbers in (("train", range(4)), ("val", (4, 5)), ("test", (6, 7))):
        write(
            root / f"one-indexed-files-notrash_{split}.txt",
            "".join(f"{kinds[i % 2]}{i}.jpg {1 + i % 2}\n" for i in numbers),
        )
    return {f"{kinds[i % 2]}{i}.jpg": {kinds[i % 2]: None} for i in range(COUNT)}


def numbers_of_houses(root):
    """SVHN: one file for MATLAB in each split."""
    for part, start in (("train", 0), ("test", 30)):
        for i in range(COUNT):
            layouts.image(root / f"{part}/{i + 1}.png", start + i)
        (root / f"{part}/digitStruct.mat").write_bytes(b"MATLAB 7.3 MAT-file, Platform: GLNXA64" + bytes(90))
    return {}


def forms(root):
    """FUNSD: a form of its own for each document."""
    for part, start in (("training", 0), ("testing", 30)):
        for i in range(COUNT):
            layouts.image(root / f"dataset/{part}_data/images/00{start + i}.png", start + i)
            write(
                root / f"dataset/{part}_data/annotations/00{start + i}.json",
                {"form": [{"text": "a", "box": [1, 2, 9, 9], "label": "header", "words": []}]},
            )
    return {}


def pages(root):
    """RVL-CDIP: deep folders, and lists of a path and a number."""
    for i in range(COUNT):
        layouts.image(root / f"images/images{'ab'[i % 2]}/r/g/e/rge3{i}/50399{i}.tif", i)
    for split, numbers in (("train", range(4)), ("val", (4, 5)), ("test", (6, 7))):
        write(
            root / f"labels/{split}.txt",
            "".join(f"images{'ab'[i % 2]}/r/g/e/rge3{i}/50399{i}.tif {i // 4}\n" for i in numbers),
        )
    return {}


def parties(root):
    """WIDER FACE: folders of events, boxes in one text of lines of several kinds."""
    text = ""
    for i in range(COUNT):
        name = f"{('0--Parade', '1--Handshaking')[i % 2]}/{i % 2}_Parade_{i}.jpg"
        layouts.image(root / f"WIDER_train/images/{name}", i)
        text += f"{name}\n1\n" + " ".join(map(str, (*car(i)[:2], 5, 5, 0, 0, 0, 0, 0, 0))) + "\n"
    write(root / "wider_face_split/wider_face_train_bbx_gt.txt", text)
    return {}


def cells(root):
    """LIVECell: COCO JSON of each split below other names, images of train and val in one folder."""
    from odd_coco import coco

    truth = coco(root / "x")
    import json

    whole = json.loads((root / "x/instances.json").read_text())
    for i in range(COUNT):
        part = root / f"images/livecell_{'test' if i > 5 else 'train_val'}_images/A172"
        part.mkdir(parents=True, exist_ok=True)
        (root / f"x/images/i{i}.jpg").rename(part / f"i{i}.jpg")
    (root / "x/instances.json").unlink()
    for folder in ("x/images", "x"):
        (root / folder).rmdir()
    for split, numbers in (("train", range(4)), ("val", (4, 5)), ("test", (6, 7))):
        images = [one for one in whole["images"] if one["id"] in numbers]
        marked = [one for one in whole["annotations"] if one["image_id"] in numbers]
        write(
            root / f"annotations/LIVECell/livecell_coco_{split}.json",
            {**whole, "images": images, "annotations": marked},
        )
    return truth


_K = "https://www.kaggle.com/datasets/"
ODD = {
    "CUB alone": Odd(
        "https://www.vision.caltech.edu/datasets/cub_200_2011", birds_alone, "classes", STOPS, cause="txt"
    ),
    "CelebA": Odd(f"{_K}jessicali9530/celeba-dataset", celebrities, "classes", ANSWERED),
    "a table of splits": Odd(_K, partition, "classes", ANSWERED, tested=("i6.jpg", "i7.jpg")),
    "LFW": Odd("http://vis-www.cs.umass.edu/lfw", persons_by_name, "classes", ANSWERED),
    "WHOI-Plankton": Odd("https://github.com/hsosik/WHOI-Plankton", plankton, "classes", ANSWERED),
    "NDSB": Odd("https://www.kaggle.com/c/datasciencebowl", plankton_twice, "classes", ANSWERED),
    "iNaturalist": Odd("https://github.com/visipedia/inat_comp", naturalist, "classes", ANSWERED | STOPS),
    "Places365": Odd("http://places2.csail.mit.edu", places, "classes", STOPS, cause=r"\.txt"),
    "ImageNet's validation": Odd("https://www.image-net.org", imagenet_val, "classes", STOPS, cause="ground_truth.txt"),
    "CIFAR-10 as PNG": Odd(
        "https://www.cs.toronto.edu/~kriz/cifar.html", cifar, "classes", tested=("6_car.png", "7_road.png")
    ),
    "CIFAR-10 of Kaggle": Odd("https://www.kaggle.com/c/cifar-10", cifar_kaggle, "classes", ANSWERED),
    "MNIST as PNG": Odd("https://github.com/myleott/mnist_png", mnist, "classes", tested=("16.png", "17.png")),
    "Open Images labels": Odd("https://storage.googleapis.com/openimages/web", image_labels, "classes", ANSWERED),
    "Stanford Cars": Odd(f"{_K}jutrera/stanford-car-dataset-by-classes-folder", cars, "classes", ANSWERED),
    "Stanford Dogs": Odd("http://vision.stanford.edu/aditya86/ImageNetDogs", dogs, "classes", ANSWERED),
    "Flowers 102": Odd("https://www.robots.ox.ac.uk/~vgg/data/flowers/102", flowers, "classes", STOPS, cause=r"\.mat"),
    "DTD": Odd("https://www.robots.ox.ac.uk/~vgg/data/dtd", textures, "classes", frozenset((QUESTION,))),
    "FGVC-Aircraft": Odd(
        "https://www.robots.ox.ac.uk/~vgg/data/fgvc-aircraft", aircraft, "classes", STOPS, cause=r"\.txt"
    ),
    "TrashNet": Odd(
        "https://github.com/garythung/trashnet", trash, "classes", ANSWERED, tested=("glass6.jpg", "paper7.jpg")
    ),
    "SVHN": Odd("http://ufldl.stanford.edu/housenumbers", numbers_of_houses, "classes", STOPS, cause=r"\.mat"),
    "FUNSD": Odd("https://guillaumejaume.github.io/FUNSD", forms, "boxes", STOPS, BOXES, cause="json"),
    "RVL-CDIP": Odd("https://adamharley.com/rvl-cdip", pages, "classes", STOPS, cause=r"\.txt"),
    "WIDER FACE": Odd("http://shuoyang1213.me/WIDERFACE", parties, "classes", STOPS, cause="bbx_gt.txt"),
    "LIVECell": Odd(
        "https://sartorius-research.github.io/LIVECell", cells, "masks", ANSWERED, tested=("i6.jpg", "i7.jpg")
    ),
}
