"""A compiled pipeline of somebody else, with Shardwright's image as base: `python compiled.py OUT [EXIT]`."""

import json
import sys
from pathlib import Path

from announce import Announce
from any_model import BLESSES_ANY
from tfx import v1 as tfx
from tfx.orchestration.kubeflow import decorators

from shardwright.components import (
    AT_RUN,
    BaselineResolver,
    ClassFolders,
    ImageEvaluator,
    ImageExampleGen,
    ImageTrainer,
    ImageTransform,
    Input,
    InputResolver,
    Pusher,
    Trainer,
    Transform,
    correct_document,
)

out, *with_exit_handler = sys.argv[1:]
data_root = tfx.dsl.experimental.RuntimeParameter("data_root", str, default="gs://data")
resolver = InputResolver(
    Input("photographs", labels=ClassFolders(), classes=["daisy", "rose"]), data_root=data_root, task="classification"
)
example_gen = ImageExampleGen.at_run(resolver)
examples = example_gen.outputs["examples"]
statistics_gen = tfx.components.StatisticsGen(examples=examples)
schema_gen = tfx.components.SchemaGen(statistics=statistics_gen.outputs["statistics"], infer_feature_shape=True)
transform = ImageTransform(examples, schema_gen.outputs["schema"], transform=Transform(size=(32, 32)))
transformed, graph = transform.outputs["transformed_examples"], transform.outputs["transform_graph"]
trainer = ImageTrainer(
    transformed, graph, task="classification", trainer=Trainer(epochs=1, batch_size=4, base_filters=4)
)
baseline = BaselineResolver("gs://models/flowers", AT_RUN)
evaluator = ImageEvaluator(examples, trainer.outputs["model"], baseline.outputs["model"], evaluator=BLESSES_ANY)
pusher = Pusher(
    trainer.outputs["model"],
    evaluator.outputs["blessing"],
    evaluator.outputs["evaluation"],
    push_directory="gs://models/flowers",
)


runner = tfx.orchestration.experimental.KubeflowV2DagRunner(
    config=tfx.orchestration.experimental.KubeflowV2DagRunnerConfig(
        default_image="registry.example/shardwright:1.0",
        default_commands=["python", "-m", "shardwright.components.runtime.container", "--artifacts", "mounted"],
        use_pipeline_spec_2_1=True,
    ),
    output_filename=out,
)
if with_exit_handler:
    runner.set_exit_handler(Announce(status=decorators.FinalStatusStr()))
runner.run(
    tfx.dsl.Pipeline(
        pipeline_name="flowers",
        pipeline_root="gs://bucket/runs",
        components=[
            resolver, example_gen, statistics_gen, schema_gen, transform, trainer, baseline, evaluator, pusher,
        ],
        enable_cache=True,
    )
)  # fmt: skip
document = json.loads(Path(out).read_text(encoding="utf-8"))
correct_document(document)
Path(out).write_text(json.dumps(document), encoding="utf-8")
