"""Public sets of images and masks, as the paths of their archives: a row each; see `odd_sets`."""

from collections.abc import Callable, Mapping
from typing import Any

import layouts
import numpy as np
from layouts import COUNT, HEIGHT, WIDTH, indices, mask
from mutated_sets import STOPS
from odd_parts import COLORS, numbered, picture
from odd_sets import ANSWERED, Odd
from tool_files import write

PHOTO, OTHER = "a photograph of the set", "another photograph"
# Where there is no truth: what the message must name.
CAUSES = {
    "clothing as JPEG": "compressed with loss",
    "MoNuSeg": r"\.xml",
    "KITTI road": "2 values",
    "CoNSeP": r"\.mat",
    "IDD": "Cityscapes' polygons",
    "CrackForest": r"\.mat",
    "CCP": r"\.mat",
}
_GRADIENT = (np.linspace(0, 255, WIDTH) * np.ones((HEIGHT, 1))).astype(np.uint8)


def binary(label: int = 0) -> Callable[[int], np.ndarray]:
    return lambda i: 255 * mask(i, label)


def colors(i: int) -> np.ndarray:
    return COLORS[indices(i)]


def instances(i: int) -> np.ndarray:
    return np.array([0, 11, 47], np.uint8)[indices(i)]


def depth(i: int) -> np.ndarray:
    return np.roll(_GRADIENT, i, axis=1)


def fields(i: int) -> dict[str, Any]:
    """What the paths of a row are made of, of the image `i`."""
    parts = {"i": i, "n": i + 1, "h": i // 4, "q": i // 2, "abc": "abcdefgh"[i]}
    for name, words in (
        ("val", ("train", "val")),
        ("test", ("train", "test")),
        ("Test", ("Train", "Test")),
        ("TEST", ("TRAIN", "TEST")),
        ("testing", ("training", "testing")),
    ):
        parts[name] = words[i > 5]
    return parts | {
        "glas": ("train", "testA")[i > 5],
        "k": i % 2,
        "n_k": 1 + i % 2,
        "not_k": 1 - i % 2,
        "two": ("cat", "dog")[i % 2],
        "TWO": ("CAT", "DOG")[i % 2],
        "c": "cd"[i % 2],
        "Breed": ("Auk", "Crow_Bird")[i % 2],
        "plural": ("cat", "dog")[i % 2] + "s" * (i < 6),
        "capital": (("cat", "dog") if i < 6 else ("Cat", "Dog"))[i % 2],
        "blank": (("wild cat", "big dog") if i < 6 else ("wild_cat", "big_dog"))[i % 2],
        "spaced": ("wild cat", "big dog")[i % 2],
        "sun": ("cat", ("door/indoor", "door/outdoor")[i // 4])[i % 2],
        "birds": ("train", "train", "train", "train", "valid", "valid", "test", "test")[i],
        "validation": ("train", "validation")[i > 5],
        "sex": ("Men", "Women")[i // 4],
        "sub": (("adenosis", "fibroadenoma"), ("ductal", "lobular"))[i % 2][i // 4],
        "side": ("left", "right")[i % 2],
        "Alphabet": ("Greek", "Latin")[i // 4],
        "trained": int(i < 6),
        "idrid": ("a. Training", "b. Testing")[i > 5],
        "pranet": ("CVC-300", "Kvasir")[i // 4],
        "lidc": i % 2,
        "loveda": ("Train", "Val")[i > 5],
        "oem": ("aachen", "zanzibar")[i // 4],
        "fss": ("abacus", "acorn")[i // 4],
        "duts": ("TR", "TE")[i > 5],
        "covid": ("COVID", "Normal")[i // 4],
    }


def draw(
    files: Mapping[str, Any], truth: Callable[[], Mapping[str, Any]] | None, texts: Mapping[str, Any] | None = None
) -> Callable:
    """Returns what draws a set: a path for each image -> what it shows, and further files."""

    def into(root):
        for number, (path, what) in enumerate(files.items()):
            for i in range(COUNT):
                file = root / path.format(**fields(i))
                if what in (PHOTO, OTHER):
                    layouts.image(file, i + 40 * number)
                else:
                    picture(file, what(i))
        for path, text in (texts or {}).items():
            for i in range(COUNT if "{" in path else 1):
                file = root / path.format(**fields(i))
                row = text if isinstance(text, str) else "".join(text(k) for k in range(COUNT))
                file.parent.mkdir(parents=True, exist_ok=True)
                write(file, row)
        return truth(files) if truth else {}

    return into


def _named(names):
    """The truth: of each photograph, the masks with these names."""

    def of(files):
        form = next(path for path, what in files.items() if what is PHOTO).rpartition("/")[2]
        return {form.format(**fields(i)): {name: mask(i, k) for k, name in enumerate(names)} for i in range(COUNT)}

    return of


def _numbers(values=(1, 2)):
    """The truth: of each photograph, `indices` with these names."""

    def of(files):
        form = next(path for path, what in files.items() if what is PHOTO).rpartition("/")[2]
        drawn = numbered("{}", values)
        return {form.format(**fields(i)): drawn[str(i)] for i in range(COUNT)}

    return of


ONE = _named(("mask",))
COLORED = _numbers(("color_804080", "color_00008e"))
_K, _G = "https://www.kaggle.com/datasets/", "https://github.com/"
_TITLES = (
    '{"classes": ['
    + ", ".join(
        f'{{"title": "{name}", "shape": "polygon", "color": "{color}"}}'
        for name, color in (("Water", "#804080"), ("Road", "#00008e"), ("Unlabeled", "#000000"))
    )
    + '], "tags": []}'
)
ROWS = {
    "CVPPP of 2017": (
        "https://www.plant-phenotyping.org",
        {
            "A1/plant{n:03}_rgb.png": PHOTO,
            "A1/plant{n:03}_label.png": instances,
            "A1/plant{n:03}_fg.png": binary(),
            "A1/plant{n:03}_centers.png": lambda i: np.zeros((HEIGHT, WIDTH)),
        },
        _numbers((11, 47)),
        {"A1.csv": lambda i: f"plant{i + 1:03}_rgb.png, {5 + i}\n"},
    ),
    "HyperKvasir's masks": (
        "https://datasets.simula.no/hyper-kvasir",
        {"segmented-images/images/a0{i}.jpg": PHOTO, "segmented-images/masks/a0{i}.jpg": binary()},
        ONE,
        {
            "segmented-images/bounding-boxes.json": "{"
            + ", ".join(f'"a0{i}": {{"height": 24, "width": 40, "bbox": []}}' for i in range(COUNT))
            + "}"
        },
    ),
    "GlaS": (
        "https://warwick.ac.uk/fac/cross_fac/tia/data/glascontest",
        {
            "Warwick QU Dataset (Released 2016_07_08)/{glas}_{n}.bmp": PHOTO,
            "Warwick QU Dataset (Released 2016_07_08)/{glas}_{n}_anno.bmp": indices,
        },
        _numbers(),
        {
            "Warwick QU Dataset (Released 2016_07_08)/Grade.csv": lambda i: (
                ("name, patient ID, grade (GlaS), grade (Sirinukunwattana et al. 2015)\n" if i == 0 else "")
                + f"{fields(i)['glas']}_{i + 1}, {i // 2}, {('benign', 'malignant')[i % 2]}, adenomatous\n"
            )
        },
    ),
    "IDRiD": (
        "https://idrid.grand-challenge.org/Data",
        {
            "A. Segmentation/1. Original Images/{idrid} Set/IDRiD_{n:02}.jpg": PHOTO,
            "A. Segmentation/2. Groundtruths/{idrid} Set/1. Microaneurysms/IDRiD_{n:02}_MA.tif": binary(),
            "A. Segmentation/2. Groundtruths/{idrid} Set/2. Haemorrhages/IDRiD_{n:02}_HE.tif": binary(1),
        },
        _named(("1. Microaneurysms", "2. Haemorrhages")),
        {"A. Segmentation/CC-BY-4.0.txt": "CC", "A. Segmentation/LICENSE.txt": "CC"},
    ),
    "clothing": (
        f"{_K}rajkumarl/people-clothing-segmentation",
        {"png_images/IMAGES/img_{n:04}.png": PHOTO, "png_masks/MASKS/seg_{n:04}.png": indices},
        _numbers(),
        {"labels.csv": ",label_list\n0,\n1,shirt\n2,shoes\n"},
    ),
    "clothing as JPEG": (
        f"{_K}rajkumarl/people-clothing-segmentation",
        {"jpeg_images/IMAGES/img_{n:04}.jpeg": PHOTO, "jpeg_masks/MASKS/seg_{n:04}.jpeg": indices},
        None,
        {"labels.csv": ",label_list\n0,\n1,shirt\n2,shoes\n"},
    ),
    "ISIC 2016": (
        "https://challenge.isic-archive.com/data",
        {
            "ISBI2016_ISIC_Part1_Training_Data/ISIC_{i:07}.jpg": PHOTO,
            "ISBI2016_ISIC_Part1_Training_GroundTruth/ISIC_{i:07}_Segmentation.png": binary(),
            "ISBI2016_ISIC_Part1_Test_Data/ISIC_1{i:07}.jpg": OTHER,
        },
        ONE,
        {},
    ),
    "PolypPVT": (
        f"{_G}DengPingFan/PraNet",
        {"TrainDataset/image/{n}.png": PHOTO, "TrainDataset/mask/{n}.png": binary()},
        ONE,
        {},
    ),
    "PraNet's test": (
        f"{_G}DengPingFan/PraNet",
        {"TestDataset/{pranet}/images/{n}.png": PHOTO, "TestDataset/{pranet}/masks/{n}.png": binary()},
        ONE,
        {},
    ),
    "MoNuSeg": (
        "https://monuseg.grand-challenge.org",
        {"Tissue Images/TCGA-{i}-01.tif": PHOTO},
        None,
        {"Annotations/TCGA-{i}-01.xml": '<Annotations><Annotation Id="1"><Regions/></Annotation></Annotations>'},
    ),
    "LIDC slices": (
        f"{_K}zhangweiled/lidcidri",
        {
            "LIDC-IDRI-slices/LIDC-IDRI-000{q}/nodule-{lidc}/images/slice-{i}.png": PHOTO,
            "LIDC-IDRI-slices/LIDC-IDRI-000{q}/nodule-{lidc}/mask-0/slice-{i}.png": binary(),
            "LIDC-IDRI-slices/LIDC-IDRI-000{q}/nodule-{lidc}/mask-1/slice-{i}.png": binary(1),
        },
        ONE,
        {},
    ),
    "KITTI road": (
        "https://www.cvlibs.net/datasets/kitti/eval_road.php",
        {
            "training/image_2/um_{i:06}.png": PHOTO,
            "training/gt_image_2/um_lane_{i:06}.png": lambda i: np.array([[255, 0, 0], [255, 0, 255]])[mask(i, 1)],
            "training/gt_image_2/um_road_{i:06}.png": lambda i: np.array([[255, 0, 0], [255, 0, 255]])[mask(i, 0)],
            "testing/image_2/um_1{i:05}.png": OTHER,
        },
        None,
        {"training/calib/um_{i:06}.txt": "P0: 1 2 3\n"},
    ),
    "A2D2": (
        "https://www.a2d2.audi",
        {
            "20180807_145028/camera/cam_front_center/20180807145028_camera_frontcenter_00000000{i}.png": PHOTO,
            "20180807_145028/label/cam_front_center/20180807145028_label_frontcenter_00000000{i}.png": colors,
        },
        _named(("Car 1", "Road")),
        {
            "class_list.json": '{"#804080": "Car 1", "#00008e": "Road"}',
            "20180807_145028/camera/cam_front_center/20180807145028_{i}.json": '{"tstamp": 1}',
        },
    ),
    "LoveDA whole": (
        f"{_G}Junjue-Wang/LoveDA",
        {"{loveda}/Rural/images_png/{i}.png": PHOTO, "{loveda}/Rural/masks_png/{i}.png": indices},
        _numbers(),
        {},
    ),
    "Massachusetts roads": (
        f"{_K}balraj98/massachusetts-roads-dataset",
        {"tiff/{val}/{i}_15.tiff": PHOTO, "tiff/{val}_labels/{i}_15.tif": binary()},
        _named(("road",)),
        {
            "label_class_dict.csv": "name,r,g,b\nbackground,0,0,0\nroad,255,255,255\n",
            "metadata.csv": lambda i: (
                ("image_id,split,tiff_image_path,tif_label_path\n" if i == 0 else "")
                + "{i}_15,{val},tiff/{val}/{i}_15.tiff,tiff/{val}_labels/{i}_15.tif\n".format(**fields(i))
            ),
        },
    ),
    "DeepGlobe roads": (
        f"{_K}balraj98/deepglobe-road-extraction-dataset",
        {
            "train/10{i}_sat.jpg": PHOTO,
            "train/10{i}_mask.png": binary(),
            "valid/20{i}_sat.jpg": OTHER,
            "test/30{i}_sat.jpg": OTHER,
        },
        _named(("road",)),
        {
            "class_dict.csv": "name,r,g,b\nroad,255,255,255\nbackground,0,0,0\n",
            "metadata.csv": lambda i: (
                ("image_id,split,sat_image_path,mask_path\n" if i == 0 else "")
                + f"10{i},train,train/10{i}_sat.jpg,train/10{i}_mask.png\n20{i},valid,valid/20{i}_sat.jpg,\n"
            ),
        },
    ),
    "LIP": (
        "https://sysu-hcp.net/lip",
        {
            "TrainVal_images/{val}_images/10{i}_48.jpg": PHOTO,
            "TrainVal_parsing_annotations/{val}_segmentations/10{i}_48.png": indices,
            "Testing_images/testing_images/20{i}.jpg": OTHER,
        },
        _numbers(),
        {
            "TrainVal_images/train_id.txt": "".join(f"10{i}_48\n" for i in range(6)),
            "TrainVal_images/val_id.txt": "106_48\n107_48\n",
        },
    ),
    "ATR": (
        f"{_G}lemondan/HumanParsing-Dataset",
        {
            "humanparsing/JPEGImages/dataset10k_{n}.jpg": PHOTO,
            "humanparsing/SegmentationClassAug/dataset10k_{n}.png": indices,
        },
        _numbers(),
        {},
    ),
    "Supervisely Person": (
        f"{_K}tapakah68/supervisely-filtered-segmentation-person-dataset",
        {
            "person_img/images/ds10_{i}.png": PHOTO,
            "person_img/masks/ds10_{i}.png": binary(),
            "person_img/collage/ds10_{i}.jpg": OTHER,
        },
        ONE,
        {
            "df.csv": lambda i: (
                (",images,masks,collages\n" if i == 0 else "")
                + f"{i},images/ds10_{i}.png,masks/ds10_{i}.png,collage/ds10_{i}.jpg\n"
            )
        },
    ),
    "STARE": (
        "https://cecas.clemson.edu/~ahoover/stare",
        {
            "stare-images/im000{i}.png": PHOTO,
            "labels-ah/im000{i}.ah.png": binary(),
            "labels-vk/im000{i}.vk.png": binary(1),
        },
        ONE,
        {},
    ),
    "CoNSeP": (
        "https://warwick.ac.uk/fac/cross_fac/tia/data/hovernet",
        {"{Test}/Images/{test}_{n}.png": PHOTO, "{Test}/Overlay/{test}_{n}.png": OTHER},
        None,
        {"{Test}/Labels/{test}_{n}.mat": "MATLAB 5.0 MAT-file"},
    ),
    "semantic drone": (
        f"{_K}bulentsiyah/semantic-drone-dataset",
        {
            "dataset/semantic_drone_dataset/original_images/{i:03}.jpg": PHOTO,
            "dataset/semantic_drone_dataset/label_images_semantic/{i:03}.png": indices,
            "RGB_color_image_masks/RGB_color_image_masks/{i:03}.png": colors,
        },
        _numbers(),
        {"class_dict_seg.csv": "name, r, g, b\nunlabeled, 0, 0, 0\npaved-area, 128, 64, 128\ndirt, 0, 0, 142\n"},
    ),
    "Dubai": (
        f"{_K}humansintheloop/semantic-segmentation-of-aerial-imagery",
        {
            "Semantic segmentation dataset/Tile {q}/images/image_part_00{i}.jpg": PHOTO,
            "Semantic segmentation dataset/Tile {q}/masks/image_part_00{i}.png": colors,
        },
        _named(("Water", "Road")),
        {"Semantic segmentation dataset/classes.json": _TITLES},
    ),
    "Vaihingen": (
        "https://www.isprs.org",
        {
            "top/top_mosaic_09cm_area{n}.tif": PHOTO,
            "gts_for_participants/top_mosaic_09cm_area{n}.tif": colors,
            "dsm/dsm_09cm_matching_area{n}.tif": depth,
        },
        COLORED,
        {},
    ),
    "OpenEarthMap": (
        "https://open-earth-map.org",
        {"{oem}/images/{oem}_{n}.tif": PHOTO, "{oem}/labels/{oem}_{n}.tif": indices},
        _numbers(),
        {
            "train.txt": "".join(f"{('aachen', 'zanzibar')[i // 4]}_{i + 1}.tif\n" for i in range(4)),
            "val.txt": "zanzibar_5.tif\nzanzibar_6.tif\n",
            "test.txt": "zanzibar_7.tif\nzanzibar_8.tif\n",
        },
    ),
    "GID": (
        "https://x-ytong.github.io/project/GID.html",
        {"image_RGB/GF2_PMS1__L1A000{i}-MSS1.tif": PHOTO, "label_5classes/GF2_PMS1__L1A000{i}-MSS1_label.tif": colors},
        COLORED,
        {},
    ),
    "GTA5": (
        "https://download.visinf.tu-darmstadt.de/data/from_games",
        {"images/{n:05}.png": PHOTO, "labels/{n:05}.png": indices},
        _numbers(),
        {},
    ),
    "IDD": (
        "https://idd.insaan.iiit.ac.in",
        {"leftImg8bit/{val}/{h}/50{i}_leftImg8bit.png": PHOTO},
        None,
        {"gtFine/{val}/{h}/50{i}_gtFine_polygons.json": '{"imgHeight": 24, "imgWidth": 40, "objects": []}'},
    ),
    "ApolloScape": (
        "https://apolloscape.auto",
        {
            "road01/ColorImage/Record00{h}/Camera 5/17_{i}_Camera_5.jpg": PHOTO,
            "road01/Label/Record00{h}/Camera 5/17_{i}_Camera_5_bin.png": indices,
        },
        _numbers(),
        {},
    ),
    "CULane": (
        "https://xingangpan.github.io/projects/CULane.html",
        {
            "driver_23_30frame/0515.MP4/{i:05}.jpg": PHOTO,
            "laneseg_label_w16/driver_23_30frame/0515.MP4/{i:05}.png": indices,
        },
        _numbers(),
        {
            "driver_23_30frame/0515.MP4/{i:05}.lines.txt": "532.9 590 499.2 579\n",
            "list/train.txt": "".join(f"/driver_23_30frame/0515.MP4/{i:05}.jpg\n" for i in range(6)),
            "list/val.txt": "".join(f"/driver_23_30frame/0515.MP4/{i:05}.jpg\n" for i in (6, 7)),
        },
    ),
    "LaPa": (
        f"{_G}lucia123/lapa-dataset",
        {"{val}/images/{i}_0.jpg": PHOTO, "{val}/labels/{i}_0.png": indices},
        _numbers(),
        {"{val}/landmarks/{i}_0.txt": "2\n1.5 2.5\n3.5 4.5\n"},
    ),
    "COCO-Stuff pixels": (
        f"{_G}nightrome/cocostuff",
        {
            "images/{val}2017/0000{i}.jpg": PHOTO,
            "stuffthingmaps/{val}2017/0000{i}.png": lambda i: np.array([255, 0, 91], np.uint8)[indices(i)],
        },
        _numbers((0, 91)),
        {},
    ),
    "FSS-1000": (
        f"{_G}HKUSTCV/FSS-1000",
        {"fewshot_data/{fss}/{i}.jpg": PHOTO, "fewshot_data/{fss}/{i}.png": binary()},
        ONE,
        {},
    ),
    "ECSSD": (
        "https://www.cse.cuhk.edu.hk/leojia/projects/hsaliency",
        {"images/{n:04}.jpg": PHOTO, "ground_truth_mask/{n:04}.png": binary()},
        ONE,
        {},
    ),
    "DUTS": (
        "http://saliencydetection.net/duts",
        {
            "DUTS-{duts}/DUTS-{duts}-Image/ILSVRC_{i}.jpg": PHOTO,
            "DUTS-{duts}/DUTS-{duts}-Mask/ILSVRC_{i}.png": binary(),
        },
        ONE,
        {},
    ),
    "MSRA10K": (
        "https://mmcheng.net/msra10k",
        {"Imgs/{i}00.jpg": PHOTO, "Imgs/{i}00.png": binary()},
        ONE,
        {"Readme.txt": "hello\n"},
    ),
    "COD10K": (
        f"{_G}DengPingFan/SINet",
        {
            "{Test}/Image/COD10K-{i}.jpg": PHOTO,
            "{Test}/GT_Object/COD10K-{i}.png": binary(),
            "{Test}/GT_Edge/COD10K-{i}.png": binary(1),
            "{Test}/GT_Instance/COD10K-{i}.png": colors,
        },
        ONE,
        {},
    ),
    "CAMO": (f"{_G}DengPingFan/SINet", {"Images/{Test}/camo_{i}.jpg": PHOTO, "GT/camo_{i}.png": binary()}, ONE, {}),
    "DeepCrack": (
        f"{_G}yhlleo/DeepCrack",
        {"{test}_img/1111{i}.jpg": PHOTO, "{test}_lab/1111{i}.png": binary()},
        ONE,
        {},
    ),
    "CrackForest": (
        f"{_G}cuilimeng/CrackForest-dataset",
        {"image/00{i}.jpg": PHOTO},
        None,
        {"groundTruth/00{i}.mat": "MATLAB 5.0 MAT-file"},
    ),
    "MinneApple": (
        f"{_G}nicolaihaeni/MinneApple",
        {
            "detection/train/images/2015_{i}.png": PHOTO,
            "detection/train/masks/2015_{i}.png": instances,
            "detection/test/images/d1_{i}.png": OTHER,
        },
        _numbers((11, 47)),
        {},
    ),
    "water bodies": (
        f"{_K}franciscoescobar/satellite-images-of-water-bodies",
        {
            "Water Bodies Dataset/Images/water_body_{n}.jpg": PHOTO,
            "Water Bodies Dataset/Masks/water_body_{n}.jpg": binary(),
        },
        ONE,
        {},
    ),
    "floods": (
        f"{_K}faizalkarim/flood-area-segmentation",
        {"Image/{i}.jpg": PHOTO, "Mask/{i}.png": binary()},
        ONE,
        {"metadata.csv": lambda i: ("Image,Mask\n" if i == 0 else "") + f"{i}.jpg,{i}.png\n"},
    ),
    "COVID radiography": (
        f"{_K}tawsifurrahman/covid19-radiography-database",
        {
            "COVID-19_Radiography_Dataset/{covid}/images/{covid}-{n}.png": PHOTO,
            "COVID-19_Radiography_Dataset/{covid}/masks/{covid}-{n}.png": binary(),
        },
        ONE,
        {"COVID-19_Radiography_Dataset/README.md.txt": "x", "COVID-19_Radiography_Dataset/Normal.metadata.xlsx": "PK"},
    ),
    "HAM10000 with masks": (
        f"{_K}surajghuwalewala/ham1000-segmentation-and-classification",
        {"images/ISIC_00{i}.jpg": PHOTO, "masks/ISIC_00{i}_segmentation.png": binary()},
        ONE,
        {"GroundTruth.csv": lambda i: ("image,MEL,NV\n" if i == 0 else "") + f"ISIC_00{i},{i % 2}.0,{1 - i % 2}.0\n"},
    ),
    "retina vessels": (
        f"{_K}abdallahwagih/retina-blood-vessel",
        {"Data/{test}/image/{i}.png": PHOTO, "Data/{test}/mask/{i}.png": binary()},
        ONE,
        {},
    ),
    "nerves": (
        "https://www.kaggle.com/c/ultrasound-nerve-segmentation",
        {"train/{q}_{n}.tif": PHOTO, "train/{q}_{n}_mask.tif": binary(), "test/{n}.tif": OTHER},
        ONE,
        {
            "train_masks.csv": lambda i: (
                ("subject,img,pixels\n" if i == 0 else "") + f"{i // 2},{i + 1},{layouts.runs(i, 0)}\n"
            )
        },
    ),
    "HC18": (
        "https://hc18.grand-challenge.org",
        {
            "training_set/00{i}_HC.png": PHOTO,
            "training_set/00{i}_HC_Annotation.png": binary(),
            "test_set/10{i}_HC.png": OTHER,
        },
        ONE,
        {
            "training_set_pixel_size_and_HC.csv": lambda i: (
                ("filename,pixel size(mm),head circumference (mm)\n" if i == 0 else "") + f"00{i}_HC.png,0.06,44.{i}\n"
            )
        },
    ),
    "TNBC": (
        "https://zenodo.org/records/1175282",
        {
            "TNBC_NucleiSegmentation/Slide_0{q}/0{q}_{n}.png": PHOTO,
            "TNBC_NucleiSegmentation/GT_0{q}/0{q}_{n}.png": binary(),
        },
        ONE,
        {},
    ),
    "BBBC039": (
        "https://bbbc.broadinstitute.org/BBBC039",
        {"images/IXMtest_{abc}02.tif": PHOTO, "masks/IXMtest_{abc}02.png": instances},
        _numbers((11, 47)),
        {
            "metadata/training.txt": "".join(f"IXMtest_{x}02.png\n" for x in "abcd"),
            "metadata/validation.txt": "IXMtest_e02.png\nIXMtest_f02.png\n",
            "metadata/test.txt": "IXMtest_g02.png\nIXMtest_h02.png\n",
        },
    ),
    "BBBC005": (
        "https://bbbc.broadinstitute.org/BBBC005",
        {"BBBC005_v1_images/SIMCEP_{abc}.tif": PHOTO, "BBBC005_v1_ground_truth/SIMCEP_{abc}.tif": binary()},
        ONE,
        {},
    ),
    "cell tracking": (
        "http://celltrackingchallenge.net",
        {"01/t00{i}.tif": PHOTO, "01_ST/SEG/man_seg00{i}.tif": instances, "01_GT/TRA/man_track00{i}.tif": indices},
        _numbers((11, 47)),
        {},
    ),
    "Retina of G1020": (
        f"{_K}arnavjain1/glaucoma-datasets",
        {"G1020/Images/image_{i}.jpg": PHOTO, "G1020/Masks/image_{i}.png": indices},
        _numbers(),
        {"G1020/G1020.csv": lambda i: ("imageID,binaryLabels\n" if i == 0 else "") + f"image_{i}.jpg,{i % 2}\n"},
    ),
    "CCP": (
        f"{_G}bearpaw/clothing-co-parsing",
        {"photos/000{n}.jpg": PHOTO},
        None,
        {"annotations/pixel-level/000{n}.mat": "MATLAB 5.0 MAT-file"},
    ),
    "pneumothorax as PNG": (
        f"{_K}vbookshelf/pneumothorax-chest-xray-images-and-masks",
        {
            "siim-acr-pneumothorax/png_images/{i}_{test}_1_.png": PHOTO,
            "siim-acr-pneumothorax/png_masks/{i}_{test}_1_.png": binary(),
        },
        ONE,
        {
            "siim-acr-pneumothorax/stage_1_train_images.csv": lambda i: (
                ("new_filename,ImageId,has_pneumo\n" if i == 0 else "")
                + (f"{i}_train_1_.png,1.2.{i},1\n" if i < 6 else "")
            ),
            "siim-acr-pneumothorax/stage_1_test_images.csv": lambda i: (
                ("new_filename,ImageId,has_pneumo\n" if i == 0 else "")
                + (f"{i}_test_1_.png,1.2.{i},1\n" if i > 5 else "")
            ),
        },
    ),
    "HuBMAP": (
        "https://www.kaggle.com/c/hubmap-organ-segmentation",
        {"train_images/10{i}.tiff": PHOTO, "test_images/20{i}.tiff": OTHER},
        ONE,
        {
            "train.csv": lambda i: (
                (
                    "id,organ,data_source,img_height,img_width,pixel_size,tissue_thickness,rle,age,sex\n"
                    if i == 0
                    else ""
                )
                + f"10{i},prostate,HPA,24,40,0.4,4,{layouts.runs(i, 0)},37.0,Male\n"
            ),
            "test.csv": lambda i: (
                ("id,organ,data_source,img_height,img_width,pixel_size,tissue_thickness\n" if i == 0 else "")
                + f"20{i},spleen,Hubmap,24,40,0.4,4\n"
            ),
            "train_annotations/10{i}.json": "[[[1, 1], [5, 1], [5, 5]]]",
            "sample_submission.csv": "id,rle\n200,\n",
        },
    ),
    "UAV weeds": (
        f"{_G}inkyusa/weedNet",
        {
            "000/groundtruth/000_frame{i:04}_GroundTruth_color.png": colors,
            "000/tile/RGB/frame{i:04}.png": PHOTO,
            "000/groundtruth/000_frame{i:04}_GroundTruth_iMap.png": indices,
        },
        _numbers(),
        {},
    ),
    "names of masks with colons": (
        _K,
        {"images/i{i}.jpg": PHOTO, "masks/i{i}.png": indices},
        _named(("person", "dog")),
        {"classes.txt": "0: background\n1: person\n2: dog\n"},
    ),
    "names, then numbers": (
        _K,
        {"images/i{i}.jpg": PHOTO, "masks/i{i}.png": indices},
        _named(("person", "dog")),
        {"labels.txt": "background 0\nperson 1\ndog 2\n"},
    ),
    "numbers, then names": (
        _K,
        {"images/i{i}.jpg": PHOTO, "masks/i{i}.png": indices},
        _named(("traffic light", "dog")),
        {"labels.txt": "0\tbackground\n1\ttraffic light\n2\tdog\n"},
    ),
    "RUGD's colors": (
        "http://rugd.vision",
        {"images/i{i}.jpg": PHOTO, "masks/i{i}.png": colors},
        _named(("dirt", "sand")),
        {"RUGD_annotation-colormap.txt": "0 void 0 0 0\n1 dirt 128 64 128\n2 sand 0 0 142\n3 grass 0 102 0\n"},
    ),
    "FreeSurfer's colors": (
        "https://freesurfer.net/fswiki",
        {"images/i{i}.jpg": PHOTO, "masks/i{i}.png": colors},
        _named(("left", "right")),
        {"colors.txt": "#No. Label Name: R G B A\n0 void 0 0 0 0\n1 left 128 64 128 0\n2 right 0 0 142 0\n"},
    ),
    "CVAT's labelmap": (
        f"{_G}cvat-ai/cvat",
        {"JPEGImages/i{i}.jpg": PHOTO, "SegmentationClass/i{i}.png": colors},
        _named(("car", "road")),
        {
            "labelmap.txt": "# label:color_rgb:parts:actions\nbackground:0,0,0::\ncar:128,64,128::\nroad:0,0,142::\n",
            "ImageSets/Segmentation/default.txt": "".join(f"i{i}\n" for i in range(COUNT)),
        },
    ),
}
ODD = {
    name: Odd(thread, draw(files, truth, texts), "masks", ANSWERED if truth else STOPS, cause=CAUSES.get(name, ""))
    for name, (thread, files, truth, texts) in ROWS.items()
}
