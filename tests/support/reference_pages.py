"""The generated pages of `docs/reference/`: objects from their docstrings, tables from the constants of the code."""

import inspect
import json
import re
import textwrap
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import shardwright
from shardwright.components import __all__ as public_components
from shardwright.config.shards import PRESETS
from shardwright.dataset.feature_presets import COMMON_FEATURES
from shardwright.errors import ShardwrightError
from shardwright.evaluation import submission
from shardwright.ingest.known_files import PROBE_FEATURES
from shardwright.label_formats import FORMATS

GENERATED = "This page is generated from the code."
Table = dict[str, str]

# The content of each feature. The names and types come from the code.
FEATURES: Table = {
    "image/encoded": "the image file: the stored bytes",
    "image/format": "`jpeg` or `png`; `raw` or `tensor` after a transform with that encoding",
    "image/height": "rows of the stored image",
    "image/width": "columns of the stored image",
    "image/channels": "1 gray, 3 RGB, 4 RGBA",
    "image/orientation": "Exif orientation, 1 to 8; 1 is upright",
    "image/filename": "the last part of the key",
    "image/key": "the path of the file below the folder of the images",
    "image/blake3": "BLAKE3 of the file that came in, as hex",
    "image/sha256": "SHA-256 of the file that came in, with `images.checksum: sha256`",
    "image/class/label": "the classes of the image, as indices into the list of classes",
    "image/class/text": "the names of these classes, in the same order",
}
SOMETIMES: tuple[tuple[str, str, str], ...] = (
    ("image/segmentation/CLASS/rle", "int64 list", "the mask of a class: start, length, start, length, …"),
    ("image/segmentation/CLASS/area", "int64", "the pixels of that mask"),
    ("image/segmentation/ignore/rle", "int64 list", "pixels that count neither in the loss nor in a metric"),
    ("image/segmentation/CLASS/png", "bytes", "the mask as a PNG of 0 and 1, with `transform.masks: png`"),
    ("image/object/bbox/xmin, ymin, xmax, ymax", "float32 list", "boxes, as parts of the width and the height"),
    ("image/object/class/label", "int64 list", "class of each box: the index plus 1"),
    ("image/object/class/text", "bytes list", "class of each box: the name"),
    ("image/caption/text", "bytes list", "captions"),
    ("image/meta/COLUMN", "bytes, int64 or float32 list", "further columns of the table, and numbers"),
    ("image/original/height, width", "int64", "the size before the transform"),
)
DATASET_FILES: Table = {
    "manifest.json": "the recipe, the classes, the totals; size and checksum of all that equal datasets share",
    "Split-SPLIT/data-NNNNN-of-NNNNN.tfrecord": "the shards: uncompressed TFRecord files of `tf.train.Example`",
    "index/Split-SPLIT/data-NNNNN-of-NNNNN.jsonl": "key, offset and length of every record of a shard",
    "ledger/part-NNNNN-of-NNNNN.jsonl": "one row for each input: written, duplicate or rejected, with the reason",
    "facts/Split-SPLIT/data-NNNNN-of-NNNNN.json": "figures of a shard, from which the report is made",
    "lineage.json": "the recipe, the parents by their digests, the versions of code and packages",
    "build.json": "when, where and by which process the dataset was made; checksums of `lineage.json` and `origins/`",
    "origins/inputs.jsonl": "checksums of the inputs, so that the next ingest can copy unchanged images",
    "statistics.json": "of a transformed dataset: mean and deviation of the pixels, which `load` uses",
    "features.json": "the features for TensorFlow Datasets",
    "dataset_info.json": "the splits for TensorFlow Datasets",
    "image.class.label.labels.txt": "the names of the classes for TensorFlow Datasets",
}
COMPETITIONS: tuple[tuple[str, str, str, str, str], ...] = (
    ("Understanding Clouds", "`Image_Label`, `EncodedPixels`", "`absolute`", "`column`", "1"),
    ("Severstal Steel Defect Detection", "`ImageId`, `ClassId`, `EncodedPixels`", "`absolute`", "`column`", "1"),
    ("Severstal, first version", "`ImageId_ClassId`, `EncodedPixels`", "`absolute`", "`column`", "1"),
    ("Airbus Ship Detection", "`ImageId`, `EncodedPixels`", "`absolute`", "`column`", "1"),
    ("TGS Salt Identification", "`id`, `rle_mask`", "`absolute`", "`column`", "1"),
    ("Data Science Bowl 2018", "`ImageId`, `EncodedPixels`", "`absolute`", "`column`", "1"),
    ("Carvana Image Masking", "`img`, `rle_mask`", "`absolute`", "`row`", "1"),
    ("Sartorius Cell Instance Segmentation", "`id`, `annotation`", "`absolute`", "`row`", "1"),
    ("UW-Madison GI Tract", "`id`, `class`, `segmentation`", "`absolute`", "`row`", "1"),
    ("SIIM-ACR Pneumothorax", "`ImageId`, `EncodedPixels`", "`relative`", "`column`", "–"),
    ("COCO", "a list of counts, or a compressed string", "`counts`", "`column`", "–"),
)


def table(head: str, rows: Iterable[Iterable[str]]) -> str:
    """Returns a table; `head` has its columns, separated by commas."""
    columns = [column.strip() for column in head.split(",")]
    lines = [columns, ["---"] * len(columns), *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def coded(values: Table) -> list[tuple[str, str]]:
    return [(f"`{name}`", text) for name, text in values.items()]


SECTION = re.compile(r"^(Args|Returns|Raises|Example|Examples|Attributes|Inputs|Outputs|Yields):\n", re.MULTILINE)


def described(value: Any, defaults: Table | None = None, channels: Table | None = None) -> str:
    """A docstring in the style of Google as Markdown: text, then a table or a paragraph for each section.

    Args:
        value: what has the docstring.
        defaults: the default of each parameter.
        channels: of a component, the type of the artifacts of each parameter that is a channel.
    """
    text = re.sub(r"(?m)^> ", "", inspect.getdoc(value) or "")
    # Pages are named by their files in the source, and are links on the site.
    text = re.sub(r"`docs/reference/([\w-]+)\.md`", r"[\1](\1.md)", text)
    head, *rest = SECTION.split(text)
    lines = [head.strip()]
    for name, body in zip(rest[::2], rest[1::2], strict=True):
        content = textwrap.dedent(body).strip()
        if name in ("Example", "Examples"):
            lines += ["", content]
        elif name == "Returns":
            lines += ["", f"**Returns:** {_joined(content)}"]
        else:
            title = {"Args": "parameter", "Attributes": "attribute"}.get(name, name.lower())
            entries = re.findall(r"^(\*{0,2}[\w, *]+?)(?: \([^)]*\))?: (.*(?:\n+ +.*)*)", content, re.MULTILINE)
            if name == "Raises":
                # The message has the condition, and the end of the page what each error means.
                lines += ["", f"**Raises:** {', '.join(f'`{key}`' for key, _ in entries)}"] if channels is None else []
                continue
            rows = [[f"`{key}`", _joined(about)] for key, about in entries]
            if name == "Args" and defaults is not None:
                title = "parameter, default"
                rows = [[row[0], defaults.get(key, ""), row[1]] for row, (key, _) in zip(rows, entries, strict=True)]
            if name == "Args" and channels:
                title = "parameter, type, default"
                rows = [[row[0], channels.get(key, ""), *row[1:]] for row, (key, _) in zip(rows, entries, strict=True)]
            lines += ["", table(f"{title}, description", rows)]
    return "\n".join(lines)


def _joined(text: str) -> str:
    return " ".join(text.split())


def signature(name: str, value: Any) -> str:
    """A signature with defaults and without types, wrapped after 90 characters."""
    parameters = [one for one in inspect.signature(value).parameters.values() if one.name != "self"]
    shown: list[str] = []
    keyword_only = False
    for one in parameters:
        if one.kind is one.KEYWORD_ONLY and not keyword_only:
            shown, keyword_only = [*shown, "*"], True
        keyword_only |= one.kind is one.VAR_POSITIONAL
        stars = {one.VAR_POSITIONAL: "*", one.VAR_KEYWORD: "**"}.get(one.kind, "")
        written = "…" if " object at " in repr(one.default) else repr(one.default)
        default = "" if one.default is one.empty else f"={written}"
        shown.append(f"{stars}{one.name}{default}")
    line = f"{name}({', '.join(shown)})"
    if len(line) > 90:
        line = f"{name}(\n" + "".join(f"    {part},\n" for part in shown) + ")"
    return f"```text\n{line}\n```"


def python_api() -> str:
    parts = [
        "# Python API",
        "All of this is imported from `shardwright`. [Use Shardwright from Python](../get-started/python.md) shows how "
        f"it fits together. {GENERATED}",
    ]
    functions = [name for name in sorted(shardwright.__all__) if inspect.isfunction(getattr(shardwright, name))]
    errors = [name for name in sorted(shardwright.__all__) if _is_error(getattr(shardwright, name))]
    classes = sorted(set(shardwright.__all__) - {*functions, *errors})
    parts += ["## Functions"]
    for name in functions:
        value = getattr(shardwright, name)
        parts += [f"### {name}", signature(name, value), described(value)]
    parts += ["## Classes"]
    for name in classes:
        kind = getattr(shardwright, name)
        parts += [f"### {name}", described(kind) if kind is not shardwright.Config else _config(kind), _methods(kind)]
    parts += [
        "## Errors",
        "`ShardwrightError` is the base of all.",
    ]
    parts += [table("error, meaning", [(f"`{name}`", _first(getattr(shardwright, name))) for name in errors])]
    return "\n\n".join(part for part in parts if part) + "\n"


def _config(kind: type) -> str:
    """The configuration has a page of its own; here are only the attributes that are no sections of it."""
    text = described(kind)
    head, _, _ = text.partition("\n\n| attribute")
    rows = [line for line in text.splitlines() if line.startswith(("| `base`", "| `notes`"))]
    listed = "\n".join(["| attribute | description |", "| --- | --- |", *rows])
    return f"{head} Its attributes are the sections of the [configuration](configuration.md), and these:\n\n{listed}"


def _is_error(value: Any) -> bool:
    return inspect.isclass(value) and issubclass(value, ShardwrightError)


def _methods(kind: type) -> str:
    rows = []
    for name, value in vars(kind).items():
        inner = getattr(value, "__func__", getattr(value, "fget", getattr(value, "func", value)))
        if not name.startswith("_") and callable(inner) and inspect.getdoc(inner):
            rows.append(
                (f"`{name}`" if inner is not value and not hasattr(value, "__func__") else f"`{name}()`", _first(inner))
            )
    return table("member, description", rows) if rows else ""


def _first(value: Any) -> str:
    return _joined((inspect.getdoc(value) or "").partition("\n\n")[0])


def tfx_components() -> str:
    from shardwright import components

    named = {name: getattr(components, name) for name in sorted(public_components)}
    steps = {name: value for name, value in named.items() if hasattr(value, "SPEC_CLASS") or hasattr(value, "spec")}
    parts = [
        "# TFX components",
        "All of this is imported from `shardwright.components`; the [tutorial](../tutorials/tfx-pipeline.md) has a "
        "whole pipeline. Every component also has `from_config(config, …)`, which takes what you leave out from a "
        f"configuration of `shardwright run`, or its YAML file. {GENERATED}",
    ]
    for name, value in steps.items():
        parts += [f"## {name}", described(value, _defaults_of(value), _inputs_of(value)), _outputs_of(value)]
    others = {name: value for name, value in named.items() if name not in steps}
    # A constructor of a section wraps its class.
    wrapped = {name: getattr(one, "__wrapped__", None) for name, one in others.items()}
    paths = {name: kind.PATH for name, kind in wrapped.items() if hasattr(kind, "PATH")}
    sections = [f"[`{name}`](configuration.md#{path.replace('.', '').rstrip('*')})" for name, path in paths.items()]
    formats = [f"`{row.function}`" for row in FORMATS]
    shown = [
        (f"`{name}`", _first(value))
        for name, value in others.items()
        if inspect.isfunction(value) and name not in paths and f"`{name}`" not in formats
    ]
    parts += [
        "## Sections, annotations, functions",
        f"Sections of the configuration, with the keys that they have in YAML: {', '.join(sections)}.",
        f"The labels of `Input`, one function for each [annotation format](../formats/index.md): {', '.join(formats)}.",
        table("function, what it does", shown),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _defaults_of(component: Any) -> Table:
    """The default of each parameter; `None` is not shown, as the description has what it stands for."""
    return {
        one.name: "required" if one.default is one.empty else f"`{one.default!r}`"
        for one in inspect.signature(component).parameters.values()
        if one.kind is not one.VAR_KEYWORD and one.default is not None
    }


def _inputs_of(component: Any) -> Table:
    """The type of the artifacts of each parameter that is a channel."""
    spec = getattr(component, "SPEC_CLASS", None)
    return {key: f"`{one.type.TYPE_NAME}`" for key, one in spec.INPUTS.items()} if spec else {}


def _outputs_of(component: Any) -> str:
    spec = getattr(component, "SPEC_CLASS", None)
    outputs = ", ".join(f"`{key}` (`{one.type.TYPE_NAME}`)" for key, one in (spec.OUTPUTS if spec else {}).items())
    return f"**Outputs:** {outputs}." if outputs else ""


def tfrecord_features() -> str:
    kinds = {"bytes": "bytes", "int64": "int64", "float32": "float32"}
    rows = [
        (f"`{name}`", kinds[kind] + (" list" if "class" in name else ""), FEATURES[name])
        for name, kind in COMMON_FEATURES.items()
    ]
    some = [(", ".join(f"`{part}`" for part in names.split(", ")), kind, text) for names, kind, text in SOMETIMES]
    probes = [(f"`{name}`", kind) for name, kind in PROBE_FEATURES.items()]
    return f"""# TFRecord features and files of a dataset

A shard is an uncompressed TFRecord file. Each record is a `tf.train.Example` with these features, named as in
TensorFlow Model Garden. {GENERATED}

## Features of every image

{table("feature, type, content", rows)}

## Features of some images

`CLASS` is the name of a class, with `/` written as `%2F` and `%` as `%25`.

{table("feature, type, content", some)}

With `images.verify: full`, every image also has these features:

{table("feature, type", probes)}

`features.preset` chooses other names and forms: {", ".join(f"`{name}`" for name in PRESETS)}. `features.map` renames
single features.

## Parse a segmentation TFRecord with TensorFlow

[`load`](../how-to/loader.md) does this for you, and faster. This snippet needs only TensorFlow, and a dataset with the
class `Fish`:

```python
import tensorflow as tf

spec = {{
    "image/encoded": tf.io.FixedLenFeature([], tf.string),
    "image/height": tf.io.FixedLenFeature([], tf.int64),
    "image/width": tf.io.FixedLenFeature([], tf.int64),
    "image/segmentation/Fish/rle": tf.io.VarLenFeature(tf.int64),
}}


def parse(record):
    example = tf.io.parse_single_example(record, spec)
    image = tf.io.decode_image(example["image/encoded"], channels=3, expand_animations=False)
    runs = tf.reshape(example["image/segmentation/Fish/rle"].values, [-1, 2])
    # Starts count from 0, down the columns.
    pixels = tf.ragged.range(runs[:, 0], runs[:, 0] + runs[:, 1]).flat_values
    height, width = example["image/height"], example["image/width"]
    mask = tf.scatter_nd(pixels[:, tf.newaxis], tf.ones_like(pixels), [height * width])
    return image, tf.transpose(tf.reshape(mask, [width, height]))


shards = tf.io.gfile.glob("ds/Split-train/*.tfrecord")
for image, mask in tf.data.TFRecordDataset(shards).map(parse).take(1):
    print(image.shape, mask.shape)
```

## Files of a dataset

![A shard and its index, which has the place of each record](../pictures/shard.svg)

`ingest` and `transform` write a folder with these files. `manifest.json` is written last: without it, a folder is no
dataset. `shardwright verify DIR` reads all of them and reports every changed bit.

{table("file, content", coded(DATASET_FILES))}
"""


def rle_layouts() -> str:
    layouts = re.findall(
        r"^\| `([\w-]+)` \| (.*?) \| (.*?) \| (.*?) \|$", inspect.getdoc(submission) or "", re.MULTILINE
    )
    assert {name for name, *_ in layouts} == set(submission.LAYOUTS)
    return f"""# Run-length layouts

A run-length code (RLE) describes a mask by runs of pixels, and competitions such as Severstal, Airbus and Understanding
Clouds write it differently. The layout is detected from the header and the values, and logged. {GENERATED}

![The same table read in the right order, and in the wrong one](../pictures/mask-orders.png)

## Which competition uses which layout

{table("dataset, columns, encoding, order, start", COMPETITIONS)}

- **encoding**: `absolute` is `start length start length …`. `relative` is `offset length …`, each offset counted
  from the end of the run before. `counts` is the number of pixels outside, inside, outside, …
- **order**: `column` counts down the columns, `row` counts along the rows.
- **start**: the number of the first pixel.

If detection is wrong, set the layout:

```yaml
task: segmentation
input:
  images: train_images
  labels: {{path: train.csv, rle: {{encoding: absolute, order: column, start: 1}}}}
```

Records have pairs of start and length that count from 0, down the columns, in
[`image/segmentation/CLASS/rle`](tfrecord-features.md).

## Layouts of predictions

`shardwright predict --dialect NAME` writes one of these tables:

{table("name, columns, rows for each image, codes", [(f"`{name}`", *rest) for name, *rest in layouts])}

"""


def _default(kind: str, value: Any) -> str:
    """KFP writes a whole number as 0.0."""
    return f"`{json.dumps(int(value) if kind == 'integer' else value)}`"


KFP_VALUES: Table = {
    "config": "text of a configuration",
    "data_root": "folder or bucket where the relative paths of `config` begin; empty: they are complete",
    "dataset": "a dataset of `ingest`",
    "deep": "hash every image, too",
    "findings": "JSON with all damage that was found",
    "fingerprint": "fingerprint of the dataset",
    "graph": "the TransformGraph that serving needs",
    "image": "name of Shardwright's image, in the YAML files only",
    "page": "the report; Kubeflow shows it",
    "seed": "chooses the samples of the report",
    "strict": "fail the step if there are findings",
    "transformed": "the dataset with images of one size",
    "whole": "whether there are no findings",
}


KFP_EXAMPLE = """```python
from kfp import compiler, dsl

from shardwright.pipelines.kfp.factory import plain_components

CONFIG = \"""
task: segmentation
input: {images: train_images, labels: {path: train.csv}}
transform: {size: [352, 544]}
\"""
steps = plain_components("europe-docker.pkg.dev/my-project/ml/shardwright:0.1.0")


@dsl.pipeline(name="clouds")
def clouds(data_root: str = "gs://my-bucket/clouds"):
    made = steps.ingest(config=CONFIG, data_root=data_root).set_cpu_limit("4").set_memory_limit("8G")
    checked = steps.verify(dataset=made.outputs["dataset"])
    small = steps.transform(config=CONFIG, dataset=made.outputs["dataset"]).set_cpu_limit("8").set_memory_limit("16G")
    small.after(checked)
    steps.report(dataset=made.outputs["dataset"])


compiler.Compiler().compile(clouds, "clouds.yaml")
```

- On Vertex AI, call `plain_components(IMAGE, target="vertex")`: the steps then read and write `gs://` directly.
- The last line of a step's log is its error. Exit codes are those of the command line.
- Write the configuration as a constant: KFP 2.5 writes a broken file for a parameter's default with several lines.
- `component_file("ingest")` names a YAML file for `kfp.components.load_component_from_file`. Its image is a parameter
  of the run, which Kubeflow supports from 2.4 on
  ([kubeflow/pipelines#11404](https://github.com/kubeflow/pipelines/pull/11404)), and Vertex AI does not.

The tests run the compiled commands of this pipeline, from the images to the report. No runner of KFP has run them:
`kfp.local` needs Docker, which the test machine lacks."""


def kfp_components() -> str:
    import yaml

    from shardwright.pipelines.kfp.factory import component_file
    from shardwright.pipelines.kfp.steps import STEPS

    parts = [
        "# KFP components",
        f"`ingest`, `verify`, `transform` and `report` as container components for your own KFP v2 pipeline, without "
        f"TFX. {GENERATED}",
        KFP_EXAMPLE,
    ]
    for step in STEPS:
        root = yaml.safe_load(component_file(step.__name__).read_text(encoding="utf-8"))["root"]
        rows = []
        for direction, side in (("input", root.get("inputDefinitions", {})), ("output", root["outputDefinitions"])):
            for name, value in side.get("artifacts", {}).items():
                rows.append((direction, f"`{name}`", f"`{value['artifactType']['schemaTitle']}`", "", KFP_VALUES[name]))
            for name, value in side.get("parameters", {}).items():
                kind = value["parameterType"].removeprefix("NUMBER_").lower()
                default = _default(kind, value["defaultValue"]) if value.get("isOptional") else ""
                rows.append((direction, f"`{name}`", kind, default, KFP_VALUES[name]))
        rows.sort(key=lambda row: row[0])
        parts += [f"## {step.__name__}", _first(step), table("direction, name, type, default, content", rows)]
    return "\n\n".join(parts) + "\n"


def tpu_machines() -> str:
    from shardwright.pipelines.tpu import MACHINES, SOURCES, TpuSlice

    rows = []
    for name in MACHINES:
        known = MACHINES[name].topologies
        found = TpuSlice(name, known[0])
        listed = known if len(known) <= 7 else (*known[:6], "…", known[-1])
        shapes = " ".join(one if one == "…" else f"`{one}`" for one in listed)
        numbers = (str(found.chips_per_host), str(found.processors_per_host), f"{found.memory_per_host >> 30} GiB")
        vertex = "the same" if MACHINES[name].on_vertex else "no"
        rows.append((f"`{found.generation}`", f"`{name}`", *numbers, shapes, vertex, ", ".join(MACHINES[name].sources)))
    columns = "generation, `machine`, chips, processors, memory, `topology` on GKE, on Vertex AI, sources"
    return f"""# TPU machines

The values of `machine` and `topology` in `kubeflow.trainer` and `vertex.trainer`. To train on one, follow
[Vertex AI with a TPU](../tutorials/vertex-tpu.md) or [GKE with a TPU node pool](../tutorials/gke-tpu.md). Processors
(virtual ones) and memory are those of one machine. {GENERATED}

{table(columns, rows)}

No row was tried on a real TPU. Compare it with the machine types of your region before you rent one.

- Slices of `ct5p-hightpu-4t` and `tpu7x-standard-4t` above 32 chips consist of cubes of 4x4x4 chips, with sides that do
  not decrease. Google's page of v5p allows slices of up to 6,144 chips (`16x16x24`); `xpk` creates larger ones.
- A TPU7x (Ironwood) chip has two JAX devices, so `trainer.batch_size` must be a multiple of twice its chips.
- Vertex AI takes the topologies that GKE has: Google's client describes the field `tpu_topology` of `MachineSpec` so.

## Sources

A source followed by a number is a line of a file. The table has the smaller number if two sources
differ: Google's page of machines has 360 processors for `ct6e-standard-8t`, and GKE's code has 992 GiB for
`tpu7x-standard-4t`. Google's page does not list `tpu7x-standard-1t`.

{table("source, where", ((name, f"`{place}`") for name, place in SOURCES.items()))}
"""


PAGES: dict[str, Callable[[], str]] = {
    "python-api": python_api,
    "tfx-components": tfx_components,
    "kfp-components": kfp_components,
    "tfrecord-features": tfrecord_features,
    "rle-layouts": rle_layouts,
    "tpu-machines": tpu_machines,
}
FOLDER = Path(__file__).parents[2] / "docs" / "reference"
