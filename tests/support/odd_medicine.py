"""Folders of medical data sets; see `odd_sets`."""

import layouts
import numpy as np
from layouts import CLASSES, COUNT, HEIGHT, WIDTH, indices, mask
from mutated_sets import STOPS
from odd_parts import classes, numbered, one_class, picture
from odd_sets import ANSWERED, Odd
from PIL import Image
from tool_files import names, write


def nnunet(root):
    """nnU-Net's raw folders: a number of the channel behind each image, and images to predict without masks."""
    for i in range(COUNT):
        layouts.image(root / f"Dataset120_Roads/imagesTr/img_{i:03}_0000.png", i)
        picture(root / f"Dataset120_Roads/labelsTr/img_{i:03}.png", indices(i))
        layouts.image(root / f"Dataset120_Roads/imagesTs/img_{50 + i:03}_0000.png", 50 + i)
    channels = {"0": "R", "1": "G", "2": "B"}
    labels = {"background": 0, "car": 1, "road": 2}
    document = {"channel_names": channels, "labels": labels, "numTraining": COUNT, "file_ending": ".png"}
    write(root / "Dataset120_Roads/dataset.json", document)
    return numbered("img_00{}_0000.png", CLASSES)


def nnunet_channels(root):
    """Two channels of each case, in files of their own, with one mask."""
    for i in range(COUNT):
        for channel in range(2):
            layouts.image(root / f"imagesTr/BRATS_{i:03}_000{channel}.png", i + 20 * channel)
        picture(root / f"labelsTr/BRATS_{i:03}.png", indices(i))
    labels = {"background": 0, "edema": 1, "core": 2}
    write(root / "dataset.json", {"channel_names": {"0": "T1", "1": "T2"}, "labels": labels, "file_ending": ".png"})
    return {}


def brats(root):
    """Slices of four kinds of each patient, and the mask next to them."""
    for i in range(COUNT):
        stem = f"BraTS20_Training_00{i // 4}"
        for k, kind in enumerate(("flair", "t1", "t1ce", "t2")):
            layouts.image(root / f"{stem}/{stem}_{kind}_{i % 4}.png", i + 20 * k)
        picture(root / f"{stem}/{stem}_seg_{i % 4}.png", indices(i))
    return {}


def camus(root):
    """Two views of each patient, with `_gt` for the mask, and a file of settings."""
    for i in range(COUNT):
        folder = root / f"patient000{i // 2}"
        stem = f"patient000{i // 2}_{('2CH', '4CH')[i % 2]}_ED"
        layouts.image(folder / f"{stem}.png", i)
        picture(folder / f"{stem}_gt.png", indices(i))
        write(folder / f"Info_{('2CH', '4CH')[i % 2]}.cfg", "ED: 1\nES: 20\n")
    truth = numbered("{}")
    return {f"patient000{i // 2}_{('2CH', '4CH')[i % 2]}_ED.png": truth[str(i)] for i in range(COUNT)}


def hyper_kvasir(root):
    """Classes in folders of folders, with a table that says the same in words of its own."""
    rows = ["Video file,Organ,Finding,Classification"]
    kinds = ("lower-gi-tract/pathological-findings/polyps", "upper-gi-tract/anatomical-landmarks/z-line")
    for i in range(COUNT):
        layouts.image(root / f"labeled-images/{kinds[i % 2]}/a0{i}.jpg", i)
        rows.append(f"a0{i},{('Lower', 'Upper')[i % 2]} GI,{('polyps', 'z-line')[i % 2]},{kinds[i % 2].split('/')[1]}")
    layouts.lines(root / "labeled-images/image-labels.csv", *rows)
    return classes("a0{}.jpg", lambda i: ("polyps", "z-line")[i % 2])


def kvasir_lists(root):
    """Kvasir-SEG's split as lists of stems."""
    names(root)
    for i in range(COUNT):
        picture(root / f"masks/i{i}.png", 255 * mask(i, 0))
    write(root / "train.txt", "".join(f"i{i}\n" for i in range(6)))
    write(root / "val.txt", "i6\ni7\n")
    return one_class("i{}.jpg")


def montgomery(root):
    """A mask of each lung, and readings as text."""
    for i in range(COUNT):
        layouts.image(root / f"CXR_png/MCUCXR_000{i}_0.png", i)
        for k, side in enumerate(("left", "right")):
            picture(root / f"ManualMask/{side}Mask/MCUCXR_000{i}_0.png", 255 * mask(i, k))
        write(root / f"ClinicalReadings/MCUCXR_000{i}_0.txt", "Patient's Sex: F\nPatient's Age: 027Y\nnormal\n")
    return {
        f"MCUCXR_000{i}_0.png": {f"{side}Mask": mask(i, k) for k, side in enumerate(("left", "right"))}
        for i in range(COUNT)
    }


def bowl(root):
    """Data Science Bowl: a mask for each nucleus, and the same as run lengths."""
    rows = ["ImageId,EncodedPixels"]
    for i in range(COUNT):
        layouts.image(root / f"stage1_train/a{i}/images/a{i}.png", i)
        layouts.image(root / f"stage1_test/t{i}/images/t{i}.png", 30 + i)
        for k in range(2):
            picture(root / f"stage1_train/a{i}/masks/m{i}{k}.png", 255 * mask(i, k))
            rows.append(f"a{i},{layouts.runs(i, k)}")
    layouts.lines(root / "stage1_train_labels.csv", *rows)
    layouts.lines(root / "stage1_sample_submission.csv", "ImageId,EncodedPixels", *(f"t{i}," for i in range(COUNT)))
    return {f"a{i}.png": {"mask": mask(i, 0) | mask(i, 1)} for i in range(COUNT)}


def one_hot_floats(root):
    """ISIC 2019: a column for each class with 1.0, and a table about the patients."""
    rows, patients = ["image,MEL,NV,UNK"], ["image,age_approx,anatom_site_general,lesion_id,sex"]
    for i in range(COUNT):
        layouts.image(root / f"ISIC_2019_Training_Input/ISIC_000{i}.jpg", i)
        rows.append(f"ISIC_000{i},{float(i % 2)},{float(1 - i % 2)},0.0")
        patients.append(f"ISIC_000{i},5{i}.0,anterior torso,,female")
    layouts.lines(root / "ISIC_2019_Training_GroundTruth.csv", *rows)
    layouts.lines(root / "ISIC_2019_Training_Metadata.csv", *patients)
    return classes("ISIC_000{}.jpg", lambda i: ("NV", "MEL")[i % 2])


def aptos(root):
    """Two tables and two folders: of those to predict the table has no grade."""
    for i in range(COUNT):
        layouts.image(root / f"train_images/a{i}.png", i)
        layouts.image(root / f"test_images/t{i}.png", 30 + i)
    layouts.lines(root / "train.csv", "id_code,diagnosis", *(f"a{i},{i % 2}" for i in range(COUNT)))
    layouts.lines(root / "test.csv", "id_code", *(f"t{i}" for i in range(COUNT)))
    layouts.lines(root / "sample_submission.csv", "id_code,diagnosis", *(f"t{i},0" for i in range(COUNT)))
    return classes("a{}.png", lambda i: str(i % 2))


def covid(root):
    """COVID-QU-Ex: folders of a split, of a class, and in each of these images and masks."""
    truth = {}
    for i in range(COUNT):
        folder = root / f"Lung Segmentation Data/{('Train', 'Test')[i > 5]}/{('COVID-19', 'Normal')[i % 2]}"
        layouts.image(folder / f"images/c_{i}.png", i)
        picture(folder / f"lung masks/c_{i}.png", 255 * mask(i, 0))
        truth[f"c_{i}.png"] = {"mask": mask(i, 0)}
    return truth


def protein_atlas(root):
    """Four files of each sample, of one color each, and a table with the name of the sample."""
    for i in range(COUNT):
        for k, color in enumerate(("red", "green", "blue", "yellow")):
            layouts.image(root / f"train/a{i}_{color}.png", i + 20 * k)
    layouts.lines(root / "train.csv", "Id,Target", *(f"a{i},{('16 0', '5')[i % 2]}" for i in range(COUNT)))
    return {}


def hrf(root):
    """Masks of vessels and of the field of view, with the same kind of name."""
    for i in range(COUNT):
        layouts.image(root / f"images/0{i}_h.jpg", i)
        picture(root / f"manual1/0{i}_h.tif", 255 * mask(i, 0))
        picture(root / f"mask/0{i}_h_mask.tif", np.full(mask(i, 0).shape, 255))
    return one_class("0{}_h.jpg")


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


_K = "https://www.kaggle.com/datasets/"
ODD = {
    "nnU-Net": Odd("https://github.com/MIC-DKFZ/nnUNet", nnunet, "masks", ANSWERED),
    "nnU-Net of two channels": Odd("https://github.com/MIC-DKFZ/nnUNet", nnunet_channels, "masks", STOPS),
    "BraTS as PNG": Odd("https://www.med.upenn.edu/cbica/brats2020", brats, "masks", STOPS),
    "CAMUS": Odd("https://www.creatis.insa-lyon.fr/Challenge/camus", camus, "masks", ANSWERED),
    "HyperKvasir": Odd("https://datasets.simula.no/hyper-kvasir", hyper_kvasir, "classes", ANSWERED),
    "Kvasir with lists": Odd("https://datasets.simula.no/kvasir-seg", kvasir_lists),
    "Montgomery": Odd(f"{_K}raddar/tuberculosis-chest-xrays-montgomery", montgomery, "masks", ANSWERED),
    "Data Science Bowl": Odd("https://www.kaggle.com/c/data-science-bowl-2018", bowl, "masks", ANSWERED),
    "ISIC 2019": Odd("https://challenge.isic-archive.com/data", one_hot_floats, "classes", ANSWERED),
    "APTOS": Odd("https://www.kaggle.com/c/aptos2019-blindness-detection", aptos, "classes", ANSWERED),
    "COVID-QU-Ex": Odd(f"{_K}anasmohammedtahir/covidqu", covid, "masks", ANSWERED, tested=("c_6.png", "c_7.png")),
    "Human Protein Atlas": Odd(
        "https://www.kaggle.com/c/human-protein-atlas-image-classification", protein_atlas, "classes", STOPS
    ),
    "HRF": Odd("https://www5.cs.fau.de/research/data/fundus-images", hrf, "masks", ANSWERED),
    "DRIVE": Odd(f"{_K}andrewmvd/drive-digital-retinal-images-for-vessel-extraction", drive, "masks", ANSWERED),
    "ISIC 2017": Odd("https://challenge.isic-archive.com/data", isic, "masks", ANSWERED),
    "ISIC 2018": Odd("https://challenge.isic-archive.com/data", isic_plain),
    "CVC-ClinicDB": Odd(f"{_K}balraj98/cvcclinicdb", clinic, "masks", ANSWERED),
    "CVC-ClinicDB alone": Odd("https://polyp.grand-challenge.org/CVCClinicDB", clinic_tif, "masks", ANSWERED),
    "BUSI": Odd(f"{_K}aryashah2k/breast-ultrasound-images-dataset", busi, "masks", ANSWERED),
    "LGG": Odd(f"{_K}mateuszbuda/lgg-mri-segmentation", lgg, "masks", ANSWERED),
    "Shenzhen": Odd(f"{_K}kmader/pulmonary-chest-xray-abnormalities", shenzhen, "masks", ANSWERED),
    "Kvasir": Odd("https://datasets.simula.no/kvasir-seg", kvasir, "masks", ANSWERED),
}
