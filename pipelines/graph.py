"""The graph, the same on every platform: from a folder of images and a CSV to a pushed model.

ImageExampleGen -> StatisticsGen -> ImportSchemaGen (the rendered, curated schema) and SchemaGen (inferred, to compare)
-> ExampleValidator -> Report -> DataGate -> ImageTransform -> BaselineResolver -> Trainer -> Evaluator -> Pusher.

All values that decide a cache key are in the graph: fingerprints, recipes, paths relative to the run's root. It
contains neither absolute paths nor times.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from tfx import v1 as tfx
from tfx.v1.types import BaseNode

from shardwright.components.baseline_resolver.component import BaselineResolver
from shardwright.components.data_gate.component import DataGate
from shardwright.components.evaluator.component import ImageEvaluator
from shardwright.components.image_example_gen.component import ImageExampleGen
from shardwright.components.image_trainer.component import ImageTrainer
from shardwright.components.image_transform.component import ImageTransform
from shardwright.components.inline_schema.component import InlineSchema
from shardwright.components.pusher.component import Pusher
from shardwright.components.report.component import Report, drift_checks
from shardwright.components.runtime.beam import beam_args
from shardwright.components.statistics_gen.component import StatisticsGen
from shardwright.config import Config
from shardwright.config.trainer import BLESSED
from shardwright.dataset.dataset_schema import parse_schema
from shardwright.errors import ConfigError
from shardwright.ingest.identify import IngestSource


@dataclass(frozen=True)
class Step:
    """A component of the graph, as compiled pipelines run it.

    Attributes:
        name: its node id.
        uses_beam: it runs on Beam and takes options of Beam.
        reads_buckets: it reads and writes `gs://` itself.
        streams_examples: it reads examples from `gs://`; its other artifacts are small and are copied.
        stages: its finished work, shards or checkpoints, outlives an attempt.
        cached: `False` if it reads things that change while its parameters stay the same.
    """

    name: str
    uses_beam: bool = False
    reads_buckets: bool = False
    streams_examples: bool = False
    stages: bool = False
    cached: bool = True


TRAINER, EVALUATOR = "Trainer", "Evaluator"
STEPS = (
    Step("InputResolver", reads_buckets=True, cached=False),
    Step("ImageExampleGen", uses_beam=True, reads_buckets=True, stages=True),
    Step("StatisticsGen", uses_beam=True, reads_buckets=True),
    Step("ImportSchemaGen"),
    Step("SchemaGen", reads_buckets=True),
    Step("ExampleValidator", reads_buckets=True),
    Step("Report", streams_examples=True),
    Step("DataGate", streams_examples=True),
    Step("ImageTransform", uses_beam=True, reads_buckets=True, stages=True),
    Step("BaselineResolver", cached=False),
    Step(TRAINER, stages=True),
    Step(EVALUATOR, uses_beam=True, streams_examples=True),
    Step("Pusher"),
)


@dataclass(frozen=True)
class GraphInputs:
    """The values that are known when the graph is built.

    Attributes:
        input_fingerprint: content fingerprint of images and annotations; a dynamic value in compiled pipelines.
        ingest_recipe: ImageExampleGen's options as canonical JSON; a dynamic value if it names a dataset of the
            baseline model.
        schema_file: path of the rendered schema; its name must change with its content. Empty in compiled pipelines,
            which contain the schema.
        schema_text: the schema.
        push_directory: folder of blessed models.
        baseline_digest: digest of the last blessed model's record, empty without one.
        input_location: location of the input; empty if the environment has it.
        resolver: the InputResolver of the dynamic values.
        custom_job: options of TFX's extension for Vertex AI, if that trains.
        drift: Report's parameter, if the reference is looked up when the pipeline runs.
    """

    input_fingerprint: Any
    ingest_recipe: Any
    schema_file: str
    schema_text: str
    push_directory: str
    baseline_digest: str
    input_location: Any = ""
    resolver: BaseNode | None = None
    custom_job: Mapping[str, Any] | None = None
    drift: Any = None


def build_nodes(config: Config, inputs: GraphInputs) -> list[BaseNode]:
    """Builds the components in the order in which they run."""
    source = IngestSource(inputs.input_fingerprint, inputs.ingest_recipe, inputs.input_location)
    example_gen = ImageExampleGen.of_source(source)
    examples = example_gen.outputs["examples"]

    # But pixel bytes and run lengths, whose statistics cost time and mean nothing.
    features = parse_schema(inputs.schema_text, "schema").feature
    statistics_gen = StatisticsGen(
        examples,
        sorted(f.name for f in features if f.name != "image/encoded" and not f.name.endswith("/rle")),
        allow_absent=True,
    )
    statistics = statistics_gen.outputs["statistics"]
    if inputs.schema_file:
        import_schema: BaseNode = tfx.components.ImportSchemaGen(schema_file=inputs.schema_file)
    else:
        import_schema = InlineSchema(schema_text=inputs.schema_text).with_id(tfx.components.ImportSchemaGen.__name__)
    schema = import_schema.outputs["schema"]
    infer_schema = tfx.components.SchemaGen(statistics=statistics, infer_feature_shape=True)
    validator = tfx.components.ExampleValidator(statistics=statistics, schema=schema)
    anomalies = validator.outputs["anomalies"]
    report = Report.of_checks(examples, anomalies, schema, _drift(config, inputs))
    gate = DataGate.from_config(config, anomalies, examples, schema, report.outputs["report"])

    transform = ImageTransform.from_config(config, examples, schema)
    transform.add_upstream_node(gate)

    # Before the Trainer, which may begin with the baseline model.
    resolver = BaselineResolver(inputs.push_directory, inputs.baseline_digest)
    baseline = resolver.outputs["model"]
    train = ImageTrainer.from_config(
        config,
        transform.outputs["transformed_examples"],
        transform.outputs["transform_graph"],
        # Its artifact, and so the cache key, changes whenever another model is blessed.
        baseline if config.trainer.warm_start == BLESSED else None,
        custom_job=inputs.custom_job,
    ).with_id(TRAINER)
    model = train.outputs["model"]
    evaluate = ImageEvaluator.from_config(config, examples, model, baseline).with_id(EVALUATOR)
    pusher = Pusher(
        model, evaluate.outputs["blessing"], evaluate.outputs["evaluation"], push_directory=inputs.push_directory
    )

    checked = [example_gen, statistics_gen, import_schema, infer_schema, validator, report, gate]
    nodes = [*checked, transform, resolver, train, evaluate, pusher]
    beam_steps = [step.name for step in STEPS if step.uses_beam]
    by_name = {node.id: node for node in nodes}
    for name, options in config.beam.per_component.items():
        if name not in beam_steps:
            raise ConfigError(
                f"beam.per_component.{name}", "no component of that name runs on Beam", f"Use: {', '.join(beam_steps)}."
            )
        by_name[name].with_beam_pipeline_args(beam_args([*config.beam.options, *options]))
    return nodes if inputs.resolver is None else [inputs.resolver, *nodes]


def _drift(config: Config, inputs: GraphInputs) -> Any:
    """Returns `gate.drift`, with the digest of its reference, and `gate.skew` as canonical JSON; empty for neither."""
    if inputs.drift is not None:
        return inputs.drift
    drift = config.gate.drift
    if drift is not None:
        drift = replace(drift, reference=config.resolve(drift.reference))
    # On this machine the environment has the location of the reference: cache keys contain no paths.
    return drift_checks(drift, config.gate.skew, with_location=not inputs.schema_file)
