"""See `constructors.py`. This file is generated from the sections and `shardwright.label_formats`."""

import datetime
import os
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from shardwright.config.config import Config
from shardwright.config.shards import FeaturesConfig, RejectsConfig, ShardsConfig
from shardwright.config.evaluation import DriftConfig, EvaluatorConfig, GateConfig, SkewConfig
from shardwright.config.images import DuplicatesConfig, ImagesConfig, NearConfig
from shardwright.config.input import InputConfig, LabelsConfig, RleConfig
from shardwright.config.loader import LoaderConfig
from shardwright.config.split import GroupConfig, SplitConfig
from shardwright.config.trainer import CheckpointConfig, ProfileConfig, TrainerConfig
from shardwright.config.transform import TextConfig, TransformConfig

_Section = TypeVar("_Section")

__all__ = [
    "as_section",
    "config_of",
    "labels_of",
    "Input",
    "Images",
    "Duplicates",
    "Split",
    "Shards",
    "Features",
    "Rejects",
    "Transform",
    "Text",
    "Loader",
    "Trainer",
    "Evaluator",
    "Gate",
    "Drift",
    "Skew",
    "ClassFolders",
    "FileNames",
    "LabelCsv",
    "RleCsv",
    "Coco",
    "MaskImages",
    "PascalVoc",
    "Captions",
    "Numbers",
    "Unlabeled",
    "TfRecords",
    "Yolo",
    "LabelMe",
    "Cvat",
    "Datumaro",
    "LabelStudio",
    "Via",
    "VocBoxes",
    "Supervisely",
    "OpenImages",
    "BoxCsv",
    "Panoptic",
    "VertexJsonl",
    "Labelbox",
    "LabelJsonl",
]

def config_of(
    input: InputConfig | Mapping[str, Any] | None = None,
    *,
    task: str = "segmentation",
    base: str | None = None,
    **sections: Any,
) -> Config: ...

def as_section(section: type[_Section], value: object, name: str) -> _Section: ...

def labels_of(raw: Mapping[str, Any]) -> LabelsConfig: ...

def Input(
    images: str | os.PathLike[str],
    labels: LabelsConfig | Mapping[str, Any] = ...,
    classes: str | os.PathLike[str] | Sequence[str] | Mapping[str, int] | Mapping[int, str] | None = None,
    exclude: str | Sequence[str] = [],
    unlisted_images: str = "auto",
    span: str | int | datetime.date | Sequence[Any] = "newest",
    version: str | int = "newest",
    on_conflict: str = "newest",
) -> InputConfig:
    """The images and their annotations.

    Args:
        images: Folder or glob of images, also `gs://` and `s3://`. It may name spans: `{SPAN}`, `{YYYY}-{MM}-{DD}`, `{VERSION}`.
        labels: The location and the format of the annotations.
        classes: Names in the order of their labels, names with the numbers that the annotations use, or a JSON or CSV file of them. Detected by default.
        exclude: Files below `images` to ignore: paths or globs. A folder means everything in it.
        unlisted_images: What becomes of images without annotations: `empty` (no masks), `unlabeled` (no class), `reject`, or `fail`.
        span: Spans to read: `newest`, `all`, a number or date, or `[first, last]`.
        version: Version of each span to read: `newest` or a number.
        on_conflict: If spans have different bytes under one name: the `newest` counts, the run stops (`fail`), or `with_span` puts the span into every key.
    """

def Images(
    verify: str = "header",
    max_pixels: int | str = 200000000,
    max_bytes: int | str = 1073741824,
    orientation: str = "keep",
    resize: str = "keep",
    size: Sequence[int] | int | None = None,
    encoding: str = "keep",
    quality: int = 90,
    optimize: bool = False,
    chroma: int = 420,
    unsupported_formats: str = "reject",
    strip_metadata: str = "none",
    checksum: str = "blake3",
) -> ImagesConfig:
    """Checks and changes of each image. By default images are not changed: stored bytes are the file's own.

    Args:
        verify: `header` checks the header of a file. `full` also decodes it, rejects files that cannot be decoded, and adds the features `image/hash/*` and `image/quality/*`.
        max_pixels: Larger images are rejected before decoding.
        max_bytes: Larger files are rejected unread.
        orientation: `apply` turns images as their Exif orientation states, and encodes these again.
        resize: How pixels are brought to `size`, after that turn.
        size: `[height, width]`; one number for `longest_side`.
        encoding: Encoding of all stored images; `keep` re-encodes only what another option changes.
        quality: JPEG quality of images that are encoded again.
        optimize: Makes JPEG and PNG files smaller, which takes longer to encode.
        chroma: Chroma samples of JPEG files that are encoded again.
        unsupported_formats: Formats other than JPEG and PNG: `reject` them, or store them as `png` or `jpeg`.
        strip_metadata: Losslessly removes `private` or `all` metadata.
        checksum: Algorithm of content IDs and of the feature with the checksum of each file, `image/blake3` or `image/sha256`.
    """

def Duplicates(
    exact: str = "keep",
    pixels: str | None = None,
    near: NearConfig | Mapping[str, Any] | None = None,
    conflicts: str = "report",
) -> DuplicatesConfig:
    """The treatment of images that are the same. Kept duplicates are all in the same split.

    Args:
        exact: Files of the same bytes: `keep` all, keep the `first` by key, or `fail`.
        pixels: Files of any format that display the same pixels: `keep`, `first` or `fail`. Needs `images.verify: full`.
        near: Images that look alike. Needs `images.verify: full`.
        conflicts: Duplicates with different labels: `report` them, unless more than a tenth of the images are copies by name and bytes; `keep` any number, `reject` all of them, or `fail`.
    """

def Split(
    ratios: Mapping[str, float | str] = ...,
    method: str = "auto",
    salt: str = "",
    group: GroupConfig | Mapping[str, Any] | None = None,
    num_folds: int | None = None,
    fold_index: int | None = None,
    stratify: bool = False,
    from_column: str | None = None,
    from_lists: Mapping[str, str] | None = None,
    unlisted_images: str = "fail",
    keep_from: str | None = None,
    **shares: float | str,
) -> SplitConfig:
    """Names and shares of the splits, and how images come into them.

    Args:
        ratios: Split -> its share, for example `{train: 0.8, eval: 0.1, test: 0.1}`. A split named `val`, `valid` or `validation` is understood as `eval`.
        method: `auto`: the splits that the input states by folders, files or a column, where it states one for every image, and `hash` where it states none. `hash`: a salted hash of the key. `group`: one of the group's name. `stratified`: every class has its share in every split. `kfold`: of the images that `test` leaves, one fold is `eval` and the others are `train`, by hash or, with `stratify`, by classes. `predefined`: the splits of the input.
        salt: Salt of the hash; another one divides the images differently.
        group: Images that must be in one split.
        num_folds: Number of folds of `method: kfold`.
        fold_index: The fold that is `eval`, from 0.
        stratify: Divides the folds by classes.
        from_column: Column of the table of labels with the split of each image, for `method: predefined`.
        from_lists: Split -> file with the keys of its images, for `method: predefined`.
        unlisted_images: Split of the images that have none in the input, for `method: predefined`; `fail` stops the run.
        keep_from: Earlier dataset, whose images stay in their splits: only new images are divided. `blessed` is the dataset of the last pushed model.
        **shares: share of a split by its name, as in `ratios`: `train=0.8`.
    """

def Shards(
    target_size: int | str | None = None,
    count: int | None = None,
    records: int | None = None,
    hosts: int | None = None,
    balance: str = "none",
    filename_template: str = "data-{index:05d}-of-{of:05d}.tfrecord",
) -> ShardsConfig:
    """Number and names of the shards of a split: by one of `target_size`, `count` and `records`.

    Args:
        target_size: Approximate size of a shard; 150 MB by default.
        count: Number of shards of a split.
        records: Records of a shard.
        hosts: Number of machines that read the dataset: each gets at least ten shards if there is enough data.
        balance: `class` spreads every class (of masks: every set of classes) evenly over the shards.
        filename_template: Names of the files, with `{split}`, `{index}` from 0, `{of}` shards, `{count}` records.
    """

def Features(
    preset: str = "tf_vision",
    map: Mapping[str, str] = ...,
) -> FeaturesConfig:
    """Names and forms of the stored features.

    Args:
        preset: Names and forms that other readers expect.
        map: Feature -> another name to store it under.
    """

def Rejects(max_fraction: float | str = 0.01) -> RejectsConfig:
    """How many inputs may be rejected before the run fails.

    Images that `input.unlisted_images: reject` leaves out are not counted.

    Args:
        max_fraction: Share of the inputs that may be rejected, rounded down.
    """

def Transform(
    size: Sequence[int] | None = None,
    resize: str = "stretch",
    encoding: str = "jpeg",
    quality: int = 90,
    optimize: bool = False,
    chroma: int = 420,
    masks: str = "rle",
    labels: str = "index",
    preset: str = "tf_vision",
    text: Mapping[str, TextConfig | Mapping[str, Any]] = ...,
) -> TransformConfig:
    """The pixels, masks, labels and texts that a model is trained on.

    Args:
        size: `[height, width]` of all images; by default [352, 544].
        resize: How images are brought to `size`; with `keep` they keep theirs.
        encoding: Encoding of the stored pixels; `auto` means `raw` where all images together take at most 4 GB so, and `jpeg` otherwise. The log has the reason.
        quality: JPEG quality.
        optimize: Makes JPEG and PNG files smaller, which takes longer to encode.
        chroma: Chroma samples of JPEG files.
        masks: Masks as run lengths (`rle`), or as a PNG of 0 and 1 for each class.
        labels: `one_hot` or `multi_hot` adds a number for each class to the index.
        preset: Names and forms of features that other readers expect.
        text: Column of texts -> its options.
    """

def Text(
    vocabulary: int = 1000,
    output: str = "counts",
    length: int | None = None,
) -> TextConfig:
    """How a column of texts is stored: as words, in lower case, divided by all but letters, digits and apostrophes.

    Args:
        vocabulary: Number of the most frequent words of the split train.
        output: `counts` stores words sparsely, `dense` as one number for each of them, `ids` in their order: 0 pads up to `length`, 1 is any other word, 2 the most frequent one.
        length: Number of words of `output: ids`.
    """

def Loader(
    normalize: str = "imagenet_torch",
    augment: str | Sequence[str] = ["auto"],
    order: str = "fast",
    shuffle_buffer: int = 1024,
) -> LoaderConfig:
    """How examples become batches.

    Args:
        normalize: How pixels become floats: 0 to 1 (`unit`), as ImageNet models of PyTorch or Caffe expect, by the statistics of the dataset, or not at all.
        augment: Augmentations of `train`, such as `[flip_left_right, crop=0.6]`. `auto`: those that suit photographs; `[]`: none.
        order: `fast`, or `exact`: the same order on any number of hosts, which a training can continue at a step.
        shuffle_buffer: Number of examples that `order: fast` shuffles.
    """

def Trainer(
    model: str = "auto",
    epochs: int | None = None,
    batch_size: int = 16,
    learning_rate: float | str | None = None,
    base_filters: int = 16,
    seed: int = 1,
    loss: str = "auto",
    label_smoothing: float | str = 0.0,
    outputs: str = "auto",
    class_weights: str = "auto",
    encoder: str = "compact",
    weights: str | None = None,
    encoder_rate: float | str = 1.0,
    encoder_trainable_from: int = 1,
    optimizer: str = "adamw",
    weight_decay: float | str | None = None,
    decayed: str | Sequence[str] = ["*kernel"],
    clip_norm: float | str = 1.0,
    rate_rule: str = "none",
    schedule: str = "cosine",
    warm_up: float | str = 0.05,
    patience: int | None = None,
    precision: str = "float32",
    warm_start: str = "none",
    text: str | Sequence[str] = [],
    ema: float | str | None = None,
    accumulate: int = 1,
    callbacks: str | None = None,
    steps_per_epoch: int | None = None,
    evaluate_every: int = 1,
    log_every: int = 50,
    steps_per_launch: int | None = None,
    compilation_cache: str | None = None,
    profile: ProfileConfig | Mapping[str, Any] = ...,
    accelerator: str = "auto",
    hosts: int = 1,
    shard_weights: int = 1,
    checkpoint: CheckpointConfig | Mapping[str, Any] = ...,
) -> TrainerConfig:
    """The model and how it learns.

    Args:
        model: `auto` is `unet` for segmentation and `cnn` for classification; `package.module:function` is a function of your own.
        epochs: Passes over `train`; by default as many as 1,500 updates take, from 10 to 100.
        batch_size: Images of a step, on all devices and hosts together.
        learning_rate: Learning rate after the warm-up; by default 0.003, and 0.001 with an encoder or your own model.
        base_filters: Filters of the first layers of a model; deeper layers have multiples.
        seed: Seed of the initial weights and of the order.
        loss: Loss; `auto` fits the task.
        label_smoothing: Share of the truth that is spread over all classes, or for masks moved towards a half.
        outputs: What your own model returns: `logits`, `probabilities`, or `auto`, by its last activation.
        class_weights: `balanced` weights classes by their frequency; `auto` does so if one is far rarer than another.
        encoder: Encoder of the model.
        weights: File of weights of the encoder; by default they are random.
        encoder_rate: Learning rate of the encoder, as a factor; 0 freezes its weights.
        encoder_trainable_from: Epoch from which the encoder learns; before, only the rest of the model does.
        optimizer: Optimizer.
        weight_decay: Weight decay of `adamw`; the default is 0.001.
        decayed: Patterns of the names of weights that decay, such as `*kernel`; the others (biases, scales of normalizations) do not.
        clip_norm: Global norm to which the gradient of an update is clipped; 0: not at all.
        rate_rule: How the learning rate follows the batch: `linear` multiplies it by `batch_size / 16`, `square_root` by the square root of that.
        schedule: Course of the learning rate after the warm-up.
        warm_up: Share of the steps in which the learning rate rises.
        patience: Early stopping: epochs without improvement before the training ends; by default never.
        precision: Precision between the layers.
        warm_start: Initial weights: `none`, those of the `blessed` model, or the path of a model. A compiled pipeline needs a file on a bucket.
        text: Columns of `transform.text` that the model reads with the image.
        ema: Momentum of a running mean of the weights, which replaces them.
        accumulate: Batches whose gradients make one update.
        callbacks: Import path of a function that returns Keras callbacks.
        steps_per_epoch: Steps after which the model is evaluated and saved; by default as many as read the split train once.
        evaluate_every: Epochs between two evaluations on the split eval; the last one is always evaluated.
        log_every: Steps between two lines of the log: loss, learning rate, gradient norm, speed, memory.
        steps_per_launch: Steps that are launched together; by default 1 on a CPU and with large images, and up to 16 with small ones on an accelerator. Callbacks of every batch need 1.
        compilation_cache: Folder or URL in which JAX keeps compiled steps for later trainings; by default none.
        profile: A trace of some steps.
        accelerator: Devices that the training must run on.
        hosts: Number of machines that train together.
        shard_weights: Neighbouring devices that share one copy of large weights and of their optimizer's state (FSDP), on JAX.
        checkpoint: The saved state.
    """

def Evaluator(
    split: str = "test",
    min_dice: float | str = 0.5,
    min_accuracy: float | str | None = None,
    min_f1: float | str = 0.5,
    min_improvement: float | str = 0.0,
    min_images: int | str = "auto",
    min_per_class: int = 5,
    allow_missing_classes: bool = False,
    beat_trivial: bool = True,
    threshold: float | str = "tuned",
    min_area: int | str = "tuned",
    flips: str | Sequence[str] = [],
) -> EvaluatorConfig:
    """Conditions that a model must meet to be blessed, and how it turns probabilities into masks and classes.

    Args:
        split: Split on which the model is measured.
        min_dice: Minimum mean Dice of masks.
        min_accuracy: Minimum accuracy, with one class per image; by default halfway from guessing to always right: 0.75 with two classes, 0.6 with five, 0.55 with ten.
        min_f1: Minimum mean F1, with several classes per image.
        min_improvement: The model must be better than the last blessed one by more than this, in the same metric on the same images, with 95 % confidence. Negative: it may be worse by so much; -1: it is not compared.
        min_images: Minimum number of images in the split. `auto`: 50, and as many as make the 95 % interval of the metric ±0.1 or narrower. A number leaves out the interval.
        min_per_class: Minimum number of images of each class in the split.
        allow_missing_classes: Judges a model even if a split has no image of some classes; the result names them.
        beat_trivial: The Dice or F1 of every class must be above that of a constant answer, which is always or never yes.
        threshold: Probability from which a pixel or image has a class; `tuned`: chosen per class on the split `eval`.
        min_area: Pixels (of `transform.size`) of the smallest region of a mask; `tuned`: chosen per class on the split `eval`.
        flips: Test-time augmentation: the exported model returns the mean over the image and these flips.
    """

def Gate(
    allow_anomalies: str | Sequence[str] = [],
    drift: DriftConfig | Mapping[str, Any] | None = None,
    skew: SkewConfig | Mapping[str, Any] | None = None,
) -> GateConfig:
    """Checks that stop a run before it trains.

    Args:
        allow_anomalies: Anomalies that do not stop the run: `KIND:FEATURE`, or `KIND` for all features, also those of classes. Kinds are the names of TFDV's `AnomalyInfo.Type`, `DRIFT`, `SKEW`, `LEAKAGE` and `NEAR_LEAKAGE`.
        drift: Compares the images with another dataset.
        skew: Compares the splits with each other.
    """

def Drift(
    reference: str,
    images: int = 2000,
    alpha: float | str = 0.006,
    ignore: str | Sequence[str] = [],
) -> DriftConfig:
    """Comparison of the images with an earlier dataset.

    Args:
        reference: A dataset, folder or URL. `blessed`, for `shardwright run` and `shardwright compile`, is the dataset of the last pushed model; in a TFX pipeline of your own, give a path.
        images: How many of each dataset are compared.
        alpha: Chance of a false alarm. Less than 5e-05 needs `ignore: [embedding]`.
        ignore: Measures that may change.
    """

def Skew(
    images: int = 2000,
    alpha: float | str = 0.006,
    ignore: str | Sequence[str] = [],
) -> SkewConfig:
    """Comparison of every split with the largest one.

    Args:
        images: How many of each split are compared.
        alpha: Chance of a false alarm, shared by all comparisons; less than 5e-05 for each needs `ignore: [embedding]`.
        ignore: Measures that may differ.
    """

def ClassFolders() -> LabelsConfig:
    """Returns labels that are the names of the folders in which the images are."""

def FileNames(regex: str | None = None) -> LabelsConfig:
    """Returns labels that are in the names of the images: before the last `_<number>`, or a regex's group `label`.

    Args:
        regex: Regular expression. For `file_name` it is searched in the path below the image folder and has a group `label`; without it the label is the part of the file's name before the last `_<number>`. For `mask_images` it is searched in the mask's path without extension, and has a group `image` and, where a file has the mask of one class, a group `label`.
    """

def LabelCsv(
    path: str | os.PathLike[str] | Sequence[str] | Mapping[str, str],
    *,
    columns: Mapping[str, str] | None = None,
    features: str | Sequence[str] | Mapping[str, str] | None = None,
    key_regex: str | None = None,
    multi_label: bool | None = None,
    separator: str | None = None,
    confirmed: Sequence[str] = [],
) -> LabelsConfig:
    """Returns labels that are classes in a CSV, one or several for each image.

    Args:
        path: Table, JSON file or folder of the annotations, also `gs://` and `s3://`. Several files are a list, a glob, or a mapping of splits to files.
        columns: Roles of columns: `{image: photo, label: kind, mask: rle}`. For TFRecords the columns are features, and `key` names an image.
        features: Further columns that become features `image/meta/<column>`: `auto` (all), `none`, a list, or column -> type (`auto`, `int`, `float`, `text`, `ints`, `floats`, `texts`). For `numbers` these are the columns of numbers, all by default.
        key_regex: Regular expression for sets whose rows name images by parts of their paths: searched in the path below the image folder. The matches of its groups, joined by `_`, are the image's name. For `mask_images` this is what the group `image` of `regex` must find in the mask's path.
        multi_label: An image may have several classes; detected by default.
        separator: Separator of several classes in one field; empty: a field is one class. Detected by default.
        confirmed: Facts that you have checked, and that would otherwise stop the run: no image has an object (`no_objects`); coordinates are of the images that are there, in their frame (`this_frame`); boxes and areas differ from the outlines next to them (`own_boxes`); annotations or lists name images that are not there (`absent_images`); the annotations of a split or a relabel have other classes (`other_classes`); objects have scores, as a model writes them (`predictions`); all images have the same mask of a pixel or two (`same_masks`); a table has other classes than the folders of its images (`other_folders`).
    """

def RleCsv(
    path: str | os.PathLike[str] | Sequence[str] | Mapping[str, str],
    *,
    encoding: str = "auto",
    order: str = "auto",
    start: int | None = None,
    columns: Mapping[str, str] | None = None,
    features: str | Sequence[str] | Mapping[str, str] | None = None,
    key_regex: str | None = None,
    rle: RleConfig | Mapping[str, Any] | None = None,
    orientation: str = "auto",
    confirmed: Sequence[str] = [],
) -> LabelsConfig:
    """Returns labels that are run lengths in a CSV, a row for each mask.

    Args:
        path: Table, JSON file or folder of the annotations, also `gs://` and `s3://`. Several files are a list, a glob, or a mapping of splits to files.
        encoding: `absolute` starts and lengths, `relative` starts (each from the end of the run before, as in SIIM-ACR), or COCO's `counts`, as a list or compressed.
        order: Whether positions count down the `column` or along the `row`.
        start: First absolute position, 0 or 1.
        columns: Roles of columns: `{image: photo, label: kind, mask: rle}`. For TFRecords the columns are features, and `key` names an image.
        features: Further columns that become features `image/meta/<column>`: `auto` (all), `none`, a list, or column -> type (`auto`, `int`, `float`, `text`, `ints`, `floats`, `texts`). For `numbers` these are the columns of numbers, all by default.
        key_regex: Regular expression for sets whose rows name images by parts of their paths: searched in the path below the image folder. The matches of its groups, joined by `_`, are the image's name. For `mask_images` this is what the group `image` of `regex` must find in the mask's path.
        rle: Form of run lengths in a table.
        orientation: Whether masks and boxes belong to the `stored` pixels or to the picture as `displayed`, turned by Exif. `auto` goes by the stated size if only one fits, else `displayed`.
        confirmed: Facts that you have checked, and that would otherwise stop the run: no image has an object (`no_objects`); coordinates are of the images that are there, in their frame (`this_frame`); boxes and areas differ from the outlines next to them (`own_boxes`); annotations or lists name images that are not there (`absent_images`); the annotations of a split or a relabel have other classes (`other_classes`); objects have scores, as a model writes them (`predictions`); all images have the same mask of a pixel or two (`same_masks`); a table has other classes than the folders of its images (`other_folders`).
    """

def Coco(
    path: str | os.PathLike[str] | Sequence[str] | Mapping[str, str],
    *,
    key_regex: str | None = None,
    boxes: bool = False,
    polygons: str = "coco",
    beyond_image: str = "reject",
    orientation: str = "auto",
    confirmed: Sequence[str] = [],
) -> LabelsConfig:
    """Returns labels that are a COCO instances file: polygons, run lengths, and with `boxes=True` boxes.

    Args:
        path: Table, JSON file or folder of the annotations, also `gs://` and `s3://`. Several files are a list, a glob, or a mapping of splits to files.
        key_regex: Regular expression for sets whose rows name images by parts of their paths: searched in the path below the image folder. The matches of its groups, joined by `_`, are the image's name. For `mask_images` this is what the group `image` of `regex` must find in the mask's path.
        boxes: Whether boxes are stored, too.
        polygons: How polygons become masks: `coco`, as `pycocotools` draws them, or `center`, the pixels whose center is inside.
        beyond_image: Boxes and outlines that reach beyond the image by more than 1 pixel and 0.5 % of its side: `reject` the image, or `clip` them at the border.
        orientation: Whether masks and boxes belong to the `stored` pixels or to the picture as `displayed`, turned by Exif. `auto` goes by the stated size if only one fits, else `displayed`.
        confirmed: Facts that you have checked, and that would otherwise stop the run: no image has an object (`no_objects`); coordinates are of the images that are there, in their frame (`this_frame`); boxes and areas differ from the outlines next to them (`own_boxes`); annotations or lists name images that are not there (`absent_images`); the annotations of a split or a relabel have other classes (`other_classes`); objects have scores, as a model writes them (`predictions`); all images have the same mask of a pixel or two (`same_masks`); a table has other classes than the folders of its images (`other_folders`).
    """

def MaskImages(
    path: str | os.PathLike[str] | Sequence[str] | Mapping[str, str],
    *,
    regex: str | None = None,
    key_regex: str | None = None,
    unlisted_values: str = "refuse",
    values: str = "auto",
    threshold: int | Mapping[str, int] | None = None,
    orientation: str = "auto",
    confirmed: Sequence[str] = [],
) -> LabelsConfig:
    """Returns labels that are mask images in a folder: indices, palettes, colors, or a file for each class.

    Args:
        path: Table, JSON file or folder of the annotations, also `gs://` and `s3://`. Several files are a list, a glob, or a mapping of splits to files.
        regex: Regular expression. For `file_name` it is searched in the path below the image folder and has a group `label`; without it the label is the part of the file's name before the last `_<number>`. For `mask_images` it is searched in the mask's path without extension, and has a group `image` and, where a file has the mask of one class, a group `label`.
        key_regex: Regular expression for sets whose rows name images by parts of their paths: searched in the path below the image folder. The matches of its groups, joined by `_`, are the image's name. For `mask_images` this is what the group `image` of `regex` must find in the mask's path.
        unlisted_values: Mask pixels whose value is not in `input.classes`: an error (`refuse`), `background`, or `ignore` (left out of loss and metrics).
        values: What a pixel of a mask image is: the `stored` number, such as the index of a palette, or what a viewer shows (`displayed`): the color of the palette, or gray if its colors are gray. Detected by default.
        threshold: For masks with soft edges or lossy compression: pixels from this value on are the class. A number such as 128, or with one class per file, class -> number.
        orientation: Whether masks and boxes belong to the `stored` pixels or to the picture as `displayed`, turned by Exif. `auto` goes by the stated size if only one fits, else `displayed`.
        confirmed: Facts that you have checked, and that would otherwise stop the run: no image has an object (`no_objects`); coordinates are of the images that are there, in their frame (`this_frame`); boxes and areas differ from the outlines next to them (`own_boxes`); annotations or lists name images that are not there (`absent_images`); the annotations of a split or a relabel have other classes (`other_classes`); objects have scores, as a model writes them (`predictions`); all images have the same mask of a pixel or two (`same_masks`); a table has other classes than the folders of its images (`other_folders`).
    """

def PascalVoc(
    path: str | os.PathLike[str] | Sequence[str] | Mapping[str, str],
    *,
    unlisted_values: str = "refuse",
    values: str = "auto",
    beyond_image: str = "reject",
    orientation: str = "auto",
    confirmed: Sequence[str] = [],
) -> LabelsConfig:
    """Returns labels that are a folder of Pascal VOC: masks, boxes and lists of splits.

    Args:
        path: Table, JSON file or folder of the annotations, also `gs://` and `s3://`. Several files are a list, a glob, or a mapping of splits to files.
        unlisted_values: Mask pixels whose value is not in `input.classes`: an error (`refuse`), `background`, or `ignore` (left out of loss and metrics).
        values: What a pixel of a mask image is: the `stored` number, such as the index of a palette, or what a viewer shows (`displayed`): the color of the palette, or gray if its colors are gray. Detected by default.
        beyond_image: Boxes and outlines that reach beyond the image by more than 1 pixel and 0.5 % of its side: `reject` the image, or `clip` them at the border.
        orientation: Whether masks and boxes belong to the `stored` pixels or to the picture as `displayed`, turned by Exif. `auto` goes by the stated size if only one fits, else `displayed`.
        confirmed: Facts that you have checked, and that would otherwise stop the run: no image has an object (`no_objects`); coordinates are of the images that are there, in their frame (`this_frame`); boxes and areas differ from the outlines next to them (`own_boxes`); annotations or lists name images that are not there (`absent_images`); the annotations of a split or a relabel have other classes (`other_classes`); objects have scores, as a model writes them (`predictions`); all images have the same mask of a pixel or two (`same_masks`); a table has other classes than the folders of its images (`other_folders`).
    """

def Captions(
    path: str | os.PathLike[str] | Sequence[str] | Mapping[str, str],
    *,
    columns: Mapping[str, str] | None = None,
    features: str | Sequence[str] | Mapping[str, str] | None = None,
    key_regex: str | None = None,
    confirmed: Sequence[str] = [],
) -> LabelsConfig:
    """Returns labels that are texts for each image, in a CSV, JSONL or COCO captions file.

    Args:
        path: Table, JSON file or folder of the annotations, also `gs://` and `s3://`. Several files are a list, a glob, or a mapping of splits to files.
        columns: Roles of columns: `{image: photo, label: kind, mask: rle}`. For TFRecords the columns are features, and `key` names an image.
        features: Further columns that become features `image/meta/<column>`: `auto` (all), `none`, a list, or column -> type (`auto`, `int`, `float`, `text`, `ints`, `floats`, `texts`). For `numbers` these are the columns of numbers, all by default.
        key_regex: Regular expression for sets whose rows name images by parts of their paths: searched in the path below the image folder. The matches of its groups, joined by `_`, are the image's name. For `mask_images` this is what the group `image` of `regex` must find in the mask's path.
        confirmed: Facts that you have checked, and that would otherwise stop the run: no image has an object (`no_objects`); coordinates are of the images that are there, in their frame (`this_frame`); boxes and areas differ from the outlines next to them (`own_boxes`); annotations or lists name images that are not there (`absent_images`); the annotations of a split or a relabel have other classes (`other_classes`); objects have scores, as a model writes them (`predictions`); all images have the same mask of a pixel or two (`same_masks`); a table has other classes than the folders of its images (`other_folders`).
    """

def Numbers(
    path: str | os.PathLike[str] | Sequence[str] | Mapping[str, str],
    *,
    columns: Mapping[str, str] | None = None,
    features: str | Sequence[str] | Mapping[str, str] | None = None,
    key_regex: str | None = None,
    confirmed: Sequence[str] = [],
) -> LabelsConfig:
    """Returns labels that are numbers for each image and no classes, in a CSV or JSONL file.

    Args:
        path: Table, JSON file or folder of the annotations, also `gs://` and `s3://`. Several files are a list, a glob, or a mapping of splits to files.
        columns: Roles of columns: `{image: photo, label: kind, mask: rle}`. For TFRecords the columns are features, and `key` names an image.
        features: Further columns that become features `image/meta/<column>`: `auto` (all), `none`, a list, or column -> type (`auto`, `int`, `float`, `text`, `ints`, `floats`, `texts`). For `numbers` these are the columns of numbers, all by default.
        key_regex: Regular expression for sets whose rows name images by parts of their paths: searched in the path below the image folder. The matches of its groups, joined by `_`, are the image's name. For `mask_images` this is what the group `image` of `regex` must find in the mask's path.
        confirmed: Facts that you have checked, and that would otherwise stop the run: no image has an object (`no_objects`); coordinates are of the images that are there, in their frame (`this_frame`); boxes and areas differ from the outlines next to them (`own_boxes`); annotations or lists name images that are not there (`absent_images`); the annotations of a split or a relabel have other classes (`other_classes`); objects have scores, as a model writes them (`predictions`); all images have the same mask of a pixel or two (`same_masks`); a table has other classes than the folders of its images (`other_folders`).
    """

def Unlabeled() -> LabelsConfig:
    """Returns labels that are absent: every image belongs to the dataset, without a class."""

def TfRecords(
    columns: Mapping[str, str] | None = None,
    *,
    encoding: str = "auto",
    order: str = "auto",
    start: int | None = None,
    rle: RleConfig | Mapping[str, Any] | None = None,
    unlisted_values: str = "refuse",
    values: str = "auto",
    threshold: int | Mapping[str, int] | None = None,
    orientation: str = "auto",
) -> LabelsConfig:
    """Returns labels that are in the records themselves: `images` is a folder of TFRecord, tar, Parquet or ArrayRecord files.

    Args:
        columns: Roles of columns: `{image: photo, label: kind, mask: rle}`. For TFRecords the columns are features, and `key` names an image.
        encoding: `absolute` starts and lengths, `relative` starts (each from the end of the run before, as in SIIM-ACR), or COCO's `counts`, as a list or compressed.
        order: Whether positions count down the `column` or along the `row`.
        start: First absolute position, 0 or 1.
        rle: Form of run lengths in a table.
        unlisted_values: Mask pixels whose value is not in `input.classes`: an error (`refuse`), `background`, or `ignore` (left out of loss and metrics).
        values: What a pixel of a mask image is: the `stored` number, such as the index of a palette, or what a viewer shows (`displayed`): the color of the palette, or gray if its colors are gray. Detected by default.
        threshold: For masks with soft edges or lossy compression: pixels from this value on are the class. A number such as 128, or with one class per file, class -> number.
        orientation: Whether masks and boxes belong to the `stored` pixels or to the picture as `displayed`, turned by Exif. `auto` goes by the stated size if only one fits, else `displayed`.
    """

def Yolo(
    path: str | os.PathLike[str] | Sequence[str] | Mapping[str, str],
    *,
    key_regex: str | None = None,
    boxes: bool = False,
    polygons: str = "coco",
    beyond_image: str = "reject",
    orientation: str = "auto",
    confirmed: Sequence[str] = [],
) -> LabelsConfig:
    """Returns labels that are YOLO's text files of boxes or polygons: their folder, or the YAML file of the set.

    Args:
        path: Table, JSON file or folder of the annotations, also `gs://` and `s3://`. Several files are a list, a glob, or a mapping of splits to files.
        key_regex: Regular expression for sets whose rows name images by parts of their paths: searched in the path below the image folder. The matches of its groups, joined by `_`, are the image's name. For `mask_images` this is what the group `image` of `regex` must find in the mask's path.
        boxes: Whether boxes are stored, too.
        polygons: How polygons become masks: `coco`, as `pycocotools` draws them, or `center`, the pixels whose center is inside.
        beyond_image: Boxes and outlines that reach beyond the image by more than 1 pixel and 0.5 % of its side: `reject` the image, or `clip` them at the border.
        orientation: Whether masks and boxes belong to the `stored` pixels or to the picture as `displayed`, turned by Exif. `auto` goes by the stated size if only one fits, else `displayed`.
        confirmed: Facts that you have checked, and that would otherwise stop the run: no image has an object (`no_objects`); coordinates are of the images that are there, in their frame (`this_frame`); boxes and areas differ from the outlines next to them (`own_boxes`); annotations or lists name images that are not there (`absent_images`); the annotations of a split or a relabel have other classes (`other_classes`); objects have scores, as a model writes them (`predictions`); all images have the same mask of a pixel or two (`same_masks`); a table has other classes than the folders of its images (`other_folders`).
    """

def LabelMe(
    path: str | os.PathLike[str] | Sequence[str] | Mapping[str, str],
    *,
    key_regex: str | None = None,
    boxes: bool = False,
    polygons: str = "coco",
    beyond_image: str = "reject",
    orientation: str = "auto",
    confirmed: Sequence[str] = [],
) -> LabelsConfig:
    """Returns labels that are LabelMe's JSON files, one for each image, in a folder.

    Args:
        path: Table, JSON file or folder of the annotations, also `gs://` and `s3://`. Several files are a list, a glob, or a mapping of splits to files.
        key_regex: Regular expression for sets whose rows name images by parts of their paths: searched in the path below the image folder. The matches of its groups, joined by `_`, are the image's name. For `mask_images` this is what the group `image` of `regex` must find in the mask's path.
        boxes: Whether boxes are stored, too.
        polygons: How polygons become masks: `coco`, as `pycocotools` draws them, or `center`, the pixels whose center is inside.
        beyond_image: Boxes and outlines that reach beyond the image by more than 1 pixel and 0.5 % of its side: `reject` the image, or `clip` them at the border.
        orientation: Whether masks and boxes belong to the `stored` pixels or to the picture as `displayed`, turned by Exif. `auto` goes by the stated size if only one fits, else `displayed`.
        confirmed: Facts that you have checked, and that would otherwise stop the run: no image has an object (`no_objects`); coordinates are of the images that are there, in their frame (`this_frame`); boxes and areas differ from the outlines next to them (`own_boxes`); annotations or lists name images that are not there (`absent_images`); the annotations of a split or a relabel have other classes (`other_classes`); objects have scores, as a model writes them (`predictions`); all images have the same mask of a pixel or two (`same_masks`); a table has other classes than the folders of its images (`other_folders`).
    """

def Cvat(
    path: str | os.PathLike[str] | Sequence[str] | Mapping[str, str],
    *,
    key_regex: str | None = None,
    boxes: bool = False,
    polygons: str = "coco",
    beyond_image: str = "reject",
    orientation: str = "auto",
    confirmed: Sequence[str] = [],
) -> LabelsConfig:
    """Returns labels that are one XML file, 'CVAT for images 1.1'.

    Args:
        path: Table, JSON file or folder of the annotations, also `gs://` and `s3://`. Several files are a list, a glob, or a mapping of splits to files.
        key_regex: Regular expression for sets whose rows name images by parts of their paths: searched in the path below the image folder. The matches of its groups, joined by `_`, are the image's name. For `mask_images` this is what the group `image` of `regex` must find in the mask's path.
        boxes: Whether boxes are stored, too.
        polygons: How polygons become masks: `coco`, as `pycocotools` draws them, or `center`, the pixels whose center is inside.
        beyond_image: Boxes and outlines that reach beyond the image by more than 1 pixel and 0.5 % of its side: `reject` the image, or `clip` them at the border.
        orientation: Whether masks and boxes belong to the `stored` pixels or to the picture as `displayed`, turned by Exif. `auto` goes by the stated size if only one fits, else `displayed`.
        confirmed: Facts that you have checked, and that would otherwise stop the run: no image has an object (`no_objects`); coordinates are of the images that are there, in their frame (`this_frame`); boxes and areas differ from the outlines next to them (`own_boxes`); annotations or lists name images that are not there (`absent_images`); the annotations of a split or a relabel have other classes (`other_classes`); objects have scores, as a model writes them (`predictions`); all images have the same mask of a pixel or two (`same_masks`); a table has other classes than the folders of its images (`other_folders`).
    """

def Datumaro(
    path: str | os.PathLike[str] | Sequence[str] | Mapping[str, str],
    *,
    key_regex: str | None = None,
    boxes: bool = False,
    polygons: str = "coco",
    beyond_image: str = "reject",
    orientation: str = "auto",
    confirmed: Sequence[str] = [],
) -> LabelsConfig:
    """Returns labels that are Datumaro's JSON, which CVAT exports, too: polygons, masks, boxes, ellipses, labels.

    Args:
        path: Table, JSON file or folder of the annotations, also `gs://` and `s3://`. Several files are a list, a glob, or a mapping of splits to files.
        key_regex: Regular expression for sets whose rows name images by parts of their paths: searched in the path below the image folder. The matches of its groups, joined by `_`, are the image's name. For `mask_images` this is what the group `image` of `regex` must find in the mask's path.
        boxes: Whether boxes are stored, too.
        polygons: How polygons become masks: `coco`, as `pycocotools` draws them, or `center`, the pixels whose center is inside.
        beyond_image: Boxes and outlines that reach beyond the image by more than 1 pixel and 0.5 % of its side: `reject` the image, or `clip` them at the border.
        orientation: Whether masks and boxes belong to the `stored` pixels or to the picture as `displayed`, turned by Exif. `auto` goes by the stated size if only one fits, else `displayed`.
        confirmed: Facts that you have checked, and that would otherwise stop the run: no image has an object (`no_objects`); coordinates are of the images that are there, in their frame (`this_frame`); boxes and areas differ from the outlines next to them (`own_boxes`); annotations or lists name images that are not there (`absent_images`); the annotations of a split or a relabel have other classes (`other_classes`); objects have scores, as a model writes them (`predictions`); all images have the same mask of a pixel or two (`same_masks`); a table has other classes than the folders of its images (`other_folders`).
    """

def LabelStudio(
    path: str | os.PathLike[str] | Sequence[str] | Mapping[str, str],
    *,
    key_regex: str | None = None,
    boxes: bool = False,
    polygons: str = "coco",
    beyond_image: str = "reject",
    orientation: str = "auto",
    confirmed: Sequence[str] = [],
) -> LabelsConfig:
    """Returns labels that are Label Studio's JSON: polygons, boxes, ellipses, brush strokes, choices.

    Args:
        path: Table, JSON file or folder of the annotations, also `gs://` and `s3://`. Several files are a list, a glob, or a mapping of splits to files.
        key_regex: Regular expression for sets whose rows name images by parts of their paths: searched in the path below the image folder. The matches of its groups, joined by `_`, are the image's name. For `mask_images` this is what the group `image` of `regex` must find in the mask's path.
        boxes: Whether boxes are stored, too.
        polygons: How polygons become masks: `coco`, as `pycocotools` draws them, or `center`, the pixels whose center is inside.
        beyond_image: Boxes and outlines that reach beyond the image by more than 1 pixel and 0.5 % of its side: `reject` the image, or `clip` them at the border.
        orientation: Whether masks and boxes belong to the `stored` pixels or to the picture as `displayed`, turned by Exif. `auto` goes by the stated size if only one fits, else `displayed`.
        confirmed: Facts that you have checked, and that would otherwise stop the run: no image has an object (`no_objects`); coordinates are of the images that are there, in their frame (`this_frame`); boxes and areas differ from the outlines next to them (`own_boxes`); annotations or lists name images that are not there (`absent_images`); the annotations of a split or a relabel have other classes (`other_classes`); objects have scores, as a model writes them (`predictions`); all images have the same mask of a pixel or two (`same_masks`); a table has other classes than the folders of its images (`other_folders`).
    """

def Via(
    path: str | os.PathLike[str] | Sequence[str] | Mapping[str, str],
    *,
    columns: Mapping[str, str] | None = None,
    key_regex: str | None = None,
    boxes: bool = False,
    polygons: str = "coco",
    beyond_image: str = "reject",
    orientation: str = "auto",
    confirmed: Sequence[str] = [],
) -> LabelsConfig:
    """Returns labels that are the JSON or CSV of VIA 2; `columns={"label": NAME}` names the attribute of the class.

    Args:
        path: Table, JSON file or folder of the annotations, also `gs://` and `s3://`. Several files are a list, a glob, or a mapping of splits to files.
        columns: Roles of columns: `{image: photo, label: kind, mask: rle}`. For TFRecords the columns are features, and `key` names an image.
        key_regex: Regular expression for sets whose rows name images by parts of their paths: searched in the path below the image folder. The matches of its groups, joined by `_`, are the image's name. For `mask_images` this is what the group `image` of `regex` must find in the mask's path.
        boxes: Whether boxes are stored, too.
        polygons: How polygons become masks: `coco`, as `pycocotools` draws them, or `center`, the pixels whose center is inside.
        beyond_image: Boxes and outlines that reach beyond the image by more than 1 pixel and 0.5 % of its side: `reject` the image, or `clip` them at the border.
        orientation: Whether masks and boxes belong to the `stored` pixels or to the picture as `displayed`, turned by Exif. `auto` goes by the stated size if only one fits, else `displayed`.
        confirmed: Facts that you have checked, and that would otherwise stop the run: no image has an object (`no_objects`); coordinates are of the images that are there, in their frame (`this_frame`); boxes and areas differ from the outlines next to them (`own_boxes`); annotations or lists name images that are not there (`absent_images`); the annotations of a split or a relabel have other classes (`other_classes`); objects have scores, as a model writes them (`predictions`); all images have the same mask of a pixel or two (`same_masks`); a table has other classes than the folders of its images (`other_folders`).
    """

def VocBoxes(
    path: str | os.PathLike[str] | Sequence[str] | Mapping[str, str],
    *,
    key_regex: str | None = None,
    boxes: bool = False,
    polygons: str = "coco",
    beyond_image: str = "reject",
    orientation: str = "auto",
    confirmed: Sequence[str] = [],
) -> LabelsConfig:
    """Returns labels that are a folder of Pascal VOC's XML files, boxes without masks.

    Args:
        path: Table, JSON file or folder of the annotations, also `gs://` and `s3://`. Several files are a list, a glob, or a mapping of splits to files.
        key_regex: Regular expression for sets whose rows name images by parts of their paths: searched in the path below the image folder. The matches of its groups, joined by `_`, are the image's name. For `mask_images` this is what the group `image` of `regex` must find in the mask's path.
        boxes: Whether boxes are stored, too.
        polygons: How polygons become masks: `coco`, as `pycocotools` draws them, or `center`, the pixels whose center is inside.
        beyond_image: Boxes and outlines that reach beyond the image by more than 1 pixel and 0.5 % of its side: `reject` the image, or `clip` them at the border.
        orientation: Whether masks and boxes belong to the `stored` pixels or to the picture as `displayed`, turned by Exif. `auto` goes by the stated size if only one fits, else `displayed`.
        confirmed: Facts that you have checked, and that would otherwise stop the run: no image has an object (`no_objects`); coordinates are of the images that are there, in their frame (`this_frame`); boxes and areas differ from the outlines next to them (`own_boxes`); annotations or lists name images that are not there (`absent_images`); the annotations of a split or a relabel have other classes (`other_classes`); objects have scores, as a model writes them (`predictions`); all images have the same mask of a pixel or two (`same_masks`); a table has other classes than the folders of its images (`other_folders`).
    """

def Supervisely(
    path: str | os.PathLike[str] | Sequence[str] | Mapping[str, str],
    *,
    key_regex: str | None = None,
    boxes: bool = False,
    polygons: str = "coco",
    beyond_image: str = "reject",
    orientation: str = "auto",
    confirmed: Sequence[str] = [],
) -> LabelsConfig:
    """Returns labels that are a project of Supervisely: bitmaps, polygons, rectangles and tags.

    Args:
        path: Table, JSON file or folder of the annotations, also `gs://` and `s3://`. Several files are a list, a glob, or a mapping of splits to files.
        key_regex: Regular expression for sets whose rows name images by parts of their paths: searched in the path below the image folder. The matches of its groups, joined by `_`, are the image's name. For `mask_images` this is what the group `image` of `regex` must find in the mask's path.
        boxes: Whether boxes are stored, too.
        polygons: How polygons become masks: `coco`, as `pycocotools` draws them, or `center`, the pixels whose center is inside.
        beyond_image: Boxes and outlines that reach beyond the image by more than 1 pixel and 0.5 % of its side: `reject` the image, or `clip` them at the border.
        orientation: Whether masks and boxes belong to the `stored` pixels or to the picture as `displayed`, turned by Exif. `auto` goes by the stated size if only one fits, else `displayed`.
        confirmed: Facts that you have checked, and that would otherwise stop the run: no image has an object (`no_objects`); coordinates are of the images that are there, in their frame (`this_frame`); boxes and areas differ from the outlines next to them (`own_boxes`); annotations or lists name images that are not there (`absent_images`); the annotations of a split or a relabel have other classes (`other_classes`); objects have scores, as a model writes them (`predictions`); all images have the same mask of a pixel or two (`same_masks`); a table has other classes than the folders of its images (`other_folders`).
    """

def OpenImages(
    path: str | os.PathLike[str] | Sequence[str] | Mapping[str, str],
    *,
    key_regex: str | None = None,
    boxes: bool = False,
    polygons: str = "coco",
    beyond_image: str = "reject",
    orientation: str = "auto",
    confirmed: Sequence[str] = [],
) -> LabelsConfig:
    """Returns labels that are a CSV of Open Images: boxes, classes of images, or masks in PNG files next to it.

    Args:
        path: Table, JSON file or folder of the annotations, also `gs://` and `s3://`. Several files are a list, a glob, or a mapping of splits to files.
        key_regex: Regular expression for sets whose rows name images by parts of their paths: searched in the path below the image folder. The matches of its groups, joined by `_`, are the image's name. For `mask_images` this is what the group `image` of `regex` must find in the mask's path.
        boxes: Whether boxes are stored, too.
        polygons: How polygons become masks: `coco`, as `pycocotools` draws them, or `center`, the pixels whose center is inside.
        beyond_image: Boxes and outlines that reach beyond the image by more than 1 pixel and 0.5 % of its side: `reject` the image, or `clip` them at the border.
        orientation: Whether masks and boxes belong to the `stored` pixels or to the picture as `displayed`, turned by Exif. `auto` goes by the stated size if only one fits, else `displayed`.
        confirmed: Facts that you have checked, and that would otherwise stop the run: no image has an object (`no_objects`); coordinates are of the images that are there, in their frame (`this_frame`); boxes and areas differ from the outlines next to them (`own_boxes`); annotations or lists name images that are not there (`absent_images`); the annotations of a split or a relabel have other classes (`other_classes`); objects have scores, as a model writes them (`predictions`); all images have the same mask of a pixel or two (`same_masks`); a table has other classes than the folders of its images (`other_folders`).
    """

def BoxCsv(
    path: str | os.PathLike[str] | Sequence[str] | Mapping[str, str],
    *,
    columns: Mapping[str, str] | None = None,
    key_regex: str | None = None,
    boxes: bool = False,
    polygons: str = "coco",
    beyond_image: str = "reject",
    orientation: str = "auto",
    confirmed: Sequence[str] = [],
) -> LabelsConfig:
    """Returns labels that are a CSV with a row for each box: image, class, and four edges or a corner and a size.

    Args:
        path: Table, JSON file or folder of the annotations, also `gs://` and `s3://`. Several files are a list, a glob, or a mapping of splits to files.
        columns: Roles of columns: `{image: photo, label: kind, mask: rle}`. For TFRecords the columns are features, and `key` names an image.
        key_regex: Regular expression for sets whose rows name images by parts of their paths: searched in the path below the image folder. The matches of its groups, joined by `_`, are the image's name. For `mask_images` this is what the group `image` of `regex` must find in the mask's path.
        boxes: Whether boxes are stored, too.
        polygons: How polygons become masks: `coco`, as `pycocotools` draws them, or `center`, the pixels whose center is inside.
        beyond_image: Boxes and outlines that reach beyond the image by more than 1 pixel and 0.5 % of its side: `reject` the image, or `clip` them at the border.
        orientation: Whether masks and boxes belong to the `stored` pixels or to the picture as `displayed`, turned by Exif. `auto` goes by the stated size if only one fits, else `displayed`.
        confirmed: Facts that you have checked, and that would otherwise stop the run: no image has an object (`no_objects`); coordinates are of the images that are there, in their frame (`this_frame`); boxes and areas differ from the outlines next to them (`own_boxes`); annotations or lists name images that are not there (`absent_images`); the annotations of a split or a relabel have other classes (`other_classes`); objects have scores, as a model writes them (`predictions`); all images have the same mask of a pixel or two (`same_masks`); a table has other classes than the folders of its images (`other_folders`).
    """

def Panoptic(
    path: str | os.PathLike[str] | Sequence[str] | Mapping[str, str],
    *,
    key_regex: str | None = None,
    boxes: bool = False,
    polygons: str = "coco",
    beyond_image: str = "reject",
    orientation: str = "auto",
    confirmed: Sequence[str] = [],
) -> LabelsConfig:
    """Returns labels that are a COCO panoptic file; its PNGs are in the folder of the same name next to it.

    Args:
        path: Table, JSON file or folder of the annotations, also `gs://` and `s3://`. Several files are a list, a glob, or a mapping of splits to files.
        key_regex: Regular expression for sets whose rows name images by parts of their paths: searched in the path below the image folder. The matches of its groups, joined by `_`, are the image's name. For `mask_images` this is what the group `image` of `regex` must find in the mask's path.
        boxes: Whether boxes are stored, too.
        polygons: How polygons become masks: `coco`, as `pycocotools` draws them, or `center`, the pixels whose center is inside.
        beyond_image: Boxes and outlines that reach beyond the image by more than 1 pixel and 0.5 % of its side: `reject` the image, or `clip` them at the border.
        orientation: Whether masks and boxes belong to the `stored` pixels or to the picture as `displayed`, turned by Exif. `auto` goes by the stated size if only one fits, else `displayed`.
        confirmed: Facts that you have checked, and that would otherwise stop the run: no image has an object (`no_objects`); coordinates are of the images that are there, in their frame (`this_frame`); boxes and areas differ from the outlines next to them (`own_boxes`); annotations or lists name images that are not there (`absent_images`); the annotations of a split or a relabel have other classes (`other_classes`); objects have scores, as a model writes them (`predictions`); all images have the same mask of a pixel or two (`same_masks`); a table has other classes than the folders of its images (`other_folders`).
    """

def VertexJsonl(
    path: str | os.PathLike[str] | Sequence[str] | Mapping[str, str],
    *,
    key_regex: str | None = None,
    boxes: bool = False,
    polygons: str = "coco",
    beyond_image: str = "reject",
    orientation: str = "auto",
    confirmed: Sequence[str] = [],
) -> LabelsConfig:
    """Returns labels that are JSON lines of Vertex AI: classes or boxes.

    Args:
        path: Table, JSON file or folder of the annotations, also `gs://` and `s3://`. Several files are a list, a glob, or a mapping of splits to files.
        key_regex: Regular expression for sets whose rows name images by parts of their paths: searched in the path below the image folder. The matches of its groups, joined by `_`, are the image's name. For `mask_images` this is what the group `image` of `regex` must find in the mask's path.
        boxes: Whether boxes are stored, too.
        polygons: How polygons become masks: `coco`, as `pycocotools` draws them, or `center`, the pixels whose center is inside.
        beyond_image: Boxes and outlines that reach beyond the image by more than 1 pixel and 0.5 % of its side: `reject` the image, or `clip` them at the border.
        orientation: Whether masks and boxes belong to the `stored` pixels or to the picture as `displayed`, turned by Exif. `auto` goes by the stated size if only one fits, else `displayed`.
        confirmed: Facts that you have checked, and that would otherwise stop the run: no image has an object (`no_objects`); coordinates are of the images that are there, in their frame (`this_frame`); boxes and areas differ from the outlines next to them (`own_boxes`); annotations or lists name images that are not there (`absent_images`); the annotations of a split or a relabel have other classes (`other_classes`); objects have scores, as a model writes them (`predictions`); all images have the same mask of a pixel or two (`same_masks`); a table has other classes than the folders of its images (`other_folders`).
    """

def Labelbox(
    path: str | os.PathLike[str] | Sequence[str] | Mapping[str, str],
    *,
    key_regex: str | None = None,
    boxes: bool = False,
    polygons: str = "coco",
    beyond_image: str = "reject",
    orientation: str = "auto",
    confirmed: Sequence[str] = [],
) -> LabelsConfig:
    """Returns labels that are Labelbox's export as JSON lines: polygons, boxes and classifications.

    Args:
        path: Table, JSON file or folder of the annotations, also `gs://` and `s3://`. Several files are a list, a glob, or a mapping of splits to files.
        key_regex: Regular expression for sets whose rows name images by parts of their paths: searched in the path below the image folder. The matches of its groups, joined by `_`, are the image's name. For `mask_images` this is what the group `image` of `regex` must find in the mask's path.
        boxes: Whether boxes are stored, too.
        polygons: How polygons become masks: `coco`, as `pycocotools` draws them, or `center`, the pixels whose center is inside.
        beyond_image: Boxes and outlines that reach beyond the image by more than 1 pixel and 0.5 % of its side: `reject` the image, or `clip` them at the border.
        orientation: Whether masks and boxes belong to the `stored` pixels or to the picture as `displayed`, turned by Exif. `auto` goes by the stated size if only one fits, else `displayed`.
        confirmed: Facts that you have checked, and that would otherwise stop the run: no image has an object (`no_objects`); coordinates are of the images that are there, in their frame (`this_frame`); boxes and areas differ from the outlines next to them (`own_boxes`); annotations or lists name images that are not there (`absent_images`); the annotations of a split or a relabel have other classes (`other_classes`); objects have scores, as a model writes them (`predictions`); all images have the same mask of a pixel or two (`same_masks`); a table has other classes than the folders of its images (`other_folders`).
    """

def LabelJsonl(
    path: str | os.PathLike[str] | Sequence[str] | Mapping[str, str],
    *,
    columns: Mapping[str, str] | None = None,
    key_regex: str | None = None,
    boxes: bool = False,
    polygons: str = "coco",
    beyond_image: str = "reject",
    orientation: str = "auto",
    confirmed: Sequence[str] = [],
) -> LabelsConfig:
    """Returns labels that are JSON lines with the class of each image, or with boxes, as Hugging Face writes them.

    Args:
        path: Table, JSON file or folder of the annotations, also `gs://` and `s3://`. Several files are a list, a glob, or a mapping of splits to files.
        columns: Roles of columns: `{image: photo, label: kind, mask: rle}`. For TFRecords the columns are features, and `key` names an image.
        key_regex: Regular expression for sets whose rows name images by parts of their paths: searched in the path below the image folder. The matches of its groups, joined by `_`, are the image's name. For `mask_images` this is what the group `image` of `regex` must find in the mask's path.
        boxes: Whether boxes are stored, too.
        polygons: How polygons become masks: `coco`, as `pycocotools` draws them, or `center`, the pixels whose center is inside.
        beyond_image: Boxes and outlines that reach beyond the image by more than 1 pixel and 0.5 % of its side: `reject` the image, or `clip` them at the border.
        orientation: Whether masks and boxes belong to the `stored` pixels or to the picture as `displayed`, turned by Exif. `auto` goes by the stated size if only one fits, else `displayed`.
        confirmed: Facts that you have checked, and that would otherwise stop the run: no image has an object (`no_objects`); coordinates are of the images that are there, in their frame (`this_frame`); boxes and areas differ from the outlines next to them (`own_boxes`); annotations or lists name images that are not there (`absent_images`); the annotations of a split or a relabel have other classes (`other_classes`); objects have scores, as a model writes them (`predictions`); all images have the same mask of a pixel or two (`same_masks`); a table has other classes than the folders of its images (`other_folders`).
    """
