"""Every format with every mutation is right, a question or a refusal; never another dataset with exit code 0."""

import random
import re
import shlex
import shutil
import zlib
from dataclasses import dataclass

import numpy as np
import pytest
from ingesting import examples, ledger
from mutated_sets import COMBINATIONS, MUTATIONS, QUESTION, REFUSAL, RIGHT, SETS
from odd_aerial import ODD as ODD_AERIAL
from odd_classes import ODD as ODD_CLASSES
from odd_coco import ODD as ODD_COCO
from odd_exports import ODD as ODD_EXPORTS
from odd_folders import ODD as ODD_FOLDERS
from odd_industry import ODD as ODD_INDUSTRY
from odd_kinds import ODD as ODD_KINDS
from odd_lists import ODD as ODD_LISTS
from odd_medicine import ODD as ODD_MEDICINE
from odd_names import ODD as ODD_NAMES
from odd_paired import ODD as ODD_PAIRED
from odd_sets import ODD as ODD_SETS
from odd_stated import ODD as ODD_STATED
from odd_streets import ODD as ODD_STREETS
from odd_tables import ODD as ODD_TABLES
from odd_tools import ODD as ODD_TOOLS

from shardwright.dataset.reader import ImageDataset
from shardwright.label_formats import FORMATS
from shardwright.pipelines.cli import main

SAMPLE = 24
ODD = ODD_SETS | ODD_COCO | ODD_EXPORTS | ODD_TABLES | ODD_FOLDERS | ODD_STREETS | ODD_NAMES | ODD_CLASSES | ODD_TOOLS
ODD |= ODD_MEDICINE | ODD_AERIAL | ODD_INDUSTRY | ODD_LISTS | ODD_KINDS | ODD_PAIRED
ODD |= {name if name not in ODD else f"{name} of images": odd for name, odd in ODD_STATED.items()}
EDGES = ("xmin", "ymin", "xmax", "ymax")


@dataclass(frozen=True)
class Result:
    """What a folder became.

    Attributes:
        kind: `right` with exit code 0, `question` or `refusal`.
        wrong: what the dataset has that is not the truth, or lacks of it, or why the answers are wrong.
        printed: what the user saw.
    """

    kind: str
    wrong: tuple[str, ...]
    printed: str


def run(here, arguments, truth, drawn_set, capsys):
    """Returns what `init` and `ingest` make of a folder; of a question, what comes of each of its answers."""
    code, printed = call(["init", *arguments, "--out", str(here / "c.yaml")], capsys)
    commands = re.findall(r"^ *shardwright (init .*)\n *# .*$", printed, re.M) if code else []
    if commands:
        return Result(QUESTION, tuple(wrong_answers(here, commands, truth, drawn_set, capsys)), printed)
    if code == 0:
        code, more = call(["ingest", str(here / "c.yaml"), "--out", str(here / "out")], capsys)
        printed += more
        assert code == 0, f"init wrote a configuration that an ingest stops for\n{printed}"
    if code:
        assert not (here / "out").exists()
        return Result(REFUSAL, (), printed)
    return Result(RIGHT, tuple(differences(here / "out", truth, drawn_set)) if truth else (), printed)


def call(arguments, capsys):
    code = main(arguments)
    printed = "".join(capsys.readouterr())
    assert "Traceback" not in printed
    assert code in (0, 1, 2)
    return code, printed


def wrong_answers(here, commands, truth, drawn_set, capsys):
    """Pastes each answer; where there is a truth, one must give it."""
    found = []
    for command in commands:
        shutil.rmtree(here / "out", ignore_errors=True)
        code, printed = call([*shlex.split(command), "--force"], capsys)
        if code:
            found.append(f"{command} ends with {code}: {printed}")
            continue
        code, printed = call(["ingest", str(here / "c.yaml"), "--out", str(here / "out")], capsys)
        wrong = differences(here / "out", truth, drawn_set) if code == 0 and truth else [f"exit {code}: {printed}"]
        if code == 0 and not wrong:
            return []
        found.append(f"{command}: {wrong[0]}")
    return found if truth else []


def drawn(example, name):
    height, width = (int(example[f"image/{side}"][0]) for side in ("height", "width"))
    pixels = np.zeros(height * width, np.uint8)
    flat = example[f"image/segmentation/{name}/rle"].tolist()
    for start, length in zip(flat[::2], flat[1::2], strict=True):
        pixels[start : start + length] = 1
    return pixels.reshape(width, height).T


def differences(out, truth, drawn_set):
    """What a dataset has that is not the truth, or lacks of it."""
    found = {key.rpartition("/")[2]: example for key, example in examples(out).items()}
    wanted = {key.rpartition("/")[2]: classes for key, classes in truth.items()}
    if drawn_set.unlisted_empty:
        found = {key: example for key, example in found.items() if key in wanted or len(example["image/class/text"])}
    lost = [key for key, row in ledger(out).items() if row.status == "rejected" and key.rpartition("/")[2] in wanted]
    wrong = [f"further image {key}" for key in found.keys() - wanted.keys()]
    wrong += [f"missing image {key}" for key in wanted.keys() - found.keys()] + [f"rejected {key}" for key in lost]
    for key in found.keys() & wanted.keys():
        wrong += [f"{key}: {problem}" for problem in _differences(found[key], wanted[key], drawn_set.has)]
    return wrong


def _differences(example, classes, has):
    if has == "values":
        return [name for name, value in classes.items() if list(example.get(name, ())) != value]
    labels = [text.decode() for text in example["image/class/text"]]
    if sorted(labels) != sorted(classes):
        return [f"classes {labels}, not {sorted(classes)}"]
    if has == "masks":
        return [f"another mask of {name}" for name, mask in classes.items() if not equal(drawn(example, name), mask)]
    return ["other boxes"] if has == "boxes" and not equal_boxes(example, classes.values()) else []


def equal(one, other):
    return one.shape == other.shape and np.array_equal(one, other)


def equal_boxes(example, masks):
    """Compares the boxes of an example with those around masks, in their order."""
    height, width = (int(example[f"image/{side}"][0]) for side in ("height", "width"))
    edges = np.stack([example.get(f"image/object/bbox/{edge}", np.zeros(0)) for edge in EDGES], axis=1)
    around = []
    for mask in masks:
        rows, columns = np.flatnonzero(mask.any(1)), np.flatnonzero(mask.any(0))
        around.append([columns[0], rows[0], columns[-1] + 1, rows[-1] + 1])
    if len(edges) != len(around):
        return False
    found = sorted((edges * [width, height, width, height]).tolist())
    return np.allclose(found, sorted(np.reshape(around, (-1, 4)).tolist()), atol=0.5)


def check(here, name, mutation, capsys):
    drawn_set = SETS[name]
    truth = drawn_set.draw(here / "data")
    seed = zlib.crc32(f"{name} {mutation}".encode())
    truth = MUTATIONS[mutation].apply(here / "data", truth, random.Random(seed))
    result = run(here, drawn_set.named(here / "data"), truth, drawn_set, capsys)
    allowed = MUTATIONS[mutation].allowed(drawn_set)
    assert result.kind in allowed, (result.kind, result.wrong[:5], result.printed)
    # Images of another size have no truth in these pixels.
    assert not result.wrong, "\n".join([result.kind, *result.wrong[:5], result.printed])
    if result.kind != RIGHT:
        assert re.search(MUTATIONS[mutation].cause, result.printed), result.printed


def test_every_format_has_a_set():
    assert {drawn_set.format for drawn_set in SETS.values()} == {row.name for row in FORMATS}


def ids(value):
    return value.replace(" ", "-")


@pytest.mark.parametrize(("name", "mutation"), random.Random(44).sample(COMBINATIONS, SAMPLE), ids=ids)
def test_a_sample_is_never_another_dataset(tmp_path, name, mutation, capsys):
    check(tmp_path, name, mutation, capsys)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "mutation"), COMBINATIONS, ids=ids)
def test_it_is_never_another_dataset(tmp_path, name, mutation, capsys):
    check(tmp_path, name, mutation, capsys)


def check_odd(here, name, capsys):
    odd = ODD[name]
    truth = odd.draw(here / "data")
    result = run(here, [str(here / "data"), *odd.further], truth, odd, capsys)
    assert result.kind in odd.allowed, (result.kind, result.wrong[:5], result.printed)
    assert not result.wrong, "\n".join([result.kind, *result.wrong[:5], result.printed])
    if result.kind != RIGHT:
        assert re.search(odd.cause, result.printed), result.printed
    elif odd.tested:
        found = {key.rpartition("/")[2] for key, _ in ImageDataset.open(here / "out").records("test")}
        assert found == set(odd.tested)


REPORTED = [pytest.param(name, marks=[pytest.mark.slow] * (i % 6 > 0)) for i, name in enumerate(ODD)]


@pytest.mark.parametrize("name", REPORTED)
def test_what_users_reported_is_never_another_dataset(tmp_path, name, capsys):
    check_odd(tmp_path, name, capsys)
