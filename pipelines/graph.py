"""The one graph, whatever runs it: from a folder of images and a CSV to a pushed model.

ImageExampleGen -> StatisticsGen -> ImportSchemaGen (the rendered, curated schema) beside SchemaGen (inferred, to
compare) -> ExampleValidator -> Report -> DataGate -> ImageTransform -> BaselineResolver -> Trainer -> Evaluator ->
Pusher.

Everything that decides a cache key is a value here: fingerprints, recipes, paths relative to the run's root. Nothing
absolute and no clock.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from tfx import v1 as tfx

from shardwright.components.baseline_resolver.component import BaselineResolver
from shardwright.components.data_gate.component import DataGate
from shardwright.components.evaluator.component import image_evaluator
from shardwright.components.image_example_gen.component import ImageExampleGen
from shardwright.components.image_trainer.component import image_trainer
from shardwright.components.image_transform.component import ImageTransform
from shardwright.components.inline_schema.component import InlineSchema
from shardwright.components.pusher.component import Pusher
from shardwright.components.report.component import Report
from shardwright.components.runtime.beam import beam_args
from shardwright.components.statistics_gen.component import StatisticsGen
from shardwright.config import Config
from shardwright.dataset.schema import parse_schema
from shardwright.drift.monitor import open_reference
from shardwright.errors import ConfigError
from shardwright.fingerprint import canonical_json
from shardwright.ingest.source import IngestSource


@dataclass(frozen=True)
class GraphInputs:
    """What is known of the world when the graph is built.

    Attributes:
        input_fingerprint: content fingerprint of images and annotations; a dynamic value in compiled pipelines.
        ingest_recipe: ImageExampleGen's options as canonical JSON; a dynamic value where a dataset is looked up.
        transform_recipe: ImageTransform's options as canonical JSON.
        classes: class names in the order of their labels.
        multi: whether an image may have several.
        schema_file: path of the rendered schema; its name must change with its content. Empty in compiled pipelines,
            which carry the schema itself.
        schema_text: the schema itself.
        push_directory: where blessed models go.
        baseline_digest: digest of the last blessed model's record, empty when there is none.
        input_location: where the input lies, where the environment does not say so.
        resolver: the InputResolver that the dynamic values come from.
        custom_job: what TFX's extension for Vertex AI is told, where that trains.
        drift: Report's parameter, where the reference is looked up when the pipeline runs.
    """

    input_fingerprint: Any
    ingest_recipe: Any
    transform_recipe: str
    classes: tuple[str, ...]
    multi: bool
    schema_file: str
    schema_text: str
    push_directory: str
    baseline_digest: str
    input_location: Any = ""
    resolver: tfx.types.BaseNode | None = None
    custom_job: Mapping[str, Any] | None = None
    drift: Any = None


def build_nodes(config: Config, inputs: GraphInputs) -> list[tfx.types.BaseNode]:
    """Builds the components in the order in which they run."""
    example_gen = ImageExampleGen(
        source=IngestSource(inputs.input_fingerprint, inputs.ingest_recipe, inputs.input_location)
    )
    examples = example_gen.outputs["examples"]
    statistics_gen = StatisticsGen(examples=examples, features=_features_with_statistics(inputs.schema_text))
    statistics = statistics_gen.outputs["statistics"]
    import_schema = _schema(inputs)
    schema = import_schema.outputs["schema"]
    infer_schema = tfx.components.SchemaGen(statistics=statistics, infer_feature_shape=True)
    validator = tfx.components.ExampleValidator(statistics=statistics, schema=schema)
    anomalies = validator.outputs["anomalies"]
    drift = _drift(config, inputs) if inputs.drift is None else inputs.drift
    report = Report(examples=examples, anomalies=anomalies, schema=schema, drift=drift)
    gate = DataGate(anomalies, examples, schema, allow=config.gate.allow, report=report.outputs["report"])
    transform = ImageTransform(examples=examples, schema=schema, recipe=inputs.transform_recipe)
    transform.add_upstream_node(gate)
    baseline = BaselineResolver(push_directory=inputs.push_directory, baseline_digest=inputs.baseline_digest)
    train = image_trainer(config, transform, baseline=baseline, custom_job=inputs.custom_job)
    models = (train.outputs["model"], baseline.outputs["model"])
    evaluate = image_evaluator(config, inputs.classes, examples, *models, multi=inputs.multi)
    pusher = Pusher(
        model=train.outputs["model"],
        model_blessing=evaluate.outputs["blessing"],
        evaluation=evaluate.outputs["evaluation"],
        push_directory=inputs.push_directory,
    )
    nodes = [
        *([] if inputs.resolver is None else [inputs.resolver]),
        example_gen,
        statistics_gen,
        import_schema,
        infer_schema,
        validator,
        report,
        gate,
        transform,
        # The trainer may begin with its model.
        baseline,
        train,
        evaluate,
        pusher,
    ]
    _per_component_beam(config, nodes)
    return nodes


def _drift(config: Config, inputs: GraphInputs) -> str:
    """`gate.drift`, with the digest of its reference, and `gate.skew` as canonical JSON; empty for neither."""
    asked: dict[str, Any] = {}
    if config.gate.drift is not None:
        drift = asdict(config.gate.drift)
        location = config.resolve(drift.pop("reference"))
        drift["digest"] = open_reference(location).manifest.digest
        # On this machine the environment says where the reference lies: no path comes into a cache key.
        asked["drift"] = drift if inputs.schema_file else {**drift, "location": location}
    if config.gate.skew is not None:
        asked["skew"] = asdict(config.gate.skew)
    return canonical_json(asked) if asked else ""


def _schema(inputs: GraphInputs) -> tfx.types.BaseNode:
    if inputs.schema_file:
        return tfx.components.ImportSchemaGen(schema_file=inputs.schema_file)
    return InlineSchema(schema_text=inputs.schema_text).with_id(tfx.components.ImportSchemaGen.__name__)


def _features_with_statistics(schema_text: str) -> list[str]:
    """All but the pixel bytes and the run lengths: as strings and lists of offsets they say nothing and cost time."""
    schema = parse_schema(schema_text, "schema")
    return sorted(f.name for f in schema.feature if f.name != "image/encoded" and not f.name.endswith("/rle"))


def _per_component_beam(config: Config, nodes: list[tfx.types.BaseNode]) -> None:
    by_name = {node.id: node for node in nodes if isinstance(node, tfx.types.BaseBeamComponent)}
    for name, options in config.beam.per_component.items():
        if name not in by_name:
            raise ConfigError(
                f"beam.per_component.{name}", "no component of that name runs on Beam", f"Use: {', '.join(by_name)}."
            )
        by_name[name].with_beam_pipeline_args(beam_args([*config.beam.options, *options]))
