"""Folders of data sets of streets and of land, with several kinds of masks of each image; see `odd_sets`."""

import layouts
from layouts import CLASSES, COUNT, HEIGHT, WIDTH, indices, mask
from odd_parts import COLORS, SPLITS, numbered, picture, with_values
from odd_sets import ANSWERED, Odd
from tool_files import write


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


_K = "https://www.kaggle.com/datasets/"
ODD = {
    "Cityscapes": Odd("https://www.cityscapes-dataset.com", cityscapes),
    "BDD100K": Odd("https://doc.bdd100k.com/format.html", bdd, "masks", ANSWERED),
    "KITTI": Odd("https://www.cvlibs.net/datasets/kitti/eval_semseg.php", kitti, "masks", ANSWERED),
    "Mapillary": Odd("https://www.mapillary.com/dataset/vistas", mapillary, "masks", ANSWERED),
    "ADE20K": Odd("http://sceneparsing.csail.mit.edu", ade, "masks", ANSWERED),
    "CamVid": Odd(f"{_K}carlolepelaars/camvid", camvid, "masks", ANSWERED),
    "DeepGlobe": Odd(f"{_K}balraj98/deepglobe-land-cover-classification-dataset", deepglobe, "masks", ANSWERED),
    "Massachusetts": Odd(f"{_K}balraj98/massachusetts-buildings-dataset", massachusetts, "masks", ANSWERED),
}
