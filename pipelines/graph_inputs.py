"""Resolves the inputs of the graph before it is built: location, classes and fingerprint of the input; the schema."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from shardwright.components.image_trainer.models.check import check_model
from shardwright.components.image_transform.transform_recipe import ingest_image_options
from shardwright.components.image_transform.transformed_features import stored_features
from shardwright.config import Config
from shardwright.config.shards import RLE_TEXT
from shardwright.config.trainer import BLESSED
from shardwright.dataset.dataset_schema import check_schema, render_schema, schema_file_for
from shardwright.dataset.manifest import MULTI, NONE
from shardwright.dataset.outputs import check_not_in_dataset
from shardwright.errors import ConfigError, UsageError, unwritable
from shardwright.formats.detect import NUMBERS
from shardwright.ingest import (
    IngestInput,
    IngestRecipe,
    InputLocation,
    example_features,
    identify_input,
    ingest_recipe,
    labels_kind,
    locate,
    survey_input,
)
from shardwright.ingest.baseline import push_directory_of, resolve_baseline, run_root, uses_baseline, without_baseline
from shardwright.ingest.select_spans import becomes_input
from shardwright.lineage.blessing import read_blessing
from shardwright.storage import read_bytes
from shardwright.storage.durable import write_file


@dataclass(frozen=True)
class ResolvedInputs:
    """The input of a run.

    Attributes:
        config: the configuration, in which every dataset is named by its path. The datasets of the baseline model are
            left out if the input is not hashed.
        location: absolute paths of images and annotations.
        fingerprint: of their content.
        images: how many there are.
        bytes: of their files.
        classes: class names in the order of their labels.
        labels: the kind of labels, as `Manifest.labels`.
        recipe: ImageExampleGen's options as canonical JSON.
        schema_text: the curated, or freshly rendered, schema.
        notes: what was detected in the data, to be shown.
    """

    config: Config
    location: InputLocation
    fingerprint: str
    images: int
    bytes: int
    classes: tuple[str, ...]
    labels: str
    recipe: str
    schema_text: str
    notes: tuple[str, ...]


def resolve_inputs(config: Config, config_file: Path, *, hashed: bool = True) -> ResolvedInputs:
    """Lists and hashes the input and finds or renders the schema.

    Args:
        config: the configuration.
        config_file: its file; the schema is next to it.
        hashed: whether the content is hashed now; otherwise the fingerprint is empty. A compiled pipeline hashes the
            input when it runs.

    Raises:
        ShardwrightError: something about the input or the schema is wrong.
    """
    check_options(config)
    asked, config = config, resolve_baseline(config) if hashed else without_baseline(config)
    if hashed:
        _check_root(run_root(config), locate(config).images)
    surveyed = survey_input(IngestRecipe.of(config), locate(config))
    labels = labels_kind(config.task, surveyed.survey)
    if config.input.unlisted_images == "unlabeled":
        what = "'unlabeled' keeps images without a class, and no model learns from them"
        raise ConfigError("input.unlisted_images", what, "Use `shardwright ingest`, or reject.")
    if labels == NONE:
        raise _nothing_to_train(surveyed)
    _check_transform(config, surveyed, labels)
    classes, notes = surveyed.survey.classes, (*config.notes, *surveyed.survey.notes)
    # The image of a compiled pipeline may have modules that this machine does not.
    check_model(config, classes, multi=labels == MULTI, own=hashed)
    rendered = _render(config, surveyed)
    schema_file = schema_file_for(config_file)
    if schema_file.exists():
        schema_text = _schema_text(schema_file)
        check_schema(schema_text, rendered, str(schema_file))
    else:
        schema_text = rendered
        _write_schema(rendered, schema_file)
        notes = (*notes, f"schema rendered to {schema_file}: commit it")
    fingerprint = ""
    if hashed:
        fingerprint = identify_input(surveyed).fingerprint
        config = resolve_baseline(asked, fingerprint, classes)
        notes = (*notes, *_baseline_notes(asked, config))
    recipe = ingest_recipe(config, classes)
    sizes = surveyed.listing.sizes
    return ResolvedInputs(
        config,
        locate(config),
        fingerprint,
        images=len(sizes),
        bytes=sum(sizes),
        classes=classes,
        labels=labels,
        recipe=recipe,
        schema_text=schema_text,
        notes=notes,
    )


def _baseline_notes(asked: Config, config: Config) -> Iterator[str]:
    drift = config.gate.drift
    files = {
        "reuse_from": config.reuse_from,
        "split.keep_from": config.split.keep_from,
        "gate.drift.reference": None if drift is None else drift.reference,
    }
    pushed = push_directory_of(asked)
    blessing = read_blessing(pushed)
    none = "no dataset yet, since no model was ever blessed"
    if blessing is not None:
        none = "none: the same input as the blessed model's, which makes the same dataset again"
    for path in uses_baseline(asked):
        yield f"{path}: {files[path] or none}"
    if asked.trainer.warm_start == BLESSED:
        begun = "no model yet, since none was ever blessed"
        if blessing is not None:
            begun = f"{pushed}/{blessing.model}; other first weights are a new training, also for the same images"
        yield f"trainer.warm_start: {begun}"


def render_schema_file(config: Config, config_file: Path, *, force: bool) -> Path:
    """Writes the schema of a configuration next to it.

    Raises:
        UsageError: there is one already and `force` is not set.
    """
    file = schema_file_for(config_file)
    config = resolve_baseline(config)
    _check_stored(config)
    rendered = _render(config, survey_input(IngestRecipe.of(config), locate(config)))
    if file.exists() and not force:
        check_schema(_schema_text(file), rendered, str(file))
        raise UsageError(f"{file}: exists already and fits. Use --force to replace it; curated changes would be lost.")
    _write_schema(rendered, file)
    return file


def check_options(config: Config) -> None:
    """Refuses options with which `shardwright ingest` makes a dataset, and no pipeline can train on it.

    Raises:
        ConfigError: an option is such a one.
    """
    if "train" not in config.split.names:
        raise ConfigError("split", "no split named train", "Add train; only `shardwright ingest` needs none.")
    _check_stored(config)


def _check_stored(config: Config) -> None:
    """Checks that features have the names and forms that the components read, and that serving can repeat the ingest.

    Images must stay encoded files, which the transform decodes.
    """
    if not config.features.ours:
        problem = "a pipeline reads features by their own names"
        raise ConfigError("features", problem, "Remove the section, or use `shardwright ingest`.")
    if config.images.encoding in ("tensor", "raw"):
        problem = f"a pipeline does not take {config.images.encoding} values"
        raise ConfigError("images.encoding", problem, "Use jpeg or png, or `shardwright ingest`.")
    ingest_image_options({"images": dataclasses.asdict(config.images)})


def _schema_text(file: Path) -> str:
    """Returns the text of a curated schema; a pipe in its place is not waited for."""
    try:
        return read_bytes(str(file)).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or error
        raise UsageError(f"{file}: cannot be read ({why}). Write it again with `shardwright schema render`.") from None


def _check_root(root: str, images: str) -> None:
    """Checks that the files of the run do not become input, or files of a dataset."""
    if becomes_input(root, images):
        what = f"{root} is inside the input folder {images} and would become input"
        raise ConfigError("run.root", what, "Name a folder outside of it, also by --root DIR.")
    check_not_in_dataset(f"{root}/runs")


def _nothing_to_train(surveyed: IngestInput) -> ConfigError:
    what, fix = (
        "the images have no classes, so there is nothing to train on",
        "Use `shardwright ingest`, or give labels.",
    )
    if surveyed.source.format == NUMBERS:
        what = "the images have numbers, and `run` trains on masks and classes only"
        fix = "Use `shardwright ingest`, and train a model of your own on `shardwright.load` with `numbers`."
    return ConfigError("input.labels", what, fix)


def _check_transform(config: Config, surveyed: IngestInput, labels: str) -> None:
    """Checks the transform now, before the ingest, and that the Trainer can read its output."""
    features = example_features(config.task, surveyed.survey, config.images)
    classes = len(surveyed.survey.classes)
    stored_features(config.transform.effective(config.task), features, labels=labels, classes=classes)
    if config.transform.preset == RLE_TEXT:
        what = "the Trainer reads run lengths as numbers, and rle_text stores text"
        raise ConfigError("transform.preset", what, "Use tf_vision or tfds.")


def _render(config: Config, surveyed: IngestInput) -> str:
    survey = surveyed.survey
    features = example_features(config.task, survey, config.images)
    return render_schema(config.task, survey.classes, labels_kind(config.task, survey), features)


def _write_schema(text: str, file: Path) -> None:
    try:
        write_file(file, text)
    except OSError as error:
        raise unwritable(f"{file}:", error, "Copy the configuration to a folder of yours.") from None
