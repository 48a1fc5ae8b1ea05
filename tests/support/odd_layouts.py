"""Folders as public data sets and tools lay them out, each with its truth; see `odd_sets`.

Most have more than a set: two kinds of masks of each image, files of a second tool, images to predict, colored copies.
"""

import json
import unicodedata
from urllib.parse import quote

import layouts
import numpy as np
from layouts import CLASSES, COUNT, HEIGHT, WIDTH, indices, mask
from mutated_sets import STOPS
from odd_coco import coco
from odd_sets import ANSWERED, BOXES, GITHUB, Odd, change_json, labelme, squares
from PIL import Image
from tool_files import car, names, points, square, write

COLORS = np.array([[0, 0, 0], [128, 64, 128], [0, 0, 142]], np.uint8)
SPLITS = ["train"] * 6 + ["val"] * 2


def picture(file, values):
    file.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.asarray(values, np.uint8)).save(file)


def numbered(form, values=(1, 2)):
    """The truth of `layouts.indices`, with the values of the classes for names."""
    return {
        form.format(i): {str(value): (indices(i) == n).astype(np.uint8) for n, value in enumerate(values, 1)}
        for i in range(COUNT)
    }


def with_values(number, values=(1, 2)):
    return np.array([0, *values], np.uint8)[indices(number)]


def one_class(form, name="mask"):
    return {form.format(i): {name: mask(i, 0)} for i in range(COUNT)}


def classes(form, of=lambda i: CLASSES[i % 2]):
    return {form.format(i): {of(i): None} for i in range(COUNT)}


# --- masks: data sets of streets


def cityscapes(root):
    """Ids, colors, instances and polygons of each image."""
    for i, split in enumerate(SPLITS):
        stem = f"aachen_00000{i}_000019"
        layouts.image(root / f"leftImg8bit/{split}/aachen/{stem}_leftImg8bit.png", i)
        fine = root / f"gtFine/{split}/aachen"
        picture(fine / f"{stem}_gtFine_labelIds.png", with_values(i, (7, 26)))
        picture(fine / f"{stem}_gtFine_instanceIds.png", with_values(i, (7, 29)))
        picture(fine / f"{stem}_gtFine_color.png", COLORS[indices(i)])
        write(fine / f"{stem}_gtFine_polygons.json", {"imgHeight": HEIGHT, "imgWidth": WIDTH, "objects": []})
    return numbered("aachen_00000{}_000019_leftImg8bit.png", (7, 26))


def bdd(root):
    """Masks of ids and of colors, and polygons, in folders of the same splits."""
    for i, split in enumerate(SPLITS):
        layouts.image(root / f"images/10k/{split}/i{i}.jpg", i)
        picture(root / f"labels/sem_seg/masks/{split}/i{i}.png", with_values(i))
        picture(root / f"labels/sem_seg/colormaps/{split}/i{i}.png", COLORS[indices(i)])
    for split in ("train", "val"):
        write(root / f"labels/sem_seg/polygons/sem_seg_{split}.json", [{"name": f"i{i}.jpg"} for i in range(COUNT)])
    return numbered("i{}.jpg")


def kitti(root):
    for i in range(COUNT):
        layouts.image(root / f"training/image_2/00000{i}_10.png", i)
        layouts.image(root / f"testing/image_2/00010{i}_10.png", i + COUNT)
        picture(root / f"training/semantic/00000{i}_10.png", with_values(i, (7, 26)))
        picture(root / f"training/semantic_rgb/00000{i}_10.png", COLORS[indices(i)])
        picture(root / f"training/instance/00000{i}_10.png", with_values(i, (9, 30)))
    return numbered("00000{}_10.png", (7, 26))


def mapillary(root):
    for i in range(COUNT):
        layouts.image(root / f"training/images/i{i}.jpg", i)
        for kind, values in (("labels", (1, 2)), ("instances", (9, 30)), ("panoptic", (4, 5))):
            picture(root / f"training/v1.2/{kind}/i{i}.png", with_values(i, values))
    return numbered("i{}.jpg")


def ade(root):
    for i, split in enumerate(["training"] * 6 + ["validation"] * 2):
        name = f"ADE_{'train' if i < 6 else 'val'}_0000000{i}"
        layouts.image(root / f"images/{split}/{name}.jpg", i)
        picture(root / f"annotations/{split}/{name}.png", with_values(i))
    write(root / "objectInfo150.txt", "Idx\tRatio\tTrain\tVal\tName\n1\t0.1\t1\t1\tcar\n2\t0.1\t1\t1\troad\n")
    write(root / "sceneCategories.txt", "".join(f"ADE_train_0000000{i} street\n" for i in range(6)))
    truth = numbered("{}")
    return {f"ADE_{'train' if i < 6 else 'val'}_0000000{i}.jpg": truth[str(i)] for i in range(COUNT)}


def camvid(root):
    for i, split in enumerate(SPLITS):
        layouts.image(root / f"{split}/000{i}TP.png", i)
        picture(root / f"{split}_labels/000{i}TP_L.png", COLORS[indices(i)])
    write(root / "class_dict.csv", "name,r,g,b\nVoid,0,0,0\ncar,128,64,128\nroad,0,0,142\n")
    truth = numbered("000{}TP.png", CLASSES)
    return truth


def deepglobe(root):
    """Images to predict without masks in `valid` and `test`, a table of paths, and a table of colors."""
    rows = ["image_id,split,sat_image_path,mask_path"]
    for i in range(COUNT):
        layouts.image(root / f"train/{100 + i}_sat.jpg", i)
        picture(root / f"train/{100 + i}_mask.png", COLORS[indices(i)])
        layouts.image(root / f"valid/{300 + i}_sat.jpg", 20 + i)
        rows += [
            f"{100 + i},train,train/{100 + i}_sat.jpg,train/{100 + i}_mask.png",
            f"{300 + i},valid,valid/{300 + i}_sat.jpg,",
        ]
    layouts.lines(root / "metadata.csv", *rows)
    layouts.lines(root / "class_dict.csv", "name,r,g,b", "urban_land,128,64,128", "water,0,0,142", "Void,0,0,0")
    truth = numbered("{}", ("urban_land", "water"))
    return {f"{100 + i}_sat.jpg": truth[str(i)] for i in range(COUNT)}


def massachusetts(root):
    """The same set as PNG and as TIFF."""
    for i, split in enumerate(SPLITS):
        for kind, ending in (("png", "png"), ("tiff", "tif")):
            layouts.image(root / f"{kind}/{split}/{10 + i}_15.{ending}", i)
            picture(root / f"{kind}/{split}_labels/{10 + i}_15.{ending}", 255 * mask(i, 0))
    layouts.lines(root / "label_class_dict.csv", "name,r,g,b", "background,0,0,0", "building,255,255,255")
    return {f"{10 + i}_15.png": {"building": mask(i, 0)} for i in range(COUNT)}


# --- masks: medical


def drive(root):
    """Masks of vessels, and masks of the field of view."""
    disc = np.zeros((HEIGHT, WIDTH), np.uint8)
    disc[2:-2, 3:-3] = 255
    for i in range(COUNT):
        layouts.image(root / f"training/images/{21 + i}_training.tif", i)
        picture(root / f"training/1st_manual/{21 + i}_manual1.gif", 255 * mask(i, 0))
        picture(root / f"training/mask/{21 + i}_training_mask.gif", disc)
        layouts.image(root / f"test/images/0{1 + i}_test.tif", 20 + i)
        picture(root / f"test/mask/0{1 + i}_test_mask.gif", disc)
    return {f"{21 + i}_training.tif": {"mask": mask(i, 0)} for i in range(COUNT)}


def isic(root):
    """Superpixels next to the images."""
    for i in range(COUNT):
        layouts.image(root / f"ISIC-2017_Training_Data/ISIC_000000{i}.jpg", i)
        picture(
            root / f"ISIC-2017_Training_Data/ISIC_000000{i}_superpixels.png",
            np.arange(HEIGHT * WIDTH).reshape(HEIGHT, WIDTH) % 251,
        )
        picture(root / f"ISIC-2017_Training_Part1_GroundTruth/ISIC_000000{i}_segmentation.png", 255 * mask(i, 0))
    layouts.lines(
        root / "ISIC-2017_Training_Part3_GroundTruth.csv",
        "image_id,melanoma,seborrheic_keratosis",
        *(f"ISIC_000000{i},{i % 2}.0,0.0" for i in range(COUNT)),
    )
    return {f"ISIC_000000{i}.jpg": {"mask": mask(i, 0)} for i in range(COUNT)}


def isic_plain(root):
    for i in range(COUNT):
        layouts.image(root / f"ISIC2018_Task1-2_Training_Input/ISIC_000000{i}.jpg", i)
        picture(root / f"ISIC2018_Task1_Training_GroundTruth/ISIC_000000{i}_segmentation.png", 255 * mask(i, 0))
    for folder in ("ISIC2018_Task1-2_Training_Input", "ISIC2018_Task1_Training_GroundTruth"):
        write(root / folder / "ATTRIBUTION.txt", "by Ann\n")
        write(root / folder / "LICENSE.txt", "CC-0\n")
    return {f"ISIC_000000{i}.jpg": {"mask": mask(i, 0)} for i in range(COUNT)}


def clinic(root):
    """TIFF and PNG of both, and a table of paths."""
    rows = ["sequence_id,frame_id,tif_image_path,tif_mask_path,png_image_path,png_mask_path"]
    for i in range(COUNT):
        for kind, ending in (("TIF", "tif"), ("PNG", "png")):
            layouts.image(root / f"{kind}/Original/{i + 1}.{ending}", i)
            picture(root / f"{kind}/Ground Truth/{i + 1}.{ending}", 255 * mask(i, 0))
        paths = [
            f"{kind}/{what}/{i + 1}.{kind.lower()}" for kind in ("TIF", "PNG") for what in ("Original", "Ground Truth")
        ]
        rows.append(f"1,{i + 1},{','.join(paths)}")
    layouts.lines(root / "metadata.csv", *rows)
    return {f"{i + 1}.png": {"mask": mask(i, 0)} for i in range(COUNT)}


def clinic_tif(root):
    for i in range(COUNT):
        layouts.image(root / f"Original/{i + 1}.tif", i)
        picture(root / f"Ground Truth/{i + 1}.tif", 255 * mask(i, 0))
    return {f"{i + 1}.tif": {"mask": mask(i, 0)} for i in range(COUNT)}


def busi(root):
    """Blanks and brackets in names, second masks with a number, a folder for each diagnosis."""
    truth = {}
    for i in range(COUNT):
        folder = ("benign", "normal")[i % 2]
        stem = f"{folder} ({i + 1})"
        layouts.image(root / f"{folder}/{stem}.png", i)
        first = mask(i, 0) if folder == "benign" else np.zeros((HEIGHT, WIDTH), np.uint8)
        picture(root / f"{folder}/{stem}_mask.png", 255 * first)
        drawn = first
        if i == 4:
            picture(root / f"{folder}/{stem}_mask_1.png", 255 * mask(i, 1))
            drawn = first | mask(i, 1)
        truth[f"{stem}.png"] = {"mask": drawn} if drawn.any() else {}
    return truth


def lgg(root):
    """A folder for each patient, with images and masks as TIFF; a table of patients."""
    for i in range(COUNT):
        patient = f"TCGA_CS_494{i // 4}_19960909"
        layouts.image(root / f"kaggle_3m/{patient}/{patient}_{i}.tif", i)
        picture(root / f"kaggle_3m/{patient}/{patient}_{i}_mask.tif", 255 * mask(i, 0))
    layouts.lines(root / "kaggle_3m/data.csv", "Patient,RNASeqCluster,death01", "TCGA_CS_4940,2,1", "TCGA_CS_4941,1,0")
    write(root / "kaggle_3m/README.md", "LGG")
    return {f"TCGA_CS_494{i // 4}_19960909_{i}.tif": {"mask": mask(i, 0)} for i in range(COUNT)}


def shenzhen(root):
    """A reading for each image as text; images are PNG, as masks are, and one has none."""
    for i in range(COUNT):
        layouts.image(root / f"CXR_png/CHNCXR_000{i}_{i % 2}.png", i)
        write(root / f"ClinicalReadings/CHNCXR_000{i}_{i % 2}.txt", "male 45yrs\nnormal\n")
        picture(root / f"mask/CHNCXR_000{i}_{i % 2}_mask.png", 255 * mask(i, 0))
    return {f"CHNCXR_000{i}_{i % 2}.png": {"mask": mask(i, 0)} for i in range(COUNT)}


def kvasir(root):
    """Masks as JPEG, and boxes by name."""
    names(root)
    truth = {}
    for i in range(COUNT):
        picture(root / f"masks/i{i}.jpg", 255 * mask(i, 0))
        with Image.open(root / f"masks/i{i}.jpg") as image:
            truth[f"i{i}.jpg"] = {"mask": (np.asarray(image) >= 128).astype(np.uint8)}
    write(root / "kavsir_bboxes.json", {f"i{i}": {"height": HEIGHT, "width": WIDTH, "bbox": []} for i in range(COUNT)})
    return truth


# --- masks: names


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


# --- classes


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


# --- tools


def roboflow_coco(root):
    """`_annotations.coco.json` in each split, with the supercategory as category 0."""
    for split, numbers in (("train", range(6)), ("valid", range(6, COUNT))):
        rows = []
        for i in numbers:
            layouts.image(root / f"{split}/i{i}_jpg.rf.0a{i}.jpg", i)
            for category, edges in ((1, car(i)), (2, square(i))):
                left, top, right, bottom = edges
                flat = [side for point in points(edges) for side in point]
                rows.append(
                    {"id": len(rows), "image_id": i, "category_id": category, "iscrowd": 0, "segmentation": [flat]}
                )
                rows[-1] |= {"bbox": [left, top, right - left, bottom - top], "area": (right - left) * (bottom - top)}
        images = [{"id": i, "file_name": f"i{i}_jpg.rf.0a{i}.jpg", "height": HEIGHT, "width": WIDTH} for i in numbers]
        categories = [
            {"id": 0, "name": "things", "supercategory": "none"},
            {"id": 1, "name": "car", "supercategory": "things"},
            {"id": 2, "name": "road", "supercategory": "things"},
        ]
        write(
            root / f"{split}/_annotations.coco.json", {"images": images, "annotations": rows, "categories": categories}
        )
    return squares([f"i{i}_jpg.rf.0a{i}.jpg" for i in range(COUNT)])


def roboflow_boxes(root):
    """`_annotations.csv` in each split."""
    for split, numbers in (("train", range(6)), ("valid", range(6, COUNT))):
        rows = []
        for i in numbers:
            layouts.image(root / f"{split}/i{i}_jpg.rf.0a{i}.jpg", i)
            for name, edges in (("car", car(i)), ("road", square(i))):
                rows.append(f"i{i}_jpg.rf.0a{i}.jpg,{WIDTH},{HEIGHT},{name},{','.join(map(str, edges))}")
        layouts.lines(root / f"{split}/_annotations.csv", "filename,width,height,class,xmin,ymin,xmax,ymax", *rows)
    return squares([f"i{i}_jpg.rf.0a{i}.jpg" for i in range(COUNT)])


def coco_folders(root, form="{split}2017/{name}"):
    """`file_name` with the folder of its split; captions and points beside the objects."""
    coco(root)
    whole = json.loads((root / "instances.json").read_text())
    (root / "instances.json").unlink()
    for split, numbers in (("train", range(6)), ("val", range(6, COUNT))):
        (root / f"images/{split}2017").mkdir()
        for i in numbers:
            (root / f"images/i{i}.jpg").rename(root / f"images/{split}2017/i{i}.jpg")
        part = {
            **whole,
            "images": [
                {**one, "file_name": form.format(split=split, name=one["file_name"])}
                for one in whole["images"]
                if one["id"] in numbers
            ],
        }
        part["annotations"] = [one for one in whole["annotations"] if one["image_id"] in numbers]
        write(root / f"annotations/instances_{split}2017.json", part)
        captions = [{"id": i, "image_id": i, "caption": "A picture."} for i in numbers]
        write(root / f"annotations/captions_{split}2017.json", {"images": part["images"], "annotations": captions})
    return squares([f"i{i}.jpg" for i in range(COUNT)])


def coco_encoded(root):
    """`file_name` as a URL has it: %20 for a blank."""
    coco(root)
    for i in range(COUNT):
        (root / f"images/i{i}.jpg").rename(root / f"images/my photo é{i}.jpg")
    change_json(
        root / "instances.json",
        lambda d: {**d, "images": [{**one, "file_name": quote(f"my photo é{one['id']}.jpg")} for one in d["images"]]},
    )
    return squares([f"my photo é{i}.jpg" for i in range(COUNT)])


def studio_local(root):
    """Label Studio's local files: `?d=` and %2F."""
    from tool_files import label_studio

    truth = label_studio(root)

    def change(tasks):
        for task in tasks:
            name = (
                task["data"]["image"].rpartition("/")[2].partition("-")[2] or task["data"]["image"].rpartition("/")[2]
            )
            task["data"]["image"] = f"/data/local-files/?d=my%20set%2Fimages%2F{quote(name)}"

    change_json(root / "project-3.json", change)
    return truth


def studio_csv(root):
    """Label Studio's CSV of classes."""
    names(root)
    rows = [
        f"/data/upload/1/0a1b2c{i}d-i{i}.jpg,{i},{CLASSES[i % 2]},1,{i},2023-01-01T00:00:00Z,2023-01-01T00:00:00Z,3.2"
        for i in range(COUNT)
    ]
    layouts.lines(
        root / "project-1-at-2023.csv", "image,id,choice,annotator,annotation_id,created_at,updated_at,lead_time", *rows
    )
    return classes("i{}.jpg")


def via_csv(root):
    """VIA's CSV."""
    names(root)
    rows = []
    for i in range(COUNT):
        for k, (name, edges) in enumerate((("car", car(i)), ("road", square(i)))):
            xs, ys = zip(*points(edges), strict=True)
            shape = json.dumps({"name": "polygon", "all_points_x": xs, "all_points_y": ys}).replace('"', '""')
            what = json.dumps({"label": name}).replace('"', '""')
            rows.append(f'i{i}.jpg,{(root / f"images/i{i}.jpg").stat().st_size},"{{}}",2,{k},"{shape}","{what}"')
    layouts.lines(
        root / "via_export.csv",
        "filename,file_size,file_attributes,region_count,region_id,region_shape_attributes,region_attributes",
        *rows,
    )
    return squares([f"i{i}.jpg" for i in range(COUNT)])


def make_sense(root):
    """makesense.ai: a CSV of boxes without a header."""
    names(root)
    rows = []
    for i in range(COUNT):
        for name, (left, top, right, bottom) in (("car", car(i)), ("road", square(i))):
            rows.append(f"{name},{left},{top},{right - left},{bottom - top},i{i}.jpg,{WIDTH},{HEIGHT}")
    layouts.lines(root / "labels_my-project_2023.csv", *rows)
    return squares([f"i{i}.jpg" for i in range(COUNT)])


def create_ml(root):
    """CreateML: boxes by their middle."""
    names(root)
    document = []
    for i in range(COUNT):
        things = []
        for name, (left, top, right, bottom) in (("car", car(i)), ("road", square(i))):
            middle = {"x": (left + right) / 2, "y": (top + bottom) / 2, "width": right - left, "height": bottom - top}
            things.append({"label": name, "coordinates": middle})
        document.append({"image": f"i{i}.jpg", "annotations": things})
    write(root / "_annotations.createml.json", document)
    return {}


def cvat_subsets(root):
    """CVAT for images of two subsets, with the folder in each name."""
    lines = []
    for i, split in enumerate(SPLITS):
        layouts.image(root / f"images/{split}/i{i}.jpg", i)
        shapes = "".join(
            f'<polygon label="{name}" points="{";".join(f"{x}.0,{y}.0" for x, y in points(edges))}" z_order="0"/>'
            for name, edges in (("car", car(i)), ("road", square(i)))
        )
        stated = f'name="{split}/i{i}.jpg" subset="{split}" width="{WIDTH}" height="{HEIGHT}"'
        lines.append(f'<image id="{i}" {stated}>{shapes}</image>')
    write(root / "annotations.xml", f"<annotations><version>1.1</version><meta></meta>{''.join(lines)}</annotations>")
    return squares([f"i{i}.jpg" for i in range(COUNT)])


def labelme_nfd(root):
    """LabelMe on macOS: files in NFD, imagePath in NFC."""
    labelme(root)
    for i in range(COUNT):
        for ending in ("jpg", "json"):
            (root / f"i{i}.{ending}").rename(root / unicodedata.normalize("NFD", f"Übung {i}.{ending}"))
        change_json(
            root / unicodedata.normalize("NFD", f"Übung {i}.json"), lambda d, n=i: {**d, "imagePath": f"Übung {n}.jpg"}
        )
    return squares([f"Übung {i}.jpg" for i in range(COUNT)])


def labelme_nfd_inside(root):
    """The other way around: files in NFC, imagePath in NFD, in folders of their own."""
    for i in range(COUNT):
        layouts.image(root / f"fotos/Übung {i}.jpg", i)
        shapes = [
            {
                "label": name,
                "points": [list(p) for p in points(edges)],
                "shape_type": "polygon",
                "group_id": None,
                "flags": {},
            }
            for name, edges in (("car", car(i)), ("road", square(i)))
        ]
        path = unicodedata.normalize("NFD", f"../fotos/Übung {i}.jpg")
        document = {"version": "5.5.0", "flags": {}, "shapes": shapes, "imagePath": path, "imageData": None}
        write(root / f"json/Übung {i}.json", {**document, "imageHeight": HEIGHT, "imageWidth": WIDTH})
    return squares([f"Übung {i}.jpg" for i in range(COUNT)])


def labelme_case(root):
    """Cameras write .JPG, the tool .jpg in imagePath, on a Windows machine."""
    labelme(root, image_path="I{}.jpg")
    for i in range(COUNT):
        (root / f"i{i}.jpg").rename(root / f"I{i}.JPG")
        (root / f"i{i}.json").rename(root / f"I{i}.json")
    return squares([f"I{i}.JPG" for i in range(COUNT)])


def supervisely_upper(root):
    """`IMG.JPG` and `IMG.JPG.json`."""
    from tool_files import supervisely

    truth = supervisely(root)
    for file in sorted(root.rglob("*i[0-9].jpg*")):
        file.rename(file.with_name(file.name.replace(".jpg", ".JPG")))
    return {key.replace(".jpg", ".JPG"): value for key, value in truth.items()}


def supervisely_upper_images(root):
    """`IMG.JPG` and `IMG.jpg.json`."""
    from tool_files import supervisely

    truth = supervisely(root)
    for file in sorted(root.rglob("*i[0-9].jpg")):
        file.rename(file.with_name(file.name.replace(".jpg", ".JPG")))
    return {key.replace(".jpg", ".JPG"): value for key, value in truth.items()}


def voc_upper(root):
    """VOC boxes with file names in another case of the ending, and `./`."""
    from tool_files import voc_boxes

    truth = voc_boxes(root)
    for i in range(COUNT):
        (root / f"images/i{i}.jpg").rename(root / f"images/i{i}.JPEG")
        file = root / f"Annotations/i{i}.xml"
        file.write_text(file.read_text().replace("<annotation>", f"<annotation><filename>./i{i}.jpeg</filename>", 1))
    return {key.replace(".jpg", ".JPEG"): value for key, value in truth.items()}


_K = "https://www.kaggle.com/datasets/"
_RF = f"{GITHUB}roboflow/"
_HF = "https://huggingface.co/docs/datasets/image_dataset"
_SMP = f"{GITHUB}qubvel-org/segmentation_models.pytorch/issues/1"
_MM = f"{GITHUB}open-mmlab/mmsegmentation/issues/1"
ODD = {
    "Cityscapes": Odd("https://www.cityscapes-dataset.com", cityscapes),
    "BDD100K": Odd("https://doc.bdd100k.com/format.html", bdd, "masks", ANSWERED),
    "KITTI": Odd("https://www.cvlibs.net/datasets/kitti/eval_semseg.php", kitti, "masks", ANSWERED),
    "Mapillary": Odd("https://www.mapillary.com/dataset/vistas", mapillary, "masks", ANSWERED),
    "ADE20K": Odd("http://sceneparsing.csail.mit.edu", ade, "masks", ANSWERED),
    "CamVid": Odd(f"{_K}carlolepelaars/camvid", camvid, "masks", ANSWERED),
    "DeepGlobe": Odd(f"{_K}balraj98/deepglobe-land-cover-classification-dataset", deepglobe, "masks", ANSWERED),
    "Massachusetts": Odd(f"{_K}balraj98/massachusetts-buildings-dataset", massachusetts, "masks", ANSWERED),
    "DRIVE": Odd(f"{_K}andrewmvd/drive-digital-retinal-images-for-vessel-extraction", drive, "masks", ANSWERED),
    "ISIC 2017": Odd("https://challenge.isic-archive.com/data", isic, "masks", ANSWERED),
    "ISIC 2018": Odd("https://challenge.isic-archive.com/data", isic_plain),
    "CVC-ClinicDB": Odd(f"{_K}balraj98/cvcclinicdb", clinic, "masks", ANSWERED),
    "CVC-ClinicDB alone": Odd("https://polyp.grand-challenge.org/CVCClinicDB", clinic_tif, "masks", ANSWERED),
    "BUSI": Odd(f"{_K}aryashah2k/breast-ultrasound-images-dataset", busi, "masks", ANSWERED),
    "LGG": Odd(f"{_K}mateuszbuda/lgg-mri-segmentation", lgg, "masks", ANSWERED),
    "Shenzhen": Odd(f"{_K}kmader/pulmonary-chest-xray-abnormalities", shenzhen, "masks", ANSWERED),
    "Kvasir": Odd("https://datasets.simula.no/kvasir-seg", kvasir, "masks", ANSWERED),
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
    "Intel": Odd(f"{_K}puneet6060/intel-image-classification", intel, "classes", ANSWERED),
    "Training and Testing": Odd(
        f"{_K}masoudnickparvar/brain-tumor-mri-dataset",
        brain,
        "classes",
        tested=tuple(f"Te-{i}.jpg" for i in range(4, COUNT)),
    ),
    "Food-101": Odd(f"{_K}dansbecker/food-101", food, "classes", tested=("1006.jpg", "1007.jpg")),
    "CUB": Odd("https://www.vision.caltech.edu/datasets/cub_200_2011", birds, "classes", ANSWERED),
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
    "Roboflow COCO": Odd(_RF, roboflow_coco, "masks", ANSWERED),
    "Roboflow boxes": Odd(_RF, roboflow_boxes, "boxes", ANSWERED, BOXES),
    "COCO folders": Odd("https://cocodataset.org", coco_folders, "masks", ANSWERED),
    "COCO of another machine": Odd(
        "https://cocodataset.org", lambda root: coco_folders(root, "/data/coco/{split}2017/{name}"), "masks", ANSWERED
    ),
    "COCO percent": Odd(f"{GITHUB}HumanSignal/label-studio/issues/5014", coco_encoded),
    "Label Studio local files": Odd("https://labelstud.io/guide/storage", studio_local, "masks", ANSWERED),
    "Label Studio CSV": Odd("https://labelstud.io/guide/export", studio_csv, "classes", ANSWERED),
    "VIA CSV": Odd("https://www.robots.ox.ac.uk/~vgg/software/via", via_csv, "masks", ANSWERED | STOPS, cause="VIA"),
    "makesense": Odd("https://www.makesense.ai", make_sense, "boxes", ANSWERED | STOPS, BOXES, cause="header"),
    "CreateML": Odd(_RF, create_ml, "boxes", STOPS, BOXES, cause="CreateML"),
    "CVAT subsets": Odd("https://docs.cvat.ai/docs/manual/advanced/formats/format-cvat", cvat_subsets),
    "LabelMe in NFD": Odd(f"{GITHUB}wkentaro/labelme", labelme_nfd),
    "LabelMe in NFD inside": Odd(f"{GITHUB}wkentaro/labelme", labelme_nfd_inside),
    "LabelMe and .JPG": Odd(f"{GITHUB}wkentaro/labelme", labelme_case),
    "Supervisely and .JPG": Odd("https://docs.supervisely.com", supervisely_upper),
    "Supervisely and .JPG images": Odd("https://docs.supervisely.com", supervisely_upper_images),
    "VOC and .JPEG": Odd("http://host.robots.ox.ac.uk/pascal/VOC", voc_upper, "boxes", ANSWERED, BOXES),
}
