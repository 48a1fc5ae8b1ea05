"""Several Examples as one dataset: spans of a Resolver, their order, images that several of them have."""

import itertools
import json

import pytest
from tfx.dsl.components.base.base_beam_executor import BaseBeamExecutor
from tfx.types import artifact_utils, standard_artifacts

from shardwright.components.image_transform.executor import Executor as Transform
from shardwright.components.runtime.joined_examples import (
    SOURCE,
    as_artifact,
    newest_examples,
    open_all,
    set_span,
    span_of,
)
from shardwright.components.statistics_gen.executor import Executor as Statistics
from shardwright.dataset.reader import ImageDataset
from shardwright.errors import UsageError
from shardwright.storage.checksum import checksum_of
from shardwright.tfrecords.records import decode_example

COUNTS = {"train": [6, 4], "eval": [4]}


@pytest.fixture
def deliver(small_dataset, tmp_path):
    """Writes Examples of a span. Images of the same number have the same pixels, so `first` makes other ones."""

    def write(name, span, version=0, *, source="photos", first=0, key_of=None, **options):
        def other(number, example):
            # The checksum is what tells images apart.
            return {**example, "image/blake3": checksum_of(f"{number + first}".encode()).encode()}

        key_of = key_of or (lambda split, number: f"{name}/{split}/{number}")
        options = {"task": "classification", "counts": COUNTS, "change": other, **options}
        dataset = ImageDataset.open(small_dataset(tmp_path / name, key_of=key_of, **options))
        examples = as_artifact(dataset)
        examples.set_string_custom_property(SOURCE, source)
        examples.set_string_custom_property("dataset_digest", dataset.manifest.digest)
        set_span(examples, span, version)
        return examples

    return write


def keys(dataset):
    return {split: dataset.keys(split) for split in dataset.splits}


def test_spans_are_joined_split_by_split_from_old_to_new_in_any_order(deliver, tmp_path):
    spans = [deliver("c", 3, first=200), deliver("a", 1), deliver("b", 2, first=100)]
    joined = {}
    for number, order in enumerate(itertools.permutations(spans)):
        joined[number] = open_all(order, lambda number=number: str(tmp_path / f"joined-{number}"))
    assert len({dataset.manifest.digest for dataset in joined.values()}) == 1
    dataset = joined[0]
    each = [keys(ImageDataset.open(one.uri)) for one in (spans[1], spans[2], spans[0])]
    assert keys(dataset) == {split: [key for one in each for key in one[split]] for split in COUNTS}
    assert dataset.manifest.totals["inputs"] == dataset.manifest.totals["written"] == 42
    assert dataset.manifest.recipe["joined"] == [[1, 0], [2, 0], [3, 0]]


def test_one_is_opened_where_it_is(deliver):
    examples = deliver("a", 1)
    assert open_all([examples], lambda: "nowhere").root == examples.uri


def test_an_image_that_was_delivered_again_counts_once_and_its_newest_annotations_count(deliver, tmp_path):
    def same(split, number):
        return f"{split}/{number}"

    old = deliver("a", 1, key_of=same)
    new = deliver("b", 2, key_of=same)
    dataset = open_all([new, old], lambda: str(tmp_path / "joined"))
    assert keys(dataset) == keys(ImageDataset.open(new.uri))
    rows = [row for row in dataset.ledger() if row.status == "duplicate"]
    assert {(row.code, row.key.partition("/")[0]) for row in rows} == {("delivered_again", "span-1")}
    assert len(rows) == 14


def test_another_image_under_the_same_key_is_kept_under_a_key_with_its_span(deliver, tmp_path):
    def camera(split, number):
        return f"{split}-{number}.jpg"

    spans = [deliver("a", 1, key_of=camera), deliver("b", 2, key_of=camera, first=500)]
    dataset = open_all(spans, lambda: str(tmp_path / "joined"))
    assert dataset.manifest.totals["written"] == 28
    assert {key for key in dataset.keys("eval") if key.startswith("span-1/")} == {
        f"span-1/{key}" for key in ImageDataset.open(spans[0].uri).keys("eval")
    }
    for split in dataset.splits:
        for key, payload in dataset.records(split):
            assert decode_example(payload)["image/key"] == [key.encode()]


def test_no_image_is_in_two_splits(deliver, tmp_path):
    swapped = deliver("b", 2, counts={"eval": [6, 4], "train": [4]})
    dataset = open_all([deliver("a", 1), swapped], lambda: str(tmp_path / "joined"))
    split_of = {}
    for split in dataset.splits:
        for _, payload in dataset.records(split):
            assert split_of.setdefault(decode_example(payload)["image/blake3"][0], split) == split
    left = [row for row in dataset.ledger() if row.code == "exact_duplicate"]
    assert left
    assert dataset.manifest.totals["written"] + len(left) == 28


def test_of_one_input_the_newest_version_and_the_last_run_count(deliver):
    old, corrected = deliver("a", 7, 1), deliver("b", 7, 2, first=50)
    again = deliver("c", 7, 2, first=60)
    other = deliver("d", 7, 0, source="other photos")
    for number, examples in enumerate((other, again, corrected, old)):
        examples.id = 10 - number
    corrected.id, again.id = 3, 4
    assert newest_examples([corrected, old, again, other]) == [other, again]
    assert span_of(again) == (7, 2)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"classes": ("Fish", "Rose")}, "its classes are not those of"),
        ({"task": "segmentation"}, "its task is not that of"),
    ],
)
def test_examples_that_do_not_go_together_are_refused(deliver, tmp_path, options, problem):
    with pytest.raises(UsageError, match=problem):
        open_all([deliver("a", 1), deliver("b", 2, **options)], lambda: str(tmp_path / "joined"))


def context(folder):
    return BaseBeamExecutor.Context(beam_pipeline_args=[], tmp_dir=str(folder), unique_id="1")


def outputs(folder, **kinds):
    made = {}
    for name, kind in kinds.items():
        made[name] = [kind()]
        made[name][0].uri = str(folder / name)
    return made


def test_statistics_are_of_all(deliver, tmp_path):
    import tensorflow_data_validation as tfdv

    spans = [deliver("a", 1), deliver("b", 2, first=100)]
    made = outputs(tmp_path, statistics=standard_artifacts.ExampleStatistics)
    Statistics(context(tmp_path / "tmp")).Do({"examples": spans}, made, {"features": '["image/key","image/height"]'})
    (statistics,) = made["statistics"]
    assert (artifact_utils.decode_split_names(statistics.split_names), statistics.span) == (["eval", "train"], 2)
    read = tfdv.load_stats_binary(str(tmp_path / "statistics/Split-train/FeatureStats.pb"))
    assert read.datasets[0].num_examples == 20


@pytest.mark.slow
@pytest.mark.two_stacks
def test_images_of_all_are_transformed_and_transformed_ones_are_joined(deliver, tmp_path):
    kinds = standard_artifacts
    made = outputs(
        tmp_path,
        transformed_examples=kinds.Examples,
        transform_graph=kinds.TransformGraph,
        post_transform_stats=kinds.ExampleStatistics,
        post_transform_schema=kinds.Schema,
    )
    from shardwright.components.image_transform.transform_recipe import transform_recipe
    from shardwright.config.constructors import Transform as Section
    from shardwright.config.constructors import config_of

    recipe = transform_recipe(config_of(task="classification", transform=Section(size=(16, 16))))
    spans = [deliver("a", 1), deliver("b", 2, 3, first=100)]
    Transform(context(tmp_path / "tmp")).Do({"examples": spans}, made, {"recipe": recipe})
    (examples,) = made["transformed_examples"]
    assert span_of(examples) == (2, 3)
    dataset = ImageDataset.open(examples.uri)
    assert dataset.manifest.totals["written"] == 28
    assert artifact_utils.decode_split_names(examples.split_names) == ["eval", "train"]
    figures = json.loads((tmp_path / "transform_graph/statistics.json").read_text())
    assert figures["images"] == 20
    # Transformed ones, as those of two runs: what was measured on one does not hold for both.
    alone = outputs(tmp_path / "alone", **{name: type(values[0]) for name, values in made.items()})
    third = deliver("c", 3, first=300)
    Transform(context(tmp_path / "tmp2")).Do({"examples": [third]}, alone, {"recipe": recipe})
    joined = open_all([alone["transformed_examples"][0], examples], lambda: str(tmp_path / "joined"))
    assert joined.manifest.kind == "transform"
    assert joined.manifest.totals["written"] == 42
    assert "mean" not in json.loads((tmp_path / joined.root / "statistics.json").read_text())
