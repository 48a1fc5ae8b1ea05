"""Every format with every mutation is right, a question or a refusal; never another dataset with exit code 0."""

import random
import zlib

import numpy as np
import pytest
import yaml
from ingesting import examples, ledger
from layouts import HEIGHT, WIDTH
from mutated_sets import MUTATIONS, QUESTION, REFUSAL, RIGHT, SETS

from shardwright.pipelines.cli import main

SAMPLE = 24
COMBINATIONS = [(name, mutation) for name in SETS for mutation in MUTATIONS]
EDGES = ("xmin", "ymin", "xmax", "ymax")


def outcome(here, name, mutation, capsys):
    """What `init` and `ingest` make of a mutated set: the outcome, what was printed, and the truth."""
    drawn = SETS[name]
    truth = drawn.draw(here / "data")
    seed = zlib.crc32(f"{name} {mutation}".encode())
    truth = MUTATIONS[mutation].apply(here / "data", truth, random.Random(seed))
    code = main(["init", *drawn.named(here / "data"), "--out", str(here / "c.yaml")])
    printed = "".join(capsys.readouterr())
    if code == 0:
        code = main(["ingest", str(here / "c.yaml"), "--out", str(here / "out")])
        printed += "".join(capsys.readouterr())
        assert code == 0, f"init wrote a configuration that an ingest stops for\n{printed}"
    assert "Traceback" not in printed
    assert code in (0, 1, 2)
    if code:
        assert not (here / "out").exists()
    return (RIGHT, QUESTION, REFUSAL)[{0: 0, 2: 1, 1: 2}[code]], printed, truth


def drawn(flat):
    pixels = np.zeros(HEIGHT * WIDTH, np.uint8)
    for start, length in zip(flat[::2], flat[1::2], strict=True):
        pixels[start : start + length] = 1
    return pixels.reshape(WIDTH, HEIGHT).T


def differences(out, truth, drawn_set):
    """What a dataset has that is not the truth, or lacks of it."""
    has = drawn_set.has
    found = {key.rpartition("/")[2]: example for key, example in examples(out).items()}
    wanted = {key.rpartition("/")[2]: classes for key, classes in truth.items()}
    if drawn_set.unlisted_empty:
        found = {key: example for key, example in found.items() if key in wanted or len(example["image/class/text"])}
    lost = [row.key for row in ledger(out).values() if row.status == "rejected" and row.code != "missing_image"]
    wrong = [f"further image {key}" for key in found.keys() - wanted.keys()]
    wrong += [f"missing image {key}" for key in wanted.keys() - found.keys()] + [f"rejected {key}" for key in lost]
    for key in found.keys() & wanted.keys():
        example, classes = found[key], wanted[key]
        labels = [text.decode() for text in example["image/class/text"]]
        if sorted(labels) != sorted(classes):
            wrong.append(f"{key}: classes {labels}, not {sorted(classes)}")
            continue
        for name, mask in classes.items():
            if has == "masks" and not np.array_equal(drawn(example[f"image/segmentation/{name}/rle"].tolist()), mask):
                wrong.append(f"{key}: another mask of {name}")
        if has == "boxes":
            edges = np.stack([example[f"image/object/bbox/{edge}"] for edge in EDGES], axis=1)
            around = []
            for mask in classes.values():
                rows, columns = np.flatnonzero(mask.any(1)), np.flatnonzero(mask.any(0))
                around.append([columns[0], rows[0], columns[-1] + 1, rows[-1] + 1])
            if not np.allclose(edges * [WIDTH, HEIGHT, WIDTH, HEIGHT], around, atol=0.5):
                wrong.append(f"{key}: other boxes")
    return wrong


def check(here, name, mutation, capsys):
    result, printed, truth = outcome(here, name, mutation, capsys)
    allowed = MUTATIONS[mutation].allowed(SETS[name])
    if result == RIGHT:
        config = yaml.safe_load((here / "c.yaml").read_text())
        # Images of another size have no truth in these pixels.
        wrong = [] if not truth and RIGHT in allowed else differences(here / "out", truth, SETS[name])
        assert truth or RIGHT in allowed, f"exit 0 with {config['input']}\n{printed}"
        assert not wrong, "\n".join([*wrong[:5], str(config["input"]), printed])
    assert result in allowed, printed


@pytest.mark.parametrize(
    ("name", "mutation"), random.Random(44).sample(COMBINATIONS, SAMPLE), ids=lambda value: value.replace(" ", "-")
)
def test_a_sample_is_never_another_dataset(tmp_path, name, mutation, capsys):
    check(tmp_path, name, mutation, capsys)


@pytest.mark.slow
@pytest.mark.parametrize("mutation", MUTATIONS)
@pytest.mark.parametrize("name", SETS)
def test_it_is_never_another_dataset(tmp_path, name, mutation, capsys):
    check(tmp_path, name, mutation, capsys)
