"""Cards: a dataset or a model described in Markdown, and a dataset in the vocabulary of Croissant.

All figures come from the manifest, the facts of the shards, `lineage.json` and the evaluation. Intended use, risks and
license are not in these files: their sections name what their author has to write.

Source: the Croissant format specification 1.0 (MLCommons), for `croissant`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from shardwright.dataset.manifest import MARKS, MASKS, Manifest
from shardwright.dataset.reader import ImageDataset
from shardwright.dataset.shard_names import index_path
from shardwright.display.histograms import plain_number
from shardwright.display.html import plain
from shardwright.evaluation.figures import TITLES, Figures
from shardwright.running.progress import SILENT, Progress, counted
from shardwright.storage import open_file
from shardwright.storage.checksum import SHA256, new_checksum

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|&])")
_PIECE = 1 << 20
_MARK_TEXTS = dict(zip(MARKS, ("images whose files contain a GPS position", "images that Exif turns"), strict=True))
_UNWRITTEN = (
    ("Origin and license", "who took the images, when, with which permission"),
    ("Intended use", "the task that the dataset is for, and the uses that it is not for"),
    ("Known gaps", "what the images do not show: places, seasons, devices, people"),
)
_UNWRITTEN_MODEL = (
    ("Intended use", "who should use the model for which decisions, and the uses that it is not for"),
    ("Limits", "images on which the model is known to fail"),
)
_CONTEXT: dict[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "equivalentProperty": "cr:equivalentProperty",
    "samplingRate": "cr:samplingRate",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileProperty": "cr:fileProperty",
    "fileObject": "cr:fileObject",
    "fileSet": "cr:fileSet",
    "format": "cr:format",
    "includes": "cr:includes",
    "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath",
    "key": "cr:key",
    "md5": "cr:md5",
    "parentField": "cr:parentField",
    "path": "cr:path",
    "recordSet": "cr:recordSet",
    "references": "cr:references",
    "regex": "cr:regex",
    "repeated": "cr:repeated",
    "replace": "cr:replace",
    "sc": "https://schema.org/",
    "separator": "cr:separator",
    "source": "cr:source",
    "subField": "cr:subField",
    "transform": "cr:transform",
}


def escaped(text: object, longest: int = 120) -> str:
    """Returns untrusted text for a line of Markdown."""
    return _SPECIAL.sub(r"\\\1", plain(str(text), longest))


def code_span(text: object, *, in_table: bool = False) -> str:
    """Returns untrusted text as a code span of Markdown, whose fence has more backticks than any run in it."""
    shown = plain(str(text))
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", shown)), default=0))
    room = " " if shown.startswith("`") or shown.endswith("`") else ""
    # A bar ends the cell of a table also within code.
    return f"{fence}{room}{shown.replace('|', chr(92) + '|') if in_table else shown}{room}{fence}"


def data_card(manifest: Manifest, figures: Mapping[str, Any], name: str) -> str:
    """Returns the card of a dataset in Markdown.

    Args:
        manifest: of the dataset.
        figures: what `shardwright stats` prints.
        name: its title.
    """
    return _page(
        [
            f"# {escaped(name)}",
            f"{counted(sum(figures['images'].values()), 'image')} for {manifest.task}. "
            f"Kind of annotations: {manifest.labels}.",
            *_splits(manifest, figures),
            *_classes(manifest, figures),
            *_images(figures),
            "## Features",
            *_table(
                ("feature", "type"),
                [(code_span(key, in_table=True), kind) for key, kind in sorted(manifest.features.items())],
            ),
            "## How it was made",
            f"- fingerprint: {code_span(manifest.fingerprint)}",
            f"- digest of the manifest: {code_span(manifest.digest)}",
            f"- source: {code_span(manifest.parent or 'unknown')}",
            *_options(manifest.recipe),
            *_sections(_UNWRITTEN),
        ]
    )


def _splits(manifest: Manifest, figures: Mapping[str, Any]) -> Iterator[str]:
    yield "## Splits"
    rows = []
    for split, images in sorted(figures["images"].items()):
        shards = [shard for shard in manifest.shards if shard.split == split]
        rows.append((escaped(split), images, len(shards), sum(shard.bytes for shard in shards)))
    yield from _table(("split", "images", "shards", "bytes"), rows)
    totals = manifest.totals
    left = [f"{number} {status}" for status in ("duplicate", "rejected") if (number := totals.get(status))]
    left += [f"{totals[mark]} {text}" for mark, text in _MARK_TEXTS.items() if totals.get(mark)]
    if left:
        yield f"{counted(totals['inputs'], 'input')}, of which {', '.join(left)}."


def _classes(manifest: Manifest, figures: Mapping[str, Any]) -> Iterator[str]:
    if not manifest.classes:
        return
    yield "## Classes"
    splits, masks = sorted(figures["images"]), manifest.labels == MASKS
    rows = []
    for label, (text, counts) in enumerate(figures["classes"].items()):
        area = [f"{100 * counts.get('mask_part', 0):.2g} %"] if masks else []
        rows.append((label, escaped(text), *(counts[split] for split in splits), *area))
    yield from _table(("number", "class", *map(escaped, splits), *(["mask area"] if masks else [])), rows)


def sizes_text(figures: Mapping[str, Any]) -> str:
    """Returns the most frequent sizes with their images, and how many more there are."""
    listed = ", ".join(f"{size} {count}" for size, count in figures["sizes"].items())
    others = figures["further_sizes"]
    if not others["sizes"]:
        return listed
    return f"{listed}; {counted(others['sizes'], 'further size')} of {counted(others['images'], 'image')}"


def _images(figures: Mapping[str, Any]) -> Iterator[str]:
    yield "## Images"
    yield f"Formats: {_counts(figures['formats'])}. Sizes (height x width): {sizes_text(figures)}."
    rows = [
        (measure, row["count"], *(plain_number(value) for value in (row["min"], row["quartiles"][1], row["max"])))
        for measure, row in figures["measures"].items()
    ]
    yield from _table(("measure", "of images", "least", "median", "most"), rows)
    measured = figures["measured"]
    if measured["images"] < measured["of"]:
        yield f"Measures of {measured['images']} of {counted(measured['of'], 'image')} are of those chosen by hash."
    duplicates = {key: value for key, value in figures["duplicates"].items() if value is not None}
    yield f"Duplicates: {_counts(duplicates) if duplicates else 'not searched for'}."


def model_card(
    described: Mapping[str, Any], figures: Figures | None, classes: Sequence[str], name: str, about: str = ""
) -> str:
    """Returns the card of a model in Markdown.

    Args:
        described: its ancestry, as `shardwright lineage --json` prints it.
        figures: of its evaluation; `None` if none was found.
        classes: names of its classes.
        name: its title.
        about: Markdown in place of the sections that its author has to write.
    """
    model = described["artifacts"][0]
    evaluation = ["No evaluation was found. `--search DIR` looks further."]
    if figures is not None:
        rows = [(escaped(metric), f"{value:.6g}") for metric, value in sorted(figures.values.items())]
        defined = [f"- {name}: {TITLES[name][1]}" for name, _ in figures.means() if TITLES.get(name, ("", ""))[1]]
        words = escaped(figures.measured.words())
        evaluation = [*_table(("metric", "value"), rows), *defined, f"Measured on {words}."]
    compared = [one["parents"].get("baseline") for one in described["evaluations"]]
    ancestors = [
        (one["kind"], code_span((one["digest"] or one["fingerprint"])[:12], in_table=True), escaped(one["place"]))
        for one in described["artifacts"][1:]
    ]
    parts = [
        f"# {escaped(name)}",
        f"A model with the fingerprint {code_span(model['fingerprint'])}.",
        *(["## Classes", *[f"{label}. {escaped(text)}" for label, text in enumerate(classes)]] if classes else []),
        "## Evaluation",
        *evaluation,
        *([f"Compared with the model {code_span(compared[0][:12])}."] if compared and compared[0] else []),
        "## Trained with",
        *_options(model["recipe"]),
        *[f"- {escaped(key)} {escaped(value)}" for key, value in sorted(model["versions"].items())],
        "## Made of",
        *_table(("kind", "digest", "place"), ancestors),
        *[f"- not found: {escaped(problem, 300)}" for problem in described["missing"]],
        *[f"- contradiction: {escaped(problem, 300)}" for problem in described["problems"]],
        *([about] if about else _sections(_UNWRITTEN_MODEL)),
    ]
    return _page(parts)


def croissant(dataset: ImageDataset, name: str, given: Mapping[str, str], shown: Progress = SILENT) -> dict[str, Any]:
    """Returns a dataset in the vocabulary of Croissant, as plain values for JSON-LD; reads every shard for its SHA-256.

    Args:
        dataset: the dataset.
        name: its name.
        given: `license`, `url`, `citeAs`, ... as its author states them.
        shown: counts the records.
    """
    manifest = dataset.manifest
    files = []
    for split in dataset.splits:
        for shard in dataset.shards(split):
            files.append(_file(shard.path, shard.file, "application/x-tfrecord"))
            files.append(_file(index_path(shard.path), shard.index, "application/jsonlines"))
            shown.advance(shard.records)
    counts = {split: dataset.num_records(split) for split in dataset.splits}
    features = ", ".join(sorted(manifest.features))
    images = counted(sum(counts.values()), "image")
    numbers = ((name, number) for number, name in enumerate(manifest.classes))
    return {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": name,
        "description": f"{images} for {manifest.task}, as tf.train.Example in TFRecord files. An index has key, offset "
        f"and length of each record of its shard. Features: {features}.",
        "version": "1.0.0",
        "identifier": manifest.fingerprint,
        **given,
        "distribution": files,
        "recordSet": [
            _records("splits", "cr:Split", {"name": "sc:Text", "images": "sc:Integer"}, counts.items()),
            _records("classes", "sc:Enumeration", {"name": "sc:Text", "number": "sc:Integer"}, numbers),
        ],
    }


def _file(name: str, path: str, kind: str) -> dict[str, Any]:
    digest, size = new_checksum(SHA256), 0
    with open_file(path) as file:
        while piece := file.read(_PIECE):
            digest.update(piece)
            size += len(piece)
    return {
        "@type": "cr:FileObject",
        "@id": name,
        "name": name,
        "contentUrl": name,
        "contentSize": f"{size} B",
        "encodingFormat": kind,
        "sha256": digest.hexdigest(),
    }


def _records(name: str, kind: str, fields: Mapping[str, str], rows: Iterable[tuple[Any, ...]]) -> dict[str, Any]:
    described = [
        {"@type": "cr:Field", "@id": f"{name}/{one}", "name": f"{name}/{one}", "dataType": type_}
        for one, type_ in fields.items()
    ]
    data = [{f"{name}/{one}": value for one, value in zip(fields, row, strict=True)} for row in rows]
    key = {"@id": f"{name}/{next(iter(fields))}"}
    return {
        "@type": "cr:RecordSet",
        "@id": name,
        "name": name,
        "dataType": kind,
        "key": key,
        "field": described,
        "data": data,
    }


def _table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    """Returns a table as one paragraph; none without rows."""
    lines = [head, ["---"] * len(head), *rows]
    return ["\n".join(f"| {' | '.join(map(str, row))} |" for row in lines)] if rows else []


def _options(recipe: Mapping[str, Any]) -> Iterator[str]:
    """Yields the options of a recipe; in empty sections all have their defaults."""
    for name, value in sorted(recipe.items()):
        if value not in ({}, [], None):
            yield f"- {escaped(name)}: {escaped(value)}"


def _sections(sections: Iterable[tuple[str, str]]) -> Iterator[str]:
    for title, text in sections:
        yield f"## {title}"
        yield f"To be written: {text}."


def _page(parts: Iterable[str]) -> str:
    """Returns paragraphs as a page; the items of a list stay together."""
    page = ""
    for part in parts:
        between = "\n" if part.startswith("- ") and page.rpartition("\n")[2].startswith("- ") else "\n\n"
        page += between + part if page else part
    return page + "\n"


def _counts(counts: Mapping[str, object]) -> str:
    return ", ".join(f"{escaped(name.replace('_', ' '))} {count}" for name, count in counts.items())
