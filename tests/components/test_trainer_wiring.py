"""The components as the graph gets them: what their cache keys see, and how they fit together."""

import json

from tfx.types import Channel, standard_artifacts

from shardwright.config import parse_config
from shardwright_components.baseline_resolver.component import BaselineResolver
from shardwright_components.evaluator.component import evaluator
from shardwright_components.image_trainer.component import trainer
from shardwright_components.image_trainer.spec import Recipe
from shardwright_components.image_transform.component import ImageTransform
from shardwright_components.image_transform.recipe import transform_recipe
from shardwright_components.pusher.component import Pusher

CONFIG = parse_config({"input": {"images": "/secret/place"}, "evaluator": {"min_dice": 0.7}}, base="/home/secret")


def wired(config=CONFIG):
    examples = Channel(type=standard_artifacts.Examples)
    schema = Channel(type=standard_artifacts.Schema)
    transform = ImageTransform(examples=examples, schema=schema, recipe=transform_recipe(config))
    train = trainer(config, transform)
    baseline = BaselineResolver(push_directory="pushed", baseline_digest="d" * 64)
    model = train.outputs["model"]
    evaluate = evaluator(config, ("a", "b"), examples, model, baseline.outputs["model"])
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
    assert Recipe.from_dict(json.loads(train.exec_properties["custom_config"])["recipe"]) == Recipe.from_config(CONFIG)
    assert json.loads(train.exec_properties["eval_args"])["splits"] == ["eval"]
    alone = parse_config({"input": {"images": "x"}, "split": {"train": 0.5, "test": 0.5}}, base="/")
    assert json.loads(wired(alone)[0].exec_properties["eval_args"])["splits"] == ["train"]


def test_the_evaluator_asks_for_what_the_configuration_says():
    evaluate = wired()[2]
    (specification,) = json.loads(evaluate.exec_properties["eval_config"])["metrics_specs"]
    (of_slice,) = specification["per_slice_thresholds"]["mean_dice"]["thresholds"]
    assert of_slice["slicing_specs"] == [{}]
    threshold = of_slice["threshold"]
    assert threshold["value_threshold"]["lower_bound"] == 0.7
    assert threshold["change_threshold"]["direction"] == "HIGHER_IS_BETTER"
    assert json.loads(evaluate.exec_properties["example_splits"]) == ["test"]
