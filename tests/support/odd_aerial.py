"""Folders of data sets of satellites and aircraft, each with its truth; see `odd_sets`."""

import layouts
from layouts import CLASSES, COUNT, WIDTH, indices, mask
from mutated_sets import STOPS
from odd_coco import coco
from odd_parts import COLORS, SPLITS, numbered, one_class, picture
from odd_sets import ANSWERED, BOXES, Odd
from tool_files import car, points, write


def dota(root):
    """Corners of turned boxes as text, below two lines on the source."""
    for i, split in enumerate(SPLITS):
        layouts.image(root / f"{split}/images/P000{i}.png", i)
        corners = " ".join(f"{x}.0 {y}.0" for x, y in points(car(i)))
        write(root / f"{split}/labelTxt/P000{i}.txt", f"imagesource:GoogleEarth\ngsd:0.15\n{corners} small-vehicle 0\n")
    return {}


def isaid(root):
    """Masks of classes and of instances as colors, and COCO JSON of the same."""
    truth = coco(root / "x")
    (root / "train").mkdir()
    (root / "x/images").rename(root / "train/images")
    (root / "x/instances.json").rename(root / "train/iSAID_train.json")
    (root / "x").rmdir()
    for i in range(COUNT):
        picture(root / f"train/Semantic_masks/i{i}_instance_color_RGB.png", COLORS[indices(i)])
        picture(root / f"train/Instance_masks/i{i}_instance_id_RGB.png", COLORS[indices(i)])
    return truth


def geojson(root, folder="train_images", file="xView_train.geojson"):
    """xView: boxes of all images in one GeoJSON."""
    rows = []
    for i in range(COUNT):
        layouts.image(root / f"{folder}/{100 + i}.tif", i)
        edges = ",".join(map(str, car(i)))
        about = {"bounds_imcoords": edges, "type_id": 18, "image_id": f"{100 + i}.tif"}
        rows.append({"type": "Feature", "geometry": {"type": "Polygon", "coordinates": []}, "properties": about})
    write(root / file, {"type": "FeatureCollection", "features": rows})
    return {}


def spacenet(root):
    """Tiles, and a GeoJSON in degrees for each."""
    for i in range(COUNT):
        layouts.image(root / f"AOI_2_Vegas_Train/RGB-PanSharpen/RGB-PanSharpen_AOI_2_Vegas_img{i}.tif", i)
        write(
            root / f"AOI_2_Vegas_Train/geojson/buildings/buildings_AOI_2_Vegas_img{i}.geojson",
            {"type": "FeatureCollection", "features": []},
        )
    return {}


def inria(root):
    """`images` and `gt` of what is to be learned; images alone of what is to be predicted."""
    for i in range(COUNT):
        layouts.image(root / f"train/images/austin{i}.tif", i)
        picture(root / f"train/gt/austin{i}.tif", 255 * mask(i, 0))
        layouts.image(root / f"test/images/tyrol{i}.tif", 30 + i)
    return one_class("austin{}.tif")


def xbd(root):
    """xView2: before and after a disaster, with JSON and a mask of each."""
    for i in range(COUNT):
        stem = f"guatemala_{i // 2}_{('pre', 'post')[i % 2]}_disaster"
        layouts.image(root / f"train/images/{stem}.png", i)
        write(root / f"train/labels/{stem}.json", {"features": {"lng_lat": [], "xy": []}, "metadata": {"width": WIDTH}})
        picture(root / f"train/targets/{stem}_target.png", indices(i))
    truth = numbered("{}")
    return {f"guatemala_{i // 2}_{('pre', 'post')[i % 2]}_disaster.png": truth[str(i)] for i in range(COUNT)}


def changes(root):
    """LEVIR-CD: two images of each place, and the mask of what changed."""
    for i, split in enumerate(SPLITS):
        layouts.image(root / f"{split}/A/{split}_{i}.png", i)
        layouts.image(root / f"{split}/B/{split}_{i}.png", 30 + i)
        picture(root / f"{split}/label/{split}_{i}.png", 255 * mask(i, 0))
    return {}


def uc_merced(root):
    for i in range(COUNT):
        layouts.image(root / f"UCMerced_LandUse/Images/{CLASSES[i % 2]}/{CLASSES[i % 2]}0{i}.tif", i)
    write(root / "UCMerced_LandUse/readme.txt", "21 classes\n")
    return {f"{CLASSES[i % 2]}0{i}.tif": {CLASSES[i % 2]: None} for i in range(COUNT)}


def resisc(root):
    """A folder for each class, and lists of bare names as torchgeo has them."""
    for i in range(COUNT):
        layouts.image(root / f"NWPU-RESISC45/{CLASSES[i % 2]}/{CLASSES[i % 2]}_00{i}.jpg", i)
    for split, numbers in (("train", range(4)), ("val", (4, 5)), ("test", (6, 7))):
        write(root / f"resisc45-{split}.txt", "".join(f"{CLASSES[i % 2]}_00{i}.jpg\n" for i in numbers))
    return {f"{CLASSES[i % 2]}_00{i}.jpg": {CLASSES[i % 2]: None} for i in range(COUNT)}


def whu(root):
    """`image` and `label` of each split."""
    for i, split in enumerate(["train"] * 4 + ["val"] * 2 + ["test"] * 2):
        layouts.image(root / f"{split}/image/{i}.tif", i)
        picture(root / f"{split}/label/{i}.tif", 255 * mask(i, 0))
    return one_class("{}.tif")


def floodnet(root):
    """`train-org-img` and `train-label-img`, with a suffix."""
    for i, split in enumerate(["train"] * 4 + ["val"] * 2 + ["test"] * 2):
        layouts.image(root / f"{split}/{split}-org-img/64{i}.jpg", i)
        picture(root / f"{split}/{split}-label-img/64{i}_lab.png", indices(i))
    return numbered("64{}.jpg")


def uavid(root):
    """Frames of several flights, colors of classes."""
    for i in range(COUNT):
        folder = root / f"uavid_{('train', 'val')[i > 5]}/seq{i // 2}"
        layouts.image(folder / f"Images/000{i}00.png", i)
        picture(folder / f"Labels/000{i}00.png", COLORS[indices(i)])
    truth = numbered("{}", ("color_804080", "color_00008e"))
    return {f"000{i}00.png": truth[str(i)] for i in range(COUNT)}


def dior(root):
    """VOC's XML in a folder of its own kind of boxes, lists of stems."""
    from tool_files import voc_boxes

    truth = voc_boxes(root / "x")
    for i in range(COUNT):
        part = root / ("JPEGImages-trainval" if i < 6 else "JPEGImages-test")
        part.mkdir(exist_ok=True)
        (root / f"x/images/i{i}.jpg").rename(part / f"i{i}.jpg")
        (root / "Annotations/Horizontal Bounding Boxes").mkdir(parents=True, exist_ok=True)
        (root / f"x/Annotations/i{i}.xml").rename(root / f"Annotations/Horizontal Bounding Boxes/i{i}.xml")
    for folder in ("images", "Annotations"):
        (root / "x" / folder).rmdir()
    (root / "x").rmdir()
    write(root / "ImageSets/Main/train.txt", "i0\ni1\ni2\ni3\n")
    write(root / "ImageSets/Main/val.txt", "i4\ni5\n")
    write(root / "ImageSets/Main/test.txt", "i6\ni7\n")
    return {key.rpartition("/")[2]: value for key, value in truth.items()}


_K = "https://www.kaggle.com/datasets/"
ODD = {
    "DOTA": Odd("https://captain-whu.github.io/DOTA", dota, "boxes", STOPS, BOXES, cause="labelTxt|DOTA"),
    "iSAID": Odd("https://captain-whu.github.io/iSAID", isaid, "masks", ANSWERED),
    "xView": Odd("http://xviewdataset.org", geojson, "boxes", STOPS, BOXES, cause="geojson"),
    "SpaceNet": Odd("https://spacenet.ai", spacenet, "masks", STOPS, cause="geojson"),
    "Inria": Odd("https://project.inria.fr/aerialimagelabeling", inria, "masks", ANSWERED),
    "xBD": Odd("https://xview2.org", xbd, "masks", ANSWERED),
    "LEVIR-CD": Odd("https://justchenhao.github.io/LEVIR", changes, "masks", STOPS),
    "UC Merced": Odd("http://weegee.vision.ucmerced.edu/datasets/landuse.html", uc_merced, "classes"),
    "RESISC45": Odd("https://github.com/microsoft/torchgeo", resisc, "classes", tested=("car_006.jpg", "road_007.jpg")),
    "WHU": Odd("http://gpcv.whu.edu.cn/data/building_dataset.html", whu, tested=("6.tif", "7.tif")),
    "FloodNet": Odd("https://github.com/BinaLab/FloodNet-Supervised_v1.0", floodnet, tested=("646.jpg", "647.jpg")),
    "UAVid": Odd("https://uavid.nl", uavid, "masks", ANSWERED),
    "DIOR": Odd(
        "http://www.escience.cn/people/JunweiHan/DIOR.html", dior, "boxes", ANSWERED, BOXES, tested=("i6.jpg", "i7.jpg")
    ),
}
