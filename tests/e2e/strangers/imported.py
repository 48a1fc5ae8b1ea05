"""Our components behind a stock ImportExampleGen over shards of `shardwright ingest`."""

from any_model import BLESSES_ANY
from tfx import v1 as tfx

from shardwright.components import (
    DataGate,
    ImageEvaluator,
    ImageTrainer,
    ImageTransform,
    Report,
    StatisticsGen,
    Trainer,
    Transform,
)

splits = [tfx.proto.Input.Split(name=name, pattern=f"Split-{name}/*") for name in ("train", "eval", "test")]
importer = tfx.components.ImportExampleGen(input_base="dataset", input_config=tfx.proto.Input(splits=splits))
examples = importer.outputs["examples"]
statistics_gen = StatisticsGen(examples)
statistics = statistics_gen.outputs["statistics"]
schema_gen = tfx.components.SchemaGen(statistics=statistics, infer_feature_shape=False)
schema = schema_gen.outputs["schema"]
validator = tfx.components.ExampleValidator(statistics=statistics, schema=schema)
report = Report(examples, validator.outputs["anomalies"], schema)
gate = DataGate(validator.outputs["anomalies"], examples, schema, report=report.outputs["report"])
transform = ImageTransform(examples, transform=Transform(size=(32, 48)))
trainer = ImageTrainer(
    transform.outputs["transformed_examples"],
    transform.outputs["transform_graph"],
    trainer=Trainer(model="mine:masks", epochs=1, batch_size=4),
)
evaluator = ImageEvaluator(examples, trainer.outputs["model"], evaluator=BLESSES_ANY)

tfx.orchestration.LocalDagRunner().run(
    tfx.dsl.Pipeline(
        pipeline_name="imported",
        pipeline_root="runs",
        components=[
            importer, statistics_gen, schema_gen, validator, report, gate, transform, trainer, evaluator,
        ],
        metadata_connection_config=tfx.orchestration.metadata.sqlite_metadata_connection_config("metadata.db"),
    )
)  # fmt: skip
