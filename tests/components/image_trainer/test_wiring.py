"""The components as the graph gets them: what their cache keys see, and how they fit together."""

import json

import pytest
import tensorflow_model_analysis as tfma
from tfx.types import Channel, standard_artifacts

from shardwright.components.baseline_resolver.component import BaselineResolver
from shardwright.components.evaluator.component import ImageEvaluator, limits_of
from shardwright.components.evaluator.eval_config import build_eval_config
from shardwright.components.image_trainer.component import ImageTrainer
from shardwright.components.image_trainer.spec import TrainRecipe
from shardwright.components.image_transform.component import ImageTransform
from shardwright.components.pusher.component import Pusher
from shardwright.config import parse_config
from shardwright.errors import UsageError
from shardwright.evaluation.verdict import Limits
from shardwright.storage.checksum import checksum_of

CONFIG = parse_config({"input": {"images": "/secret/place"}, "evaluator": {"min_dice": 0.7}}, base="/home/secret")


def trainer_of(config, transform, base_model=None):
    outputs = transform.outputs
    return ImageTrainer.from_config(config, outputs["transformed_examples"], outputs["transform_graph"], base_model)


def wired(config=CONFIG):
    examples = Channel(type=standard_artifacts.Examples)
    schema = Channel(type=standard_artifacts.Schema)
    transform = ImageTransform.from_config(config, examples, schema)
    baseline = BaselineResolver(push_directory="pushed", baseline_digest="d" * 64)
    blessed = config.trainer.warm_start == "blessed"
    train = trainer_of(config, transform, baseline.outputs["model"] if blessed else None).with_id("Trainer")
    model = train.outputs["model"]
    evaluate = ImageEvaluator.from_config(config, examples, model, baseline.outputs["model"]).with_id("Evaluator")
    outputs = evaluate.outputs
    push = Pusher(
        model=model, model_blessing=outputs["blessing"], evaluation=outputs["evaluation"], push_directory="pushed"
    )
    return train, baseline, evaluate, push


def test_their_names_are_the_graphs():
    assert [node.id for node in wired()] == ["Trainer", "BaselineResolver", "Evaluator", "Pusher"]


def test_no_path_of_this_machine_is_in_a_cache_key():
    for node in wired():
        assert "secret" not in str(node.exec_properties)


def test_the_trainer_carries_the_recipe_and_follows_the_splits():
    train = wired()[0]
    assert TrainRecipe.from_dict(
        json.loads(train.exec_properties["custom_config"])["recipe"]
    ) == TrainRecipe.from_config(CONFIG)
    assert json.loads(train.exec_properties["eval_args"])["splits"] == ["eval"]
    alone = parse_config({"input": {"images": "x"}, "split": {"ratios": {"train": 0.5, "test": 0.5}}}, base="/")
    assert json.loads(wired(alone)[0].exec_properties["eval_args"])["splits"] == ["train"]


def test_the_evaluator_has_the_conditions_of_the_configuration():
    evaluate = wired()[2]
    assert json.loads(evaluate.exec_properties["limits"])["min_dice"] == 0.7
    assert json.loads(evaluate.exec_properties["example_splits"]) == ["test"]


@pytest.mark.parametrize(
    ("task", "multi", "metric", "least"),
    [
        ("segmentation", False, "mean_dice", 0.7),
        ("classification", False, "accuracy", 0.75),
        ("classification", True, "mean_f1", 0.5),
    ],
)
def test_the_minimum_is_of_the_whole_split(task, multi, metric, least):
    limits = Limits(**json.loads(limits_of(CONFIG.evaluator)))
    (specification,) = build_eval_config(limits, task, ("a", "b"), multi=multi).metrics_specs
    (of_slice,) = specification.per_slice_thresholds[metric].thresholds
    assert list(of_slice.slicing_specs) == [tfma.SlicingSpec()]
    assert of_slice.threshold.value_threshold.lower_bound.value == least


def custom_of(**options):
    config = parse_config({"input": {"images": "x"}, "trainer": options}, base="/home/secret")
    return json.loads(wired(config)[0].exec_properties["custom_config"])


def test_run_options_are_passed_unless_they_are_the_default():
    assert set(custom_of()) == {"recipe"}
    custom = custom_of(accelerator="tpu", hosts=4, checkpoint={"every": 100})
    assert custom["running"] == {"accelerator": "tpu", "hosts": 4, "checkpoint": {"every": 100}}
    assert custom["recipe"] == custom_of()["recipe"], "the recipe does not depend on the machine"


def test_a_warm_start_from_the_blessed_model_has_an_edge_and_that_from_a_file_its_digest(tmp_path):
    assert custom_of(warm_start="blessed")["recipe"]["trainer"]["warm_start"] == "blessed"
    (tmp_path / "unet.keras").write_bytes(b"weights")
    custom = custom_of(warm_start=str(tmp_path / "unet.keras"))
    assert custom["recipe"]["trainer"]["warm_start"] == "blake3:" + checksum_of(b"weights")
    assert str(tmp_path) not in json.dumps(custom)
    with pytest.raises(UsageError, match="trainer.warm_start: .*nowhere is not a file"):
        custom_of(warm_start="nowhere")
    config = parse_config({"input": {"images": "x"}, "trainer": {"warm_start": "blessed"}}, base="/")
    baseline = wired(config)[1]
    train = trainer_of(config, _transform(config), baseline.outputs["model"])
    assert train.inputs["base_model"] is baseline.outputs["model"]
    with pytest.raises(UsageError, match="warm_start is 'blessed', and base_model is missing"):
        trainer_of(config, _transform(config))


def test_a_model_to_begin_with_is_never_ignored():
    examples, model = Channel(type=standard_artifacts.Examples), Channel(type=standard_artifacts.Model)
    assert ImageTrainer(examples, base_model=model, trainer={"warm_start": "blessed"}).inputs["base_model"] is model
    with pytest.raises(UsageError, match="base_model is given, and warm_start is not 'blessed'"):
        ImageTrainer(examples, base_model=model)
    with pytest.raises(UsageError, match="warm_start is 'blessed', and base_model is missing"):
        ImageTrainer(examples, trainer={"warm_start": "blessed"})
    # A function of the user may do with both what it likes.
    assert "base_model" in ImageTrainer(examples, base_model=model, run_fn="json:dumps").inputs


def _transform(config):
    channels = Channel(type=standard_artifacts.Examples), Channel(type=standard_artifacts.Schema)
    return ImageTransform.from_config(config, *channels)
