"""`shardwright bench loader`: every figure is measured, on drawn photographs and on a dataset of the user's."""

import json

import numpy as np
import pytest

from benchmarks import loader
from benchmarks.figures import AT_LEAST, AT_MOST
from shardwright.dataset.reader import ImageDataset
from shardwright.loader import profile
from shardwright.pipelines import cli


@pytest.mark.slow
def test_every_figure_of_the_loader_is_measured(tmp_path, monkeypatch):
    # Asked for below; here it would start two more processes.
    monkeypatch.setattr(
        loader, "loading_memory", lambda dataset, split, batch: len(ImageDataset.open(dataset).shards(split))
    )
    figures = loader.loader_figures(tmp_path, 24, size=(48, 72), records=200, batch=4, rounds=1)
    assert all(figure.value is not None and figure.value > 0 for figure in figures)
    assert len({figure.name for figure in figures}) == len(figures)
    promised = {(figure.relation, figure.target) for figure in figures if figure.target is not None}
    at_least, at_most = {(AT_LEAST, share) for share in (0.95, 0.85, 0.8, 10)}, {(AT_MOST, 2), (AT_MOST, 1.5)}
    assert promised == at_least | at_most


def test_images_are_filled_instead_of_decoded_on_both_sides_and_only_meanwhile(tmp_path, small_dataset):
    dataset = ImageDataset.open(
        small_dataset(tmp_path, task="classification", counts={"train": [3]}, image_format="jpeg")
    )
    encoded = profile.encoded_images(dataset, "train")
    with loader.filling(24, 36):
        ours = next(profile.training(dataset.root, 3, shuffle=False))[0].numpy()
        ceiling = next(profile.ceiling(encoded, "jpeg", 3)).numpy()
        pairs, labels = next(profile.ceiling(encoded, "jpeg", 3, labeled=True))
    decoded = next(profile.training(dataset.root, 3, shuffle=False))[0].numpy()
    (adds, exact) = loader.added(dataset.root, encoded, (24, 36), 3, rounds=1)
    expected = np.broadcast_to(np.array([len(image) % 256 for image in encoded])[:, None, None, None], (3, 24, 36, 3))
    assert np.array_equal(ours, expected)
    for images in (ceiling, pairs.numpy()):
        assert np.array_equal(np.sort(images, axis=0), np.sort(expected, axis=0))
    assert labels.shape == (3,)
    assert not np.array_equal(decoded, expected)
    assert (adds.unit, exact.unit, adds.target) == ("us", "us", None)


def test_the_shortest_way_loads_what_the_loader_does(tmp_path, small_dataset):
    dataset = ImageDataset.open(
        small_dataset(tmp_path, task="classification", counts={"train": [3, 2]}, image_format="jpeg")
    )
    shortest = loader.shortest([shard.file for shard in dataset.shards("train")], "jpeg", 5)
    found, ours = ([part.numpy() for part in next(way)] for way in (shortest, profile.training(dataset.root, 5)))
    assert found[0].dtype == ours[0].dtype
    examples = [{(image.tobytes(), int(label)) for image, label in zip(*way, strict=True)} for way in (found, ours)]
    assert examples[0] == examples[1]
    assert len(examples[0]) == 5


@pytest.mark.slow
def test_a_dataset_of_the_user_is_measured_in_shares(tmp_path, capsys, small_dataset):
    dataset = str(small_dataset(tmp_path, counts={"train": [40, 40]}, image_format="jpeg"))
    assert cli.main(["bench", "loader", dataset, "--batch-size", "8", "--rounds", "1", "--json"]) == 0
    output = json.loads(capsys.readouterr().out)
    assert [share["step"] for share in output["shares"]] == ["read", "parse", "decode", "mask", "augment", "batch"]
    assert sum(share["share"] for share in output["shares"]) == pytest.approx(1)
    assert all(share["seconds"] > 0 for share in output["shares"][:3])
    assert {figure["name"] for figure in output["figures"]} >= {"decoding alone", "exact / fast", "memory of one epoch"}
    assert all(figure["value"] > 0 for figure in output["figures"])
    settings = [advice["setting"] for advice in output["advice"]]
    assert (settings[:2], settings[-1]) == (["cycle length", "loader.shuffle_buffer"], "transform.encoding")
    assert [row["name"] for row in output["encodings"]][:2] == ["as stored", "raw"]


@pytest.mark.slow
def test_images_that_cannot_be_loaded_are_reported_without_a_traceback(tmp_path, capsys, small_dataset):
    dataset = str(small_dataset(tmp_path, counts={"train": [40, 40]}, size=lambda number: (24, 36 + number % 2)))
    assert cli.main(["bench", "loader", dataset, "--batch-size", "8", "--rounds", "1"]) == 1
    output = capsys.readouterr().err
    assert "Batches need one size" in output
    assert "Traceback" not in output


@pytest.mark.parametrize(
    ("more", "code", "message"),
    [
        (["DATASET", "--batch-size", "0"], 2, "--batch-size: 0 is too few"),
        (["DATASET", "--batch-size", "9"], 2, "--batch-size 9: split 'train' has only 5 records"),
        (["DATASET", "--split", "test"], 1, "no split 'test'"),
        (["DATASET", "--batch-size", "2", "--augment", "turn"], 2, "turn"),
        (["/nowhere"], 2, "there is no such folder"),
        (["gs://bucket/dataset"], 2, "Copy the dataset to this machine"),
    ],
)
def test_a_wrong_call_is_reported(tmp_path, capsys, small_dataset, more, code, message):
    given = [str(small_dataset(tmp_path)) if word == "DATASET" else word for word in more]
    assert cli.main(["bench", "loader", *given]) == code
    assert message in capsys.readouterr().err
