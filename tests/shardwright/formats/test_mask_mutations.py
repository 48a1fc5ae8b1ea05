"""Sets of masks with known truth, each with one assumption broken: the outcome is the truth, a question with an answer
that gives the truth, or a refusal that names the cause; never another dataset without a word.
"""

import copy
import io
import re

import numpy as np
import pytest
from PIL import Image

from shardwright.config.yaml_config import parse_config
from shardwright.errors import CheckFailed, UsageError
from shardwright.formats.base import IGNORE
from shardwright.ingest.recipe import IngestRecipe, locate
from shardwright.ingest.survey import survey_input
from shardwright.masks import rle
from shardwright.masks.rle import RleError

FILES, SIZE = 6, 96
COLORS = [(0, 0, 0), (200, 30, 40), (20, 180, 60), (40, 60, 220)]
FRAME = 16


def drawn(number, classes, fine=1):
    """Numbers of classes in an image, drawn `fine` times as large: discs that do not touch the frame."""
    random = np.random.default_rng([3, number])
    rows, columns = np.mgrid[: SIZE * fine, : SIZE * fine] / fine
    ids = np.zeros(rows.shape, np.uint8)
    for label in range(1, classes + 1):
        row, column = random.uniform(24, SIZE - 24, 2)
        ids[(rows - row) ** 2 + (columns - column) ** 2 < random.uniform(9, 15) ** 2] = label
    return ids


def bordered(ids):
    """VOC's border of 255 around objects."""
    wide = np.zeros_like(ids, bool)
    for dy in (-2, -1, 0, 1, 2):
        for dx in (-2, -1, 0, 1, 2):
            wide |= np.roll(ids > 0, (dy, dx), (0, 1))
    return np.where(wide & (ids == 0), 255, ids).astype(np.uint8)


def png(pixels, palette=None):
    image = Image.fromarray(pixels)
    if palette is not None:
        image.putpalette(np.asarray(palette, np.uint8).reshape(-1).tolist())
    data = io.BytesIO()
    image.save(data, "png")
    return data.getvalue()


def reordered(numbers, colors, seed):
    """A palette PNG as an optimizer writes it: the order of the palette is the file's own."""
    order = np.random.default_rng(seed).permutation(len(colors))
    place = np.argsort(order).astype(np.uint8)
    return png(place[numbers], np.asarray(colors)[order])


def jpeg(pixels, *, again_as_png):
    data = io.BytesIO()
    Image.fromarray(pixels).save(data, "jpeg", quality=85)
    return png(np.asarray(Image.open(data))) if again_as_png else data.getvalue()


def tiff(pixels, photometric=1):
    """A TIFF of 8 bits; with 0 as its photometric interpretation white is stored as 0."""
    rows, columns = pixels.shape
    tags = [(256, columns), (257, rows), (258, 8), (259, 1), (262, photometric), (273, 134), (277, 1), (278, rows)]
    tags.append((279, rows * columns))
    entries = b"".join(
        tag.to_bytes(2, "little") + b"\4\0" + b"\1\0\0\0" + value.to_bytes(4, "little") for tag, value in tags
    )
    head = b"II*\0\x08\0\0\0" + len(tags).to_bytes(2, "little") + entries + b"\0\0\0\0"
    return head.ljust(134, b"\0") + pixels.tobytes()


def soft(number, level=255):
    fine = (drawn(number, 1, 4) > 0).astype(float)
    return (fine.reshape(SIZE, 4, SIZE, 4).mean((1, 3)) * level).round().astype(np.uint8)


class Base:
    """A set: `values[k]` is how class k is stored, `kind` the kind of its files."""

    def __init__(self, values, kind="gray", classes=1, border=False):
        self.values, self.kind, self.classes, self.border = np.asarray(values, np.uint8), kind, classes, border

    def truth(self, number):
        ids = drawn(number, self.classes)
        return bordered(ids) if self.border else ids

    def numbers(self, number):
        truth = self.truth(number)
        return np.where(truth == 255, 255, self.values[np.minimum(truth, self.classes)]).astype(np.uint8)

    def file(self, number):
        if self.kind == "rgb":
            return png(np.asarray(COLORS, np.uint8)[drawn(number, self.classes)])
        palette = None
        if self.kind == "palette":
            palette = [*COLORS, *[(0, 0, 0)] * 251, (224, 224, 192)]
        if self.kind == "gray palette":
            palette = [(40 * i, 40 * i, 40 * i) for i in range(6)]
        return png(self.numbers(number), palette)


BASES = {
    "0/255": Base([0, 255]),
    "0/1": Base([0, 1]),
    "ids": Base([0, 1, 2, 3], classes=3),
    "ids, border": Base([0, 1, 2, 3], classes=3, border=True),
    "palette": Base([0, 1, 2, 3], "palette", 3),
    "palette, border": Base([0, 1, 2, 3], "palette", 3, border=True),
    "gray palette": Base([0, 1, 2, 3], "gray palette", 3),
    "rgb": Base([0, 1, 2, 3], "rgb", 3),
    "grays": Base([0, 80, 160, 240], classes=3),
}
RIGHT, QUESTION, REFUSAL = "right", "question", "refusal"


def in_colors(base, number):
    return png(np.asarray(COLORS, np.uint8)[np.minimum(drawn(number, base.classes), 3)])


def with_pixel(base, number, value):
    pixels = base.numbers(number)
    pixels[3, 5] = value
    return png(pixels)


def random_palette(base, number):
    colors = np.random.default_rng([7, number]).integers(1, 255, (256, 3))
    return png(base.numbers(number), [(0, 0, 0), *colors[1:]])


def smoothed(base, number):
    fine = np.asarray(COLORS, float)[drawn(number, base.classes, 4)]
    return png(fine.reshape(SIZE, 4, SIZE, 4, 3).mean((1, 3)).round().astype(np.uint8))


def interpolated(base, number):
    image = Image.fromarray(base.numbers(number)).resize((SIZE * 2 // 3, SIZE * 2 // 3), Image.BILINEAR)
    return png(np.asarray(image.resize((SIZE, SIZE), Image.BILINEAR)))


def alpha(base, number, color=255):
    pixels = np.full((SIZE, SIZE, 4), color, np.uint8)
    pixels[..., 3] = np.where(drawn(number, base.classes) > 0, 255, 0)
    return png(pixels)


ONE, GRAYS = ("0/255", "0/1"), ("0/255", "0/1", "ids", "ids, border", "grays")
LOSSY = ("JPEG in a PNG", "JPEG", "interpolated", "smoothed colors")
# Mutation -> bases, and the bytes of a mutated file.
MUTATIONS = {
    "none": (tuple(BASES), lambda base, number: base.file(number)),
    "soft edges": (("0/255",), lambda base, number: png(soft(number))),
    "smoothed colors": (("rgb",), lambda base, number: smoothed(base, number)),
    "soft edges of 16 bits": (("0/255",), lambda base, number: png(soft(number).astype(np.uint16) * np.uint16(257))),
    "a stray pixel": (GRAYS, lambda base, number: with_pixel(base, number, 7)),
    "0/255 for 0/1 and back": (
        ONE,
        lambda base, number: png((drawn(number, 1) * np.uint16(256 - int(base.values[1]))).astype(np.uint8)),
    ),
    "1 bit": (ONE, lambda base, number: png(drawn(number, 1) > 0)),
    "16 bits": (ONE, lambda base, number: png((drawn(number, 1) > 0) * np.uint16(65535))),
    "in colors": (("0/255", "ids", "palette", "gray palette"), in_colors),
    "palette reordered": (
        ("rgb", "palette"),
        lambda base, number: reordered(drawn(number, base.classes), COLORS[: base.classes + 1], number),
    ),
    "gray palette reordered": (
        ("0/255", "grays", "ids"),
        lambda base, number: reordered(drawn(number, base.classes), [[v] * 3 for v in base.values], number),
    ),
    "palette of other colors": (("palette", "palette, border"), random_palette),
    "JPEG in a PNG": (GRAYS, lambda base, number: jpeg(base.numbers(number), again_as_png=True)),
    "JPEG": (GRAYS, lambda base, number: jpeg(base.numbers(number), again_as_png=False)),
    "white is 0": (GRAYS, lambda base, number: tiff(255 - base.numbers(number), 0)),
    "white is 0, stored as if not": (("0/255",), lambda base, number: tiff(base.numbers(number), 0)),
    "inverted": (("0/255",), lambda base, number: png(255 - base.numbers(number))),
    "interpolated": (GRAYS, interpolated),
    "twice as large": (tuple(BASES), lambda base, number: larger(base.file(number))),
    "opacity": (ONE, alpha),
    "opacity of black": (ONE, lambda base, number: alpha(base, number, 0)),
    "as GIF": (GRAYS, lambda base, number: gif(base.numbers(number))),
}


def larger(mask):
    data = io.BytesIO()
    Image.open(io.BytesIO(mask)).resize((2 * SIZE, 2 * SIZE), Image.NEAREST).save(data, "png")
    return data.getvalue()


def gif(pixels):
    data = io.BytesIO()
    Image.fromarray(pixels).save(data, "gif")
    return data.getvalue()


def ending(data):
    kinds = {b"\x89PNG": ".png", b"II*\0": ".tif", b"GIF8": ".gif", b"\xff\xd8\xff\xe0": ".jpg"}
    return kinds[data[:4]]


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    folder = tmp_path_factory.mktemp("images")
    for number in range(FILES):
        noise = np.random.default_rng(number).integers(0, 255, (SIZE, SIZE, 3), np.uint8)
        Image.fromarray(noise).save(folder / f"{number:02}.jpg")
    return folder


def write(folder, base, mutate, mutated):
    for number in range(FILES):
        data = mutate(base, number) if number in mutated else base.file(number)
        (folder / f"{number:02}{ending(data)}").write_bytes(data)


def configuration(images, masks):
    labels = {"path": str(masks), "format": "mask_images"}
    return {"task": "segmentation", "input": {"images": str(images), "labels": labels}}


def answered(raw, options):
    raw = copy.deepcopy(raw)
    for path, value in options.items():
        *sections, last = path.split(".")
        place = raw
        for section in sections:
            place = place.setdefault(section, {})
        place[last] = value
    return raw


def masks_of(raw):
    """Returns image -> class -> mask, of an input as it would be written; `CheckFailed` where one is rejected."""
    config = parse_config(raw, base="/")
    surveyed = survey_input(IngestRecipe.of(config), locate(config))
    if surveyed.rejected or surveyed.survey.refused:
        raise CheckFailed(str([*surveyed.rejected.values(), *surveyed.survey.refused][0]))
    found = {i: {} for i in range(len(surveyed.listing.keys))}
    for annotation in surveyed.source.annotations():
        try:
            runs = surveyed.source.dialect.masks(annotation.label, annotation.text, height=SIZE, width=SIZE)
            for label, one in runs:
                name = "ignore" if label == IGNORE else surveyed.survey.classes[label]
                mask = found[annotation.image].setdefault(name, np.zeros((SIZE, SIZE), bool))
                mask |= rle.draw(one, SIZE, SIZE) > 0
        except RleError as error:
            raise CheckFailed(str(error)) from None
    return found


def is_truth(found, truth, lossy=False):
    """Returns whether the classes are those of the truth, under any names.

    Where the mutation lost pixels, nearly all of each class must be there, but for those that are ignored.
    """
    empty = np.zeros((SIZE, SIZE), bool)
    ignored = np.stack([found[i].get("ignore", empty) for i in found])
    classes = {name for masks in found.values() for name in masks} - {"ignore"}
    have = [np.stack([found[i].get(name, empty) for i in found]) for name in classes]
    values = {value for one in truth for value in np.unique(one).tolist()} - {0, 255}
    want = [np.stack([one == value for one in truth]) for value in values]
    void = np.stack([one == 255 for one in truth])
    have = [one for one in have if one.any()]
    if len(have) != len(want) or not (lossy or np.array_equal(ignored, void)):
        return False
    counts = ~ignored & ~void if lossy else np.ones_like(ignored)
    least = 0.8 if lossy else 1
    return all(max(overlap(one & counts, other & counts) for other in have) >= least for one in want)


def overlap(one, other):
    return (one & other).sum() / max(1, (one | other).sum())


def outcome(raw, truth, lossy=False, depth=3):
    """Returns what happens: `RIGHT`, `QUESTION`, `REFUSAL` or an error of ours, and the message."""
    try:
        return (RIGHT if is_truth(masks_of(raw), truth, lossy) else "WRONG"), ""
    except (UsageError, CheckFailed) as error:
        readings, message = error.readings, str(error)
    if not readings or not depth:
        return REFUSAL, message
    answers = [outcome(answered(raw, reading.options), truth, lossy, depth - 1) for reading in readings]
    kinds = [kind for kind, _ in answers]
    # A single reading is taken by `init` without a question.
    if len(kinds) == 1:
        return answers[0][0], answers[0][1] or message
    if len(kinds) > 1 and REFUSAL in kinds:
        return f"an answer leads nowhere: {answers[kinds.index(REFUSAL)][1]}", message
    return (QUESTION if RIGHT in kinds or QUESTION in kinds else f"no answer is right: {kinds}"), message


CASES = [(mutation, base, count) for mutation in MUTATIONS for base in MUTATIONS[mutation][0] for count in (FILES, 1)]
# One object in white on black among black on white is an annotation, not a way to write it.
CASES.remove(("inverted", "0/255", 1))


def sampled(cases):
    """Marks most of the cases as slow."""
    return [pytest.param(*case, marks=[pytest.mark.slow] if i % 5 else []) for i, case in enumerate(cases)]


def mutated(folder, mutation, base, count):
    """Writes the masks, of which the last `count` are mutated, and returns what each of them means."""
    numbers = range(FILES)[-count:]
    write(folder, BASES[base], MUTATIONS[mutation][1], numbers)
    truth = [BASES[base].truth(number) for number in range(FILES)]
    if "soft" in mutation:
        truth = [(soft(n) >= 128).astype(np.uint8) if n in numbers else one for n, one in enumerate(truth)]
    return truth


@pytest.mark.parametrize(("mutation", "base", "count"), sampled(CASES))
def test_no_mutation_gives_another_dataset(tmp_path, images, mutation, base, count):
    truth = mutated(tmp_path, mutation, base, count)
    kind, message = outcome(configuration(images, tmp_path), truth, mutation in LOSSY)
    assert kind in (RIGHT, QUESTION, REFUSAL), (kind, message)
    if mutation == "none":
        assert kind == RIGHT, message


STATED = [case for case in CASES if case[0] not in LOSSY and case[1] != "rgb" and "inverted" not in case[0]]


@pytest.mark.parametrize(("mutation", "base", "count"), sampled(STATED))
def test_no_mutation_gives_another_dataset_where_the_numbers_are_stated(tmp_path, images, mutation, base, count):
    truth = mutated(tmp_path, mutation, base, count)
    stated = {
        f"c{label}": int(value) for label, value in enumerate(BASES[base].values[: BASES[base].classes + 1]) if label
    }
    raw = configuration(images, tmp_path)
    for others in ("refuse", "background"):
        options = {"input.classes": stated, "input.labels.unlisted_values": others}
        kind, message = outcome(answered(raw, options), truth)
        if others == "background" and any(word in f"{base} {mutation}" for word in ("border", "soft", "in colors")):
            continue  # It says itself that further values are background.
        assert kind in (RIGHT, QUESTION, REFUSAL), (others, kind, message)
        if mutation == "none":
            assert kind == RIGHT, message


def numbered(numbers):
    return lambda base, number: png(np.asarray(numbers, np.uint8)[drawn(number, len(numbers) - 1)])


@pytest.mark.parametrize(
    ("mutate", "stated", "message"),
    [
        (numbered([0, 255]), {"classes": ["car", "road"]}, "car (1), road (2); their values are 255"),
        (
            numbered([0, 1]),
            {"classes": ["car"], "labels.threshold": 128},
            "no pixel reaches input.labels.threshold, 128",
        ),
        (in_colors, {"classes": {"car": "#00ff00"}, "labels.unlisted_values": "background"}, "car (#00ff00); their"),
        (numbered([0, 1, 2]), {"classes": {"car": 5, "road": 6}, "labels.unlisted_values": "ignore"}, "car (5), road"),
    ],
)
def test_masks_without_any_class_of_the_configuration_are_refused(tmp_path, images, mutate, stated, message):
    write(tmp_path, BASES["0/1"], mutate, range(FILES))
    raw = answered(configuration(images, tmp_path), {f"input.{path}": value for path, value in stated.items()})
    with pytest.raises(UsageError, match=re.escape(message)):
        masks_of(raw)


def test_a_threshold_of_masks_for_each_class_that_no_pixel_reaches_is_refused(tmp_path, images):
    (tmp_path / "car").mkdir()
    write(tmp_path / "car", BASES["0/1"], numbered([0, 1]), range(FILES))
    with pytest.raises(UsageError, match="no pixel reaches input.labels.threshold, 128; the largest value is 1"):
        masks_of(answered(configuration(images, tmp_path), {"input.labels.threshold": 128}))


def test_masks_that_are_empty_have_no_class_to_miss(tmp_path, images):
    write(tmp_path, BASES["0/1"], lambda base, number: png(np.zeros((SIZE, SIZE), np.uint8)), range(FILES))
    assert not any(masks_of(answered(configuration(images, tmp_path), {"input.classes": {"car": 1}})).values())


def test_as_many_names_as_values_may_count_from_0_or_from_1(tmp_path, images):
    write(tmp_path, BASES["ids"], numbered([0, 1, 2]), range(FILES))
    raw = answered(configuration(images, tmp_path), {"input.classes": ["sky", "car", "road"]})
    with pytest.raises(UsageError, match="3 names, and the values are 0 to 2") as raised:
        masks_of(raw)
    from_0, from_1 = (masks_of(answered(raw, reading.options))[0] for reading in raised.value.readings)
    assert np.array_equal(from_0["car"], from_1["sky"])
    assert np.array_equal(from_0["road"], from_1["car"])
    assert np.array_equal(from_0["sky"], ~from_1["sky"] & ~from_1["car"])
