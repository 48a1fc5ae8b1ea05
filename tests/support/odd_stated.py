"""Public sets of classes, as the paths of their archives: a row each; see `odd_sets`."""

from layouts import COUNT
from odd_paired import OTHER, PHOTO, draw, fields
from odd_sets import ANSWERED, Odd

TWO = ("cat", "dog")
_K, _G = "https://www.kaggle.com/datasets/", "https://github.com/"


def _by(form: str):
    """The truth: of each photograph, the class of a form such as `{two}`."""

    def of(files):
        path = next(path for path, what in files.items() if what is PHOTO).rpartition("/")[2]
        return {path.format(**fields(i)): {form.format(**fields(i)): None} for i in range(COUNT)}

    return of


CLASS = _by("{two}")


def _table(header, row):
    return lambda i: (f"{header}\n" if header and i == 0 else "") + row.format(**fields(i)) + "\n"


def _lines(row, numbers=range(COUNT)):
    return "".join(row.format(**fields(i)) + "\n" for i in numbers)


TRAINED = range(6)
_JSON = '{"cat": ["cat/1000", "cat/1002", "cat/1004"], "dog": ["dog/1001", "dog/1003", "dog/1005"]}'
ROWS = {
    "cats in train, cat in test": (f"{_G}keras-team/keras", {"{test}/{plural}/{i}.jpg": PHOTO}, CLASS, {}),
    "capitals in one split": (f"{_G}keras-team/keras", {"{test}/{capital}/{i}.jpg": PHOTO}, CLASS, {}),
    "blanks and underscores": (f"{_G}keras-team/keras", {"{test}/{blank}/{i}.jpg": PHOTO}, _by("{spaced}"), {}),
    "Places365 of train": (
        "http://places2.csail.mit.edu",
        {"data_256/{c}/{two}/0000{i}.jpg": PHOTO},
        CLASS,
        {
            "places365_train_standard.txt": _lines("/{c}/{two}/0000{i}.jpg {k}"),
            "categories_places365.txt": "/c/cat 0\n/d/dog 1\n",
        },
    ),
    "ImageNet of torchvision": (
        "https://www.image-net.org",
        {"{val}/n0{k}/I_{i}.JPEG": PHOTO},
        _by("n0{k}"),
        {"LOC_synset_mapping.txt": "n00 tench, Tinca tinca\nn01 goldfish\n"},
    ),
    "Caltech-101": (
        "https://data.caltech.edu/records/mzrjq-6wc02",
        {"101_ObjectCategories/{two}/image_000{i}.jpg": PHOTO},
        CLASS,
        {"Annotations/{two}/annotation_000{i}.mat": "MATLAB 5.0"},
    ),
    "Caltech-256": (
        "https://data.caltech.edu/records/nyy15-4j048",
        {"256_ObjectCategories/00{k}.{two}/00{k}_000{i}.jpg": PHOTO},
        _by("00{k}.{two}"),
        {},
    ),
    "PetImages": (
        "https://www.microsoft.com/en-us/download/details.aspx?id=54765",
        {"PetImages/{two}/{i}.jpg": PHOTO},
        CLASS,
        {"readme[1].txt": "x", "PetImages/cat/Thumbs.db": "x"},
    ),
    "filtered cats and dogs": (
        "https://storage.googleapis.com/mledu-datasets/cats_and_dogs_filtered.zip",
        {"cats_and_dogs_filtered/{validation}/{two}s/{two}.{i}.jpg": PHOTO},
        _by("{two}s"),
        {"cats_and_dogs_filtered/vectorize.py": "pass"},
    ),
    "SUN397": (
        "https://vision.princeton.edu/projects/2010/SUN",
        {"SUN397/{c}/{two}/sun_a{i}.jpg": PHOTO},
        CLASS,
        {"SUN397/ClassName.txt": "/c/cat\n/d/dog\n"},
    ),
    "MIT Indoor": (
        "https://web.mit.edu/torralba/www/indoor.html",
        {"Images/{two}_inside/{i}.jpg": PHOTO},
        _by("{two}_inside"),
        {
            "TrainImages.txt": _lines("{two}_inside/{i}.jpg", TRAINED),
            "TestImages.txt": _lines("{two}_inside/{i}.jpg", (6, 7)),
        },
    ),
    "butterflies": (
        f"{_K}phucthaiv02/butterfly-image-classification",
        {"train/Image_{n}.jpg": PHOTO, "test/Image_{n}.jpg": OTHER},
        CLASS,
        {
            "Training_set.csv": _table("filename,label", "Image_{n}.jpg,{two}"),
            "Testing_set.csv": _table("filename", "Image_{n}.jpg"),
        },
    ),
    "dog breeds": (
        "https://www.kaggle.com/c/dog-breed-identification",
        {"train/a{i}.jpg": PHOTO, "test/b{i}.jpg": OTHER},
        CLASS,
        {"labels.csv": _table("id,breed", "a{i},{two}"), "sample_submission.csv": _table("id,cat,dog", "b{i},0.5,0.5")},
    ),
    "whales": (
        "https://www.kaggle.com/c/humpback-whale-identification",
        {"train/a{i}.jpg": PHOTO, "test/b{i}.jpg": OTHER},
        CLASS,
        {
            "train.csv": _table("Image,Id", "a{i}.jpg,{two}"),
            "sample_submission.csv": _table("Image,Id", "b{i}.jpg,new_whale"),
        },
    ),
    "plant pathology": (
        "https://www.kaggle.com/c/plant-pathology-2020-fgvc7",
        {"images/Train_{i}.jpg": PHOTO, "images/Test_{i}.jpg": OTHER},
        CLASS,
        {
            "train.csv": _table("image_id,cat,dog", "Train_{i},{not_k},{k}"),
            "test.csv": _table("image_id", "Test_{i}"),
            "sample_submission.csv": _table("image_id,cat,dog", "Test_{i},0.5,0.5"),
        },
    ),
    "cassava": (
        "https://www.kaggle.com/c/cassava-leaf-disease-classification",
        {"train_images/10{i}.jpg": PHOTO, "test_images/20{i}.jpg": OTHER},
        CLASS,
        {
            "train.csv": _table("image_id,label", "10{i}.jpg,{k}"),
            "label_num_to_disease_map.json": '{"0": "cat", "1": "dog"}',
            "sample_submission.csv": "image_id,label\n200.jpg,1\n",
        },
    ),
    "state farm": (
        "https://www.kaggle.com/c/state-farm-distracted-driver-detection",
        {"imgs/train/c{k}/img_{i}.jpg": PHOTO, "imgs/test/img_9{i}.jpg": OTHER},
        _by("c{k}"),
        {
            "driver_imgs_list.csv": _table("subject,classname,img", "p00{q},c{k},img_{i}.jpg"),
            "sample_submission.csv": _table("img,c0,c1", "img_9{i}.jpg,0.1,0.9"),
        },
    ),
    "blood cells": (
        f"{_K}paultimothymooney/blood-cells",
        {
            "dataset2-master/dataset2-master/images/{TEST}/{TWO}/_0_{i}.jpeg": PHOTO,
            "dataset2-master/dataset2-master/images/TEST_SIMPLE/{TWO}/_9_{i}.jpeg": OTHER,
        },
        _by("{TWO}"),
        {"dataset2-master/dataset2-master/labels.csv": ',Image,Category\n0,0,"NEUTROPHIL"\n'},
    ),
    "malaria": (
        f"{_K}iarunava/cell-images-for-detecting-malaria",
        {"cell_images/{two}/C{i}.png": PHOTO},
        CLASS,
        {"cell_images/cat/Thumbs.db": "x"},
    ),
    "products": (
        f"{_K}paramaggarwal/fashion-product-images-small",
        {"images/116{i}.jpg": PHOTO},
        CLASS,
        {"styles.csv": _table("id,gender,masterCategory,subCategory,year", "116{i},{sex},{two},{two}s,201{i}")},
    ),
    "BreakHis": (
        "https://web.inf.ufpr.br/vri/databases/breast-cancer-histopathological-database-breakhis",
        {"BreaKHis_v1/histology_slides/breast/{two}/SOB/{sub}/SOB_{i}/40X/SOB-{i}.png": PHOTO},
        CLASS,
        {},
    ),
    "IDC": (
        f"{_K}paultimothymooney/breast-histopathology-images",
        {"1025{q}/{k}/1025{q}_idx5_x{i}_y1_class{k}.png": PHOTO},
        _by("{k}"),
        {},
    ),
    "PCam of Kaggle": (
        "https://www.kaggle.com/c/histopathologic-cancer-detection",
        {"train/f{i}.tif": PHOTO, "test/g{i}.tif": OTHER},
        _by("{k}"),
        {"train_labels.csv": _table("id,label", "f{i},{k}"), "sample_submission.csv": _table("id,label", "g{i},0")},
    ),
    "diabetic retinopathy": (
        "https://www.kaggle.com/c/diabetic-retinopathy-detection",
        {"train/1{q}_{side}.jpeg": PHOTO, "test/9{q}_{side}.jpeg": OTHER},
        _by("{k}"),
        {"trainLabels.csv": _table("image,level", "1{q}_{side},{k}")},
    ),
    "chest X-rays": (
        f"{_K}paultimothymooney/chest-xray-pneumonia",
        {
            "chest_xray/{test}/{TWO}/person{i}.jpeg": PHOTO,
            "chest_xray/chest_xray/{test}/{TWO}/person{i}.jpeg": PHOTO,
            "chest_xray/__MACOSX/chest_xray/{test}/{TWO}/._person{i}.jpeg": OTHER,
        },
        _by("{TWO}"),
        {},
    ),
    "emotions": (f"{_K}msambare/fer2013", {"{test}/{two}/Training_{i}.jpg": PHOTO}, CLASS, {}),
    "letters": (
        f"{_K}grassknoted/asl-alphabet",
        {
            "asl_alphabet_train/asl_alphabet_train/{two}/{two}{i}.jpg": PHOTO,
            "asl_alphabet_test/asl_alphabet_test/{two}_{i}_test.jpg": OTHER,
        },
        CLASS,
        {},
    ),
    "Pets without masks": (
        "https://www.robots.ox.ac.uk/~vgg/data/pets",
        {"images/{Breed}_{i}.jpg": PHOTO},
        _by("{Breed}"),
        {},
    ),
    "CUB whole": (
        "https://www.vision.caltech.edu/datasets/cub_200_2011",
        {"CUB_200_2011/images/00{n_k}.{Breed}/{Breed}_000{i}.jpg": PHOTO},
        _by("00{n_k}.{Breed}"),
        {
            "CUB_200_2011/images.txt": _lines("{n} 00{n_k}.{Breed}/{Breed}_000{i}.jpg"),
            "CUB_200_2011/image_class_labels.txt": _lines("{n} {n_k}"),
            "CUB_200_2011/train_test_split.txt": _lines("{n} {trained}"),
            "CUB_200_2011/classes.txt": "1 001.Auk\n2 002.Crow_Bird\n",
            "CUB_200_2011/bounding_boxes.txt": _lines("{n} 1.0 1.0 9.0 9.0"),
        },
    ),
    "ten thousand signs": (
        f"{_K}andrewmvd/x",
        {"{val}/{k}/{i}.png": PHOTO},
        CLASS,
        {"labels.csv": "ClassId,Name\n0,cat\n1,dog\n"},
    ),
    "names with colons": (
        _K,
        {"images/i{i}.jpg": PHOTO},
        CLASS,
        {"labels.csv": _table("image,label", "i{i}.jpg,{k}"), "classes.txt": "0: cat\n1: dog\n"},
    ),
    "names, then numbers": (
        _K,
        {"images/i{i}.jpg": PHOTO},
        CLASS,
        {"labels.csv": _table("image,label", "i{i}.jpg,{k}"), "classes.txt": "cat 0\ndog 1\n"},
    ),
    "Tiny ImageNet of train": (
        "http://cs231n.stanford.edu/tiny-imagenet-200.zip",
        {"tiny-imagenet-200/train/n0{k}/images/n0{k}_{i}.JPEG": PHOTO},
        _by("n0{k}"),
        {
            "tiny-imagenet-200/train/n0{k}/n0{k}_boxes.txt": _lines("n0{k}_{i}.JPEG\t0\t0\t9\t9"),
            "tiny-imagenet-200/wnids.txt": "n00\nn01\n",
            "tiny-imagenet-200/words.txt": "n00\tcat\nn01\tdog\n",
        },
    ),
    "Food-101 whole": (
        "https://data.vision.ee.ethz.ch/cvl/datasets_extra/food-101",
        {"food-101/images/{two}/100{i}.jpg": PHOTO},
        CLASS,
        {
            "food-101/meta/train.txt": _lines("{two}/100{i}", TRAINED),
            "food-101/meta/test.txt": _lines("{two}/100{i}", (6, 7)),
            "food-101/meta/classes.txt": "cat\ndog\n",
            "food-101/meta/labels.txt": "Cat\nDog\n",
            "food-101/meta/train.json": _JSON,
            "food-101/meta/test.json": '{"cat": ["cat/1006"], "dog": ["dog/1007"]}',
            "food-101/license_agreement.txt": "x",
        },
    ),
}

ODD = {
    name: Odd(thread, draw(files, truth, texts), "classes", ANSWERED)
    for name, (thread, files, truth, texts) in ROWS.items()
}
