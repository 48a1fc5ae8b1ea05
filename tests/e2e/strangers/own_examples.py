"""Our components and TFX's in one pipeline, behind ImageExampleGen."""

import tensorflow_model_analysis as tfma
from any_model import BLESSES_ANY
from tfx import v1 as tfx

from shardwright.components import (
    BaselineResolver,
    ClassFolders,
    DataGate,
    ImageEvaluator,
    ImageExampleGen,
    ImageTrainer,
    ImageTransform,
    Input,
    Predictor,
    Pusher,
    Report,
    Split,
    Trainer,
    Transform,
)


def stock(name):
    return getattr(tfx.components, name)


def pushed_to(folder):
    return tfx.proto.PushDestination(filesystem=tfx.proto.PushDestination.Filesystem(base_directory=folder))


shares = Split(train=0.5, eval=0.25, test=0.25)
example_gen = ImageExampleGen(Input("photographs", labels=ClassFolders()), task="classification", split=shares)
examples = example_gen.outputs["examples"]
statistics_gen = stock("StatisticsGen")(examples=examples)
statistics = statistics_gen.outputs["statistics"]
schema_gen = stock("SchemaGen")(statistics=statistics, infer_feature_shape=True)
schema = schema_gen.outputs["schema"]
validator = stock("ExampleValidator")(statistics=statistics, schema=schema)
report = Report(examples, validator.outputs["anomalies"], schema)
gate = DataGate(validator.outputs["anomalies"], examples, schema, report=report.outputs["report"])

arguments = {"train_args": tfx.proto.TrainArgs(splits=["train"], num_steps=2)}
arguments["eval_args"] = tfx.proto.EvalArgs(splits=["eval"], num_steps=1)
tuner = stock("Tuner")(examples=examples, schema=schema, tuner_fn="mine.tuner_fn", **arguments)
trainer = stock("Trainer")(
    examples=examples,
    schema=schema,
    hyperparameters=tuner.outputs["best_hyperparameters"],
    run_fn="mine.run_fn",
    **arguments,
)
latest = tfx.dsl.Resolver(
    strategy_class=tfx.dsl.experimental.LatestBlessedModelStrategy,
    model=tfx.dsl.Channel(type=tfx.types.standard_artifacts.Model),
    model_blessing=tfx.dsl.Channel(type=tfx.types.standard_artifacts.ModelBlessing),
).with_id("latest_blessed_model")
accuracy = tfma.MetricConfig(
    class_name="SparseCategoricalAccuracy",
    threshold=tfma.MetricThreshold(value_threshold=tfma.GenericValueThreshold(lower_bound={"value": 0.0})),
)
evaluator = stock("Evaluator")(
    examples=examples,
    model=trainer.outputs["model"],
    baseline_model=latest.outputs["model"],
    example_splits=["test"],
    eval_config=tfma.EvalConfig(
        model_specs=[
            tfma.ModelSpec(
                signature_name="serving_default", label_key="image/class/label", prediction_key="probabilities"
            )
        ],
        slicing_specs=[tfma.SlicingSpec()],
        metrics_specs=[tfma.MetricsSpec(metrics=[accuracy])],
    ),
)
blessed = evaluator.outputs["blessing"].future()[0].custom_property("blessed") == 1
with tfx.dsl.Cond(blessed):
    stock_pusher = stock("Pusher")(
        model=trainer.outputs["model"],
        model_blessing=evaluator.outputs["blessing"],
        push_destination=pushed_to("pushed-by-tfx"),
    ).with_id("PushedIfBlessed")

transform = ImageTransform(examples, schema, transform=Transform(size=(32, 32)))
transform.add_upstream_node(gate)
transformed, graph = transform.outputs["transformed_examples"], transform.outputs["transform_graph"]
of_ours = ImageTrainer(
    transformed,
    graph,
    task="classification",
    trainer=Trainer(epochs=1, batch_size=4, base_filters=4, callbacks="mine:callbacks"),
)
by_function = ImageTrainer(
    transformed,
    graph,
    task="classification",
    trainer=Trainer(epochs=1),
    run_fn="mine:run_on_batches",
    custom_config={"mine": 1},
).with_id("TrainedByFunction")
model = of_ours.outputs["model"]
baseline = BaselineResolver("pushed")
our_evaluator = ImageEvaluator(examples, model, baseline.outputs["model"], evaluator=BLESSES_ANY)
blessing, evaluation = our_evaluator.outputs["blessing"], our_evaluator.outputs["evaluation"]
pusher = Pusher(model, blessing, evaluation, push_directory="pushed").with_id("OurPusher")
with tfx.dsl.Cond(blessing.future()[0].custom_property("blessed") == 0):
    never = stock("Pusher")(model=model, push_destination=pushed_to("never")).with_id("PushedIfNotBlessed")
inferrer = stock("BulkInferrer")(
    examples=examples,
    model=model,
    data_spec=tfx.proto.DataSpec(example_splits=["test"]),
    model_spec=tfx.proto.ModelSpec(model_signature_name=["examples"]),
)
predictor = Predictor(model, Input("photographs"))
of_tfx = [statistics_gen, schema_gen, validator, tuner, trainer, latest, evaluator, stock_pusher, inferrer, never]
of_us = [example_gen, report, gate, transform, of_ours, by_function, baseline, our_evaluator, pusher, predictor]

if __name__ == "__main__":
    tfx.orchestration.LocalDagRunner().run(
        tfx.dsl.Pipeline(
            pipeline_name="strangers",
            pipeline_root="runs",
            components=[*of_tfx, *of_us],
            metadata_connection_config=tfx.orchestration.metadata.sqlite_metadata_connection_config("metadata.db"),
        )
    )
