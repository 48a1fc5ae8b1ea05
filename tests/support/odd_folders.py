"""More folders of public data sets: videos, satellites, parts of a set that have no annotations; see `odd_sets`."""

import json

import layouts
import numpy as np
from layouts import CLASSES, COUNT, HEIGHT, WIDTH, indices, mask
from mutated_sets import QUESTION, STOPS
from odd_parts import COLORS, classes, numbered, one_class, picture
from odd_sets import ANSWERED, BOXES, Odd
from PIL import Image
from tool_files import names, voc_boxes, write, yolo

FEW = range(3)


def both(form, values=(1, 2)):
    """The truth of `numbered` for a name that is a function of the number."""
    truth = numbered("{}", values)
    return {form(i): truth[str(i)] for i in range(COUNT)}


# --- masks


def underwater(root):
    """SUIM: colors, and a folder of masks for each class among them."""
    names(root)
    for i in range(COUNT):
        picture(root / f"masks/i{i}.png", COLORS[indices(i)])
        for k, name in enumerate(("HD", "FV")):
            picture(root / f"masks/{name}/i{i}.png", 255 * (indices(i) == k + 1))
    return {}


def davis(root):
    """Frames of several videos with the same names."""
    truth = {}
    for video in ("bear", "dog"):
        for i in range(COUNT // 2):
            number = i + 4 * (video == "dog")
            layouts.image(root / f"JPEGImages/480p/{video}/0000{number}.jpg", number)
            picture(root / f"Annotations/480p/{video}/0000{number}.png", indices(number))
            truth[f"0000{number}.jpg"] = None
    write(root / "ImageSets/2017/train.txt", "bear\n")
    write(root / "ImageSets/2017/val.txt", "dog\n")
    return numbered("0000{}.jpg")


def videos(root):
    for i in range(COUNT):
        layouts.image(root / f"vid{i // 4}/frames/{i % 4:04}.jpg", i)
        picture(root / f"vid{i // 4}/masks/{i % 4:04}.png", 255 * mask(i, 0))
    return {}


def land_cover(root):
    """TIFF tiles and lists of their stems."""
    for i in range(COUNT):
        layouts.image(root / f"images/M-33-{i}.tif", i)
        picture(root / f"masks/M-33-{i}.tif", indices(i))
    write(root / "train.txt", "".join(f"M-33-{i}\n" for i in range(5)))
    write(root / "val.txt", "M-33-5\n")
    write(root / "test.txt", "M-33-6\nM-33-7\n")
    return numbered("M-33-{}.tif")


def love_da(root):
    """Two kinds of places in each split, and a test split without masks."""
    for i in range(COUNT):
        part, place = ("Train", "Val")[i > 5], ("Urban", "Rural")[i % 2]
        layouts.image(root / f"{part}/{place}/images_png/{1300 + i}.png", i)
        picture(root / f"{part}/{place}/masks_png/{1300 + i}.png", 1 + indices(i))
        layouts.image(root / f"Test/{place}/images_png/{4300 + i}.png", 30 + i)
    truth = both(lambda i: f"{1300 + i}.png", (2, 3))
    return {key: {"1": (indices(i) == 0).astype(np.uint8), **truth[key]} for i, key in enumerate(truth)}


def potsdam(root):
    for i in range(COUNT):
        layouts.image(root / f"2_Ortho_RGB/top_potsdam_2_{10 + i}_RGB.tif", i)
        picture(
            root / f"5_Labels_all/top_potsdam_2_{10 + i}_label.tif",
            np.array([[255, 255, 255], [0, 0, 255], [0, 255, 0]])[indices(i)],
        )
    return {}


def agriculture(root):
    """Masks of what is valid next to those of classes."""
    for i in range(COUNT):
        layouts.image(root / f"train/images/rgb/i{i}.jpg", i)
        layouts.image(root / f"train/images/nir/i{i}.jpg", 40 + i)
        picture(root / f"train/masks/i{i}.png", np.full((HEIGHT, WIDTH), 255))
        picture(root / f"train/boundaries/i{i}.png", np.full((HEIGHT, WIDTH), 255))
        for k, name in enumerate(("water", "weed_cluster")):
            picture(root / f"train/labels/{name}/i{i}.png", 255 * mask(i, k))
    return {f"i{i}.jpg": {name: mask(i, k) for k, name in enumerate(("water", "weed_cluster"))} for i in range(COUNT)}


def ph2(root):
    for i in range(COUNT):
        top = root / f"PH2 Dataset images/IMD00{i}"
        layouts.image(top / f"IMD00{i}_Dermoscopic_Image/IMD00{i}.bmp", i)
        picture(top / f"IMD00{i}_lesion/IMD00{i}_lesion.bmp", 255 * mask(i, 0))
        picture(top / f"IMD00{i}_roi/IMD00{i}_R1_Label4.bmp", 255 * mask(i, 1))
    return {f"IMD00{i}.bmp": {"mask": mask(i, 0)} for i in range(COUNT)}


def depth(root):
    """NYU: depth in 16 bits next to images and labels."""
    for i in range(COUNT):
        layouts.image(root / f"rgb/{i}.jpg", i)
        (root / "depth").mkdir(exist_ok=True)
        Image.fromarray((np.arange(HEIGHT * WIDTH).reshape(HEIGHT, WIDTH) * 37 + i).astype(np.uint16)).save(
            root / f"depth/{i}.png"
        )
        picture(root / f"label/{i}.png", indices(i))
    return numbered("{}.jpg")


def voc_few_masks(root):
    """VOC: boxes for all images, masks for some; the lists say for which."""
    truth = {}
    for i in range(COUNT):
        layouts.image(root / f"JPEGImages/i{i}.jpg", i)
        write(root / f"Annotations/i{i}.xml", f"<annotation><filename>i{i}.jpg</filename></annotation>")
        if i in FEW:
            picture(root / f"SegmentationClass/i{i}.png", indices(i))
            truth[f"i{i}.jpg"] = numbered("{}")[str(i)]
    write(root / "ImageSets/Segmentation/train.txt", "i0\ni1\n")
    write(root / "ImageSets/Segmentation/val.txt", "i2\n")
    write(root / "ImageSets/Main/trainval.txt", "".join(f"i{i}\n" for i in range(COUNT)))
    return truth


def voc_years(root):
    """Both are one set."""
    for i in range(COUNT):
        top = root / f"VOCdevkit/VOC20{('07', '12')[i % 2]}"
        layouts.image(top / f"JPEGImages/i{i}.jpg", i)
        for folder in ("SegmentationClass", "SegmentationObject"):
            picture(top / f"{folder}/i{i}.png", indices(i))
    for year in ("07", "12"):
        for split, numbers in (("train", range(6)), ("val", (6, 7))):
            own = [i for i in numbers if ("07", "12")[i % 2] == year]
            write(root / f"VOCdevkit/VOC20{year}/ImageSets/Segmentation/{split}.txt", "".join(f"i{i}\n" for i in own))
    return numbered("i{}.jpg")


def few_masks(root):
    """Masks of some images; nothing says whether the others have no objects."""
    names(root)
    for i in range(5):
        picture(root / f"masks/i{i}.png", 255 * mask(i, 0))
    return {f"i{i}.jpg": {"mask": mask(i, 0)} for i in range(5)}


def augmented(root):
    """Turned copies, of which the table says nothing."""
    keys = names(root)
    for i in range(COUNT):
        layouts.image(root / f"images/i{i}_aug0.jpg", 50 + i)
    layouts.lines(root / "labels.csv", "image,label", *(f"{key},{CLASSES[i % 2]}" for i, key in enumerate(keys)))
    return classes("i{}.jpg")


def resized(root):
    """The same images once more, smaller."""
    keys = names(root)
    for i in range(COUNT):
        layouts.image(root / f"images_small/i{i}.jpg", i, (12, 20))
    layouts.lines(root / "labels.csv", "image,label", *(f"{key},{CLASSES[i % 2]}" for i, key in enumerate(keys)))
    return classes("i{}.jpg")


def masks_and_small(root):
    """Images of the masks' size and the originals."""
    for i in range(COUNT):
        layouts.image(root / f"images/i{i}.jpg", i)
        layouts.image(root / f"images_original/i{i}.jpg", i, (48, 80))
        picture(root / f"masks/i{i}.png", 255 * mask(i, 0))
    return one_class("i{}.jpg")


def faces_parsed(root):
    """CelebAMask: numbers with zeros in the names of masks alone."""
    for i in range(COUNT):
        layouts.image(root / f"CelebA-HQ-img/{i}.jpg", i)
        for k, name in enumerate(("hair", "l_brow")):
            picture(root / f"CelebAMask-HQ-mask-anno/0/0000{i}_{name}.png", 255 * mask(i, k))
    return {f"{i}.jpg": {name: mask(i, k) for k, name in enumerate(("hair", "l_brow"))} for i in range(COUNT)}


def in_one_folder(root):
    """image_1.png, mask_1.png and overlay_1.png."""
    for i in range(COUNT):
        layouts.image(root / f"image_{i}.png", i)
        picture(root / f"mask_{i}.png", 255 * mask(i, 0))
        layouts.image(root / f"overlay_{i}.png", 40 + i)
    return one_class("image_{}.png")


# --- classes


def json_of_names(root):
    names(root)
    write(root / "labels.json", {f"i{i}.jpg": CLASSES[i % 2] for i in range(COUNT)})
    return classes("i{}.jpg")


def json_list(root):
    names(root)
    write(root / "labels.json", [{"image": f"i{i}.jpg", "label": CLASSES[i % 2]} for i in range(COUNT)])
    return classes("i{}.jpg")


def text_of_names(root):
    names(root)
    write(root / "labels.txt", "".join(f"i{i}.jpg {CLASSES[i % 2]}\n" for i in range(COUNT)))
    return classes("i{}.jpg")


def planet(root):
    """Several tags with a blank between them, and the images as JPEG and TIFF."""
    for i in range(COUNT):
        layouts.image(root / f"train-jpg/train_{i}.jpg", i)
        layouts.image(root / f"train-tif-v2/train_{i}.tif", i)
    rows = [f"train_{i},{('car road', 'car', 'road')[i % 3]}" for i in range(COUNT)]
    layouts.lines(root / "train_v2.csv", "image_name,tags", *rows)
    return {f"train_{i}.jpg": dict.fromkeys(("car road", "car", "road")[i % 3].split()) for i in range(COUNT)}


def chest(root):
    """NIH: images in numbered folders, lists of both parts, and a second table of boxes."""
    for i in range(COUNT):
        layouts.image(root / f"images_00{1 + i % 2}/images/0000000{i}_000.png", i)
    rows = [f"0000000{i}_000.png,{('Mass|Nodule', 'No Finding')[i % 2]},0,{i},58,M" for i in range(COUNT)]
    layouts.lines(
        root / "Data_Entry_2017.csv",
        "Image Index,Finding Labels,Follow-up #,Patient ID,Patient Age,Patient Gender",
        *rows,
    )
    layouts.lines(
        root / "BBox_List_2017.csv",
        "Image Index,Finding Label,Bbox [x,y,w,h],,,",
        "00000000_000.png,Mass,2.0,3.0,9.0,9.0,,,",
    )
    write(root / "train_val_list.txt", "".join(f"0000000{i}_000.png\n" for i in range(6)))
    write(root / "test_list.txt", "".join(f"0000000{i}_000.png\n" for i in (6, 7)))
    return {
        f"0000000{i}_000.png": dict.fromkeys(("Mass", "Nodule") if i % 2 == 0 else ("No Finding",))
        for i in range(COUNT)
    }


def moles(root):
    """HAM10000: images in two folders, the pixels of all in a table."""
    for i in range(COUNT):
        layouts.image(root / f"HAM10000_images_part_{1 + i % 2}/ISIC_002{i}.jpg", i)
    rows = [f"HAM_{i},ISIC_002{i},{('bkl', 'nv')[i % 2]},histo,80.0,male,scalp" for i in range(COUNT)]
    layouts.lines(root / "HAM10000_metadata.csv", "lesion_id,image_id,dx,dx_type,age,sex,localization", *rows)
    layouts.lines(
        root / "hmnist_8_8_L.csv",
        ",".join([*(f"pixel000{j}" for j in range(4)), "label"]),
        *("1,2,3,4,0" for _ in range(COUNT)),
    )
    return classes("ISIC_002{}.jpg", lambda i: ("bkl", "nv")[i % 2])


def fruits(root):
    """A third folder, of pictures of several classes."""
    for i in range(COUNT):
        layouts.image(root / f"{('Training', 'Test')[i > 3]}/{CLASSES[i % 2]}/{i}_100.jpg", i)
        layouts.image(root / f"test-multiple_fruits/apple_{i}.jpg", 40 + i)
    return classes("{}_100.jpg")


def tiny(root):
    """Tiny ImageNet: each part has another form."""
    for i in range(COUNT):
        name = f"n0{1 + i % 2}"
        layouts.image(root / f"train/{name}/images/{name}_{i}.JPEG", i)
        write(
            root / f"train/{name}/{name}_boxes.txt",
            "".join(f"{name}_{k}.JPEG\t0\t0\t9\t9\n" for k in range(COUNT) if k % 2 == i % 2),
        )
        layouts.image(root / f"val/images/val_{i}.JPEG", 20 + i)
        layouts.image(root / f"test/images/test_{i}.JPEG", 40 + i)
    write(root / "val/val_annotations.txt", "".join(f"val_{i}.JPEG\tn0{1 + i % 2}\t0\t0\t9\t9\n" for i in range(COUNT)))
    write(root / "wnids.txt", "n01\nn02\n")
    write(root / "words.txt", "n01\tcar\nn02\troad\n")
    return {}


def image_net(root):
    for i in range(COUNT):
        name = f"n0{1 + i % 2}"
        layouts.image(root / f"ILSVRC/Data/CLS-LOC/train/{name}/{name}_{i}.JPEG", i)
        write(root / f"ILSVRC/Annotations/CLS-LOC/train/{name}/{name}_{i}.xml", "<annotation></annotation>")
        layouts.image(root / f"ILSVRC/Data/CLS-LOC/test/ILSVRC2012_test_{i}.JPEG", 40 + i)
    write(root / "LOC_synset_mapping.txt", "n01 car\nn02 road\n")
    return {f"n0{1 + i % 2}_{i}.JPEG": {f"n0{1 + i % 2}": None} for i in range(COUNT)}


def two_label_columns(root):
    """A coarse and a fine class."""
    names(root)
    rows = [f"i{i},{('Apparel', 'Footwear')[i % 2]},{('Topwear', 'Shoes')[i % 2]}{i // 4}" for i in range(COUNT)]
    layouts.lines(root / "styles.csv", "id,masterCategory,subCategory", *rows)
    return {}


def pascal_2007(root):
    """fastai: several classes with a blank between them, in train and test."""
    for i in range(COUNT):
        layouts.image(root / f"{('train', 'test')[i > 5]}/00000{i}.jpg", i)
    rows = [f"00000{i}.jpg,{('car road', 'car')[i % 2]},{i > 3}" for i in range(6)]
    layouts.lines(root / "train.csv", "fname,labels,is_valid", *rows)
    layouts.lines(root / "test.csv", "fname,labels", *(f"00000{i}.jpg,{('car road', 'car')[i % 2]}" for i in (6, 7)))
    return {f"00000{i}.jpg": dict.fromkeys(("car road", "car")[i % 2].split()) for i in range(COUNT)}


def list_of_test(root):
    """Only the images of the test are listed."""
    keys = names(root)
    layouts.lines(root / "labels.csv", "image,label", *(f"{key},{CLASSES[i % 2]}" for i, key in enumerate(keys)))
    write(root / "test_list.txt", "i6.jpg\ni7.jpg\n")
    return classes("i{}.jpg")


def folder_of_test(root):
    """A folder `test` next to one that is called otherwise."""
    for i in range(COUNT):
        layouts.image(root / f"{('photos', 'test')[i > 5]}/i{i}.jpg", i)
    layouts.lines(root / "labels.csv", "image,label", *(f"i{i}.jpg,{CLASSES[i % 2]}" for i in range(COUNT)))
    return classes("i{}.jpg")


def list_of_both(root):
    """NIH: all that is not for the test is in one list."""
    keys = names(root)
    layouts.lines(root / "labels.csv", "image,label", *(f"{key},{CLASSES[i % 2]}" for i, key in enumerate(keys)))
    write(root / "train_val_list.txt", "".join(f"i{i}.jpg\n" for i in range(6)))
    write(root / "test_list.txt", "i6.jpg\ni7.jpg\n")
    return classes("i{}.jpg")


# --- tools


def yolo_lists(root):
    """data.yaml names lists of absolute paths."""
    truth = yolo(root)
    for split, numbers in (("train", range(6)), ("val", range(6, COUNT))):
        write(root / f"{split}.txt", "".join(f"/content/data/images/{split}/i{i}.jpg\n" for i in numbers))
    text = (root / "data.yaml").read_text().replace("images/train", "train.txt").replace("images/val", "val.txt")
    (root / "data.yaml").write_text(text)
    return truth


def coco_twice(root):
    """An old file of annotations next to the newest."""
    from odd_coco import coco

    truth = coco(root)
    old = json.loads((root / "instances.json").read_text())
    old["annotations"] = [{**row, "category_id": 8 - row["category_id"]} for row in old["annotations"]]
    write(root / "instances_backup.json", old)
    return truth


def coco_test_info(root):
    """Names of images to predict, without annotations."""
    from odd_coco import coco

    truth = coco(root)
    whole = json.loads((root / "instances.json").read_text())
    (root / "instances.json").unlink()
    (root / "images").rename(root / "train2017")
    for i in range(COUNT):
        layouts.image(root / f"test2017/t{i}.jpg", 40 + i)
    write(root / "annotations/instances_train2017.json", whole)
    tests = [{"id": 50 + i, "file_name": f"t{i}.jpg", "height": HEIGHT, "width": WIDTH} for i in range(COUNT)]
    write(root / "annotations/image_info_test2017.json", {"images": tests, "categories": whole["categories"]})
    return truth


def voc_two_folders(root):
    """VOC's boxes in train/ and test/, with XML next to each image, as Roboflow writes them."""
    voc_boxes(root / "x")
    for i in range(COUNT):
        part = root / ("train" if i < 6 else "test")
        part.mkdir(exist_ok=True)
        (root / f"x/images/i{i}.jpg").rename(part / f"i{i}.jpg")
        (root / f"x/Annotations/i{i}.xml").rename(part / f"i{i}.xml")
    import shutil

    shutil.rmtree(root / "x")
    return {}


def supervisely_two(root):
    """The same names in two data sets of a project."""
    from tool_files import supervisely

    supervisely(root)
    import shutil

    ds = next(path for path in root.iterdir() if path.is_dir())
    shutil.copytree(ds, root / "ds2")
    for i, file in enumerate(sorted((root / "ds2/img").iterdir())):
        layouts.image(file, 60 + i)
    return {}


def box_txt_beside(root):
    """YOLO boxes in `labels`, and polygons of the same images in `labels_seg`."""
    yolo(root, boxes=True)
    (root / "labels").rename(root / "labels_boxes")
    yolo(root)
    return {}


_K = "https://www.kaggle.com/datasets/"
ODD = {
    "SUIM": Odd("https://irvlab.cs.umn.edu/resources/suim-dataset", underwater, "masks", STOPS),
    "DAVIS": Odd("https://davischallenge.org", davis, "masks", ANSWERED),
    "videos": Odd("https://davischallenge.org", videos),
    "LandCover": Odd("https://landcover.ai.linuxpolska.com", land_cover, tested=("M-33-6.tif", "M-33-7.tif")),
    "LoveDA": Odd("https://github.com/Junjue-Wang/LoveDA", love_da, "masks", ANSWERED),
    "Potsdam": Odd("https://www.isprs.org", potsdam, "masks", STOPS | ANSWERED),
    "Agriculture-Vision": Odd("https://www.agriculture-vision.com", agriculture, "masks", ANSWERED),
    "PH2": Odd("https://www.fc.up.pt/addi/ph2%20database.html", ph2, "masks", ANSWERED | STOPS),
    "depth": Odd("https://cs.nyu.edu/~fergus/datasets/nyu_depth_v2.html", depth, "masks", ANSWERED),
    "VOC with few masks": Odd("http://host.robots.ox.ac.uk/pascal/VOC", voc_few_masks, "masks", ANSWERED),
    "VOC of two years": Odd("http://host.robots.ox.ac.uk/pascal/VOC", voc_years),
    "few masks": Odd(f"{_K}kmader/pulmonary-chest-xray-abnormalities", few_masks, "masks", ANSWERED),
    "augmented": Odd("https://github.com/aleju/imgaug", augmented, "classes", ANSWERED),
    "smaller copies": Odd(_K, resized, "classes", ANSWERED),
    "images of two sizes": Odd(_K, masks_and_small, "masks", ANSWERED),
    "CelebAMask": Odd("https://github.com/switchablenorms/CelebAMask-HQ", faces_parsed, "masks", ANSWERED | STOPS),
    "overlays in one folder": Odd(_K, in_one_folder, "masks", ANSWERED | STOPS),
    "JSON of names": Odd("https://stackoverflow.com", json_of_names, "classes", ANSWERED | STOPS),
    "JSON list": Odd("https://stackoverflow.com", json_list, "classes", ANSWERED | STOPS),
    "text of names": Odd(
        "https://stackoverflow.com", text_of_names, "classes", STOPS, cause="labels.txt: names images"
    ),
    "Planet": Odd(f"{_K}nikitarom/planets-dataset", planet, "classes", ANSWERED),
    "NIH": Odd(f"{_K}nih-chest-xrays/data", chest, "classes", ANSWERED),
    "HAM10000": Odd(f"{_K}kmader/skin-cancer-mnist-ham10000", moles, "classes", ANSWERED),
    "Fruits": Odd(f"{_K}moltean/fruits", fruits, "classes", ANSWERED),
    "Tiny ImageNet": Odd("http://cs231n.stanford.edu/tiny-imagenet-200.zip", tiny, "classes", STOPS),
    "ImageNet": Odd(
        "https://www.kaggle.com/c/imagenet-object-localization-challenge", image_net, "classes", STOPS | ANSWERED
    ),
    "two columns of classes": Odd(
        f"{_K}paramaggarwal/fashion-product-images-small", two_label_columns, "classes", STOPS
    ),
    "several classes with blanks": Odd("https://docs.fast.ai/tutorial.vision.html", pascal_2007, "classes", ANSWERED),
    "a list of the test": Odd(_K, list_of_test, "classes", frozenset((QUESTION,))),
    "a list of train and val": Odd(f"{_K}nih-chest-xrays/data", list_of_both, "classes", tested=("i6.jpg", "i7.jpg")),
    "a folder of the test": Odd(_K, folder_of_test, "classes", frozenset((QUESTION,))),
    "YOLO lists": Odd("https://docs.ultralytics.com/datasets", yolo_lists),
    "COCO of before": Odd("https://cocodataset.org", coco_twice, "masks", ANSWERED),
    "COCO with test": Odd("https://cocodataset.org", coco_test_info, "masks", ANSWERED),
    "VOC in two folders": Odd("https://roboflow.com/formats/pascal-voc-xml", voc_two_folders, "boxes", ANSWERED, BOXES),
    "Supervisely twice": Odd("https://docs.supervisely.com", supervisely_two),
    "YOLO boxes and segments": Odd("https://docs.ultralytics.com/datasets", box_txt_beside, "masks", STOPS | ANSWERED),
}
