"""A window over the last two deliveries, as TFX's authors write it: `python spans.py 1`, then `python spans.py 2`."""

import sys

from tfx import v1 as tfx

from shardwright.components import (
    ClassFolders,
    DataGate,
    ImageExampleGen,
    ImageTrainer,
    ImageTransform,
    Input,
    Report,
    Split,
    StatisticsGen,
    Trainer,
    Transform,
)

example_gen = ImageExampleGen(
    Input("deliveries/span-{SPAN}", labels=ClassFolders(), span=int(sys.argv[1])),
    task="classification",
    split=Split(train=0.7, eval=0.3),
)
window = tfx.dsl.Resolver(
    strategy_class=tfx.dsl.experimental.SpanRangeStrategy,
    config={"range_config": tfx.proto.RangeConfig(rolling_range=tfx.proto.RollingRange(num_spans=2))},
    examples=tfx.dsl.Channel(type=tfx.types.standard_artifacts.Examples, producer_component_id=example_gen.id),
).with_id("window")
window.add_upstream_node(example_gen)
examples = window.outputs["examples"]
statistics_gen = StatisticsGen(examples)
statistics = statistics_gen.outputs["statistics"]
schema_gen = tfx.components.SchemaGen(statistics=statistics, infer_feature_shape=True)
schema = schema_gen.outputs["schema"]
validator = tfx.components.ExampleValidator(statistics=statistics, schema=schema)
anomalies = validator.outputs["anomalies"]
report = Report(examples, anomalies, schema)
gate = DataGate(anomalies, examples, schema, report=report.outputs["report"])
transform = ImageTransform(examples, schema, transform=Transform(size=(32, 32)))
transform.add_upstream_node(gate)
each = tfx.dsl.Resolver(
    strategy_class=tfx.dsl.experimental.SpanRangeStrategy,
    config={"range_config": tfx.proto.RangeConfig(rolling_range=tfx.proto.RollingRange(num_spans=2))},
    examples=tfx.dsl.Channel(type=tfx.types.standard_artifacts.Examples, producer_component_id=transform.id),
).with_id("each")
each.add_upstream_node(transform)
trainer = ImageTrainer(
    each.outputs["examples"],
    transform.outputs["transform_graph"],
    task="classification",
    trainer=Trainer(epochs=1, batch_size=4, base_filters=4),
)
components = [example_gen, window, statistics_gen, schema_gen, validator, report, gate, transform, each, trainer]

if __name__ == "__main__":
    tfx.orchestration.LocalDagRunner().run(
        tfx.dsl.Pipeline(
            pipeline_name="spans",
            pipeline_root="runs",
            components=components,
            metadata_connection_config=tfx.orchestration.metadata.sqlite_metadata_connection_config("metadata.db"),
        )
    )
