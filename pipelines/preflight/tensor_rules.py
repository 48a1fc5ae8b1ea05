"""Rules on the tensors for the devices: shapes, types, and the sizes of images."""

from __future__ import annotations

from collections.abc import Iterator

from shardwright.config.trainer import COMPACT
from shardwright.pipelines.preflight.rule_report import Problem, problem_if
from shardwright.pipelines.preflight.run_facts import Facts

ON_DEVICES = ("bfloat16", "float32", "uint8", "int8", "int32", "bool")
# By how much the sides of an image shrink inside the models (components/image_trainer/models/compact.py), with our own
# encoder and with others.
STRIDES = {"unet": 16, "deeplab": 16, "cnn": 32}
_OTHERS_STRIDE = 32


def loads(facts: Facts) -> Iterator[Problem]:
    """Checks that the loader gives batches of the dataset, with the options of the configuration."""
    yield from problem_if(bool(facts.data.refusal), "loader", facts.data.refusal.rstrip("."), "Fix that first.")


def fixed_shapes(facts: Facts) -> Iterator[Problem]:
    """Checks that every batch has the same shape: XLA compiles again for each other one."""
    for fed in facts.data.fed:
        yield from problem_if(
            None in fed.shape,
            "loader",
            f"{fed.name} has the shape {_shape(fed.shape)}: sides shown as ? may differ from batch to batch",
            "Leave out incomplete batches (drop_remainder), or pad them, and give all images one size.",
        )


def one_size(facts: Facts) -> Iterator[Problem]:
    """Checks that all images have one size."""
    if facts.dataset is None:
        yield from problem_if(
            facts.config.transform.size is None,
            "transform.resize",
            f"{facts.config.transform.resize!r} leaves images the sizes they have",
            "Use stretch, fill_crop or letterbox, and a transform.size.",
        )
        return
    sizes = facts.dataset.sizes
    if len(sizes) > 1:
        some = ", ".join(f"{height} x {width}" for height, width in sizes[:3])
        more = ", ..." if len(sizes) > 3 else ""
        yield Problem(
            "transform.size",
            f"{facts.dataset.root}: {len(sizes)} sizes among {facts.dataset.sampled} images: {some}{more}",
            "Give the dataset that ImageTransform wrote, with transform.resize other than keep.",
        )


def size_as_configured(facts: Facts) -> Iterator[Problem]:
    """Checks that the dataset has the size that the configuration trains on."""
    wanted, sizes = facts.config.transform.size, facts.data.sizes
    # With `transform.resize: keep` there is no size to compare with.
    if wanted is not None and facts.data.kind == "transform" and len(sizes) == 1:
        yield from problem_if(
            sizes[0] != wanted,
            "transform.size",
            f"{list(wanted)}, and the images of {facts.data.root} have {list(sizes[0])}",
            "Transform the dataset again, or correct transform.size.",
        )


def no_strings(facts: Facts) -> Iterator[Problem]:
    """Checks that no text goes to a device."""
    for fed in facts.data.fed:
        yield from problem_if(
            fed.dtype == "string", "loader", f"{fed.name} is text, which no TPU takes", "Leave it out of the batches."
        )


def device_types(facts: Facts) -> Iterator[Problem]:
    """Numbers have types that a TPU computes in."""
    for fed in facts.data.fed:
        yield from problem_if(
            fed.dtype not in (*ON_DEVICES, "string"),
            "loader",
            f"{fed.name} is {fed.dtype}, which is cut to half its bits or emulated on a TPU",
            f"Use one of: {', '.join(ON_DEVICES)}.",
        )


def sides_fit_stride(facts: Facts) -> Iterator[Problem]:
    """Checks that the model need not pad the image to its stride."""
    stride = _stride(facts)
    if stride is None:
        return
    height, width = facts.size
    padded = [-(-side // stride) * stride for side in (height, width)]
    wasted = padded[0] * padded[1] / (height * width) - 1
    yield from problem_if(
        padded != [height, width],
        "transform.size",
        f"[{height}, {width}] is padded to {padded} inside {facts.model} (stride {stride}): {wasted:.1%} more pixels",
        f"Use multiples of {stride}: {padded}.",
    )


def larger_than_stride(facts: Facts) -> Iterator[Problem]:
    """Checks that the image is not smaller than what the model shrinks to one pixel."""
    stride = _stride(facts)
    height, width = facts.size
    yield from problem_if(
        stride is not None and min(height, width) < stride,
        "transform.size",
        f"[{height}, {width}] has a side below the stride {stride} of {facts.model}",
        f"Use at least {stride} for both sides.",
    )


def turns_are_square(facts: Facts) -> Iterator[Problem]:
    """Checks that quarter turns keep the shape."""
    height, width = facts.size
    yield from problem_if(
        "rotate90" in facts.config.loader.augment and height != width,
        "loader.augment",
        f"rotate90 turns {height} x {width} into {width} x {height}",
        "Remove rotate90, or set a square transform.size.",
    )


def _stride(facts: Facts) -> int | None:
    """Returns the model's stride; `None` for a custom model, or if no size is known."""
    known = STRIDES.get(facts.model)
    if known is None or (facts.dataset is None and facts.config.transform.size is None):
        return None
    return known if facts.config.trainer.encoder == COMPACT else _OTHERS_STRIDE


def _shape(shape: tuple[int | None, ...]) -> str:
    return "[" + ", ".join("?" if side is None else str(side) for side in shape) + "]"
