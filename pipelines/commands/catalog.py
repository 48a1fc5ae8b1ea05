"""All commands of `shardwright` in the groups of the help: summary, description, example, page, options, and its code.

The parsers and the reference page are made of it, without importing the code of a command.
"""

from __future__ import annotations

from shardwright.label_formats import AUTO, EXPORTS, FORMATS
from shardwright.pipelines.commands.catalog_of_models import CLOUD, MAINTENANCE, MODEL, TARGETS
from shardwright.pipelines.commands.entry import (
    CONFIG,
    DATASET,
    DERIVED,
    FORCE,
    INGESTED,
    OUT,
    SEED,
    SET,
    WORKERS,
    Entry,
    arg,
    choice,
    first_of,
    flag,
    json,
    several,
    show,
)

START = {
    "init": Entry(
        "write a configuration for a folder of images",
        "Detects the format, the classes and the sizes. If two readings fit, it asks, and ends with exit code 2.",
        "init photos photos/labels.csv --out photos.yaml",
        "how-to/configure.md",
        (
            arg("folder", "FOLDER", "the images: a folder, a glob or a URL; or a folder with images and annotations"),
            arg(
                "labels",
                "LABELS",
                "the annotations: a table, COCO JSON or a folder; several files, or SPLIT=FILE for each split",
                nargs="*",
            ),
            choice("--task", ("segmentation", "classification"), "by default detected"),
            arg("--out", "FILE", "file to write (default: FOLDER's name .yaml); - prints it"),
            SET,
            show("show images under each reading, in the terminal or as a PNG; without a question, as they are read"),
            FORCE,
            json("print what was detected as JSON"),
        ),
    ),
    "init-pipeline": Entry(
        "write a TFX pipeline project of your own",
        "A pipeline around ImageExampleGen, a model, runners for this machine and for Kubeflow, and a test. It "
        "runs as written.",
        "init-pipeline flowers --images photos",
        "tutorials/tfx-pipeline.md",
        (
            arg("folder", "DIR", "folder to make"),
            arg("--images", "FOLDER", "images in class folders (default: data, in the project)"),
            json("print the files as JSON"),
        ),
    ),
    "validate": Entry(
        "check a configuration",
        "Prints everything that is wrong with a configuration at once. Exit code 2 if anything is. With --data also "
        "tries up to 100 images with their annotations. Exit code 1 if too many would be rejected.",
        "validate photos.yaml --data",
        "how-to/configure.md",
        (
            *CONFIG,
            flag("--show", "print every value, defaults included, as YAML"),
            flag("--data", "read the annotations, and try up to 100 images, too"),
            choice("--target", TARGETS, "also list everything that this platform needs"),
            flag("--editor", "write the JSON Schema next to the file and name it in the first line, for editors"),
            json("print the errors, with --show the values, with --data the rejects, as JSON"),
        ),
    ),
    "run": Entry(
        "run the whole pipeline on this machine",
        "Ingests, checks, transforms, trains, evaluates and pushes. Steps without a change come from the cache. Exit "
        "code 1 if a check stops the run, or if the model is not blessed.",
        "run photos.yaml --root runs/photos",
        "deploy/local.md",
        (
            *CONFIG,
            arg("--root", "DIR", "folder of the run (default: run.root of the configuration)"),
            json("print the verdict and the figures as JSON, also if a check fails"),
            flag("--verbose", "show all messages of TFX, Beam and TensorFlow", "-v"),
        ),
    ),
    "sample": Entry(
        "draw a data set to try things with",
        "Images with masks of four classes, and their CSV of run lengths.",
        "sample --out demo-data --count 40",
        "how-to/inspect.md",
        (
            OUT,
            arg("--count", "N", "number of images (default 20)", type=int, default=20),
            arg("--test", "N", "also draw N test images, with a sample_submission.csv", type=int, default=0),
            arg("--height", "H", "in pixels (default 1400)", type=int, default=1400),
            arg("--width", "W", "in pixels (default 2100)", type=int, default=2100),
            SEED,
            json("print what was drawn as JSON"),
        ),
    ),
    "docs": Entry(
        "show a page of the documentation, or search it",
        "Works without a network. Without PAGE it lists all pages; a word that is not a page is searched for.",
        "docs reference/messages paths",
        "index.md",
        (
            arg("page", "PAGE", "page such as how-to/predict, or a word (default: list all pages)", nargs="?"),
            arg("section", "SECTION", "anchor of a heading on it, or another word", nargs="?"),
        ),
    ),
}
DATA = {
    "ingest": Entry(
        "make a dataset of images and annotations",
        "Lists the images, reads their annotations, divides them into splits and writes TFRecord shards. The folder "
        "appears whole or not at all; the same call again finds it.",
        "ingest photos.yaml --out datasets/photos",
        "how-to/ingest.md",
        (
            *CONFIG,
            OUT,
            WORKERS,
            show("where the input can be read in several ways, show images under each, in the terminal or as a PNG"),
            json("print fingerprint, totals and notes as JSON"),
        ),
    ),
    "transform": Entry(
        "resize a dataset for training",
        "Gives images the size and the encoding of the section `transform`.",
        "transform photos.yaml datasets/photos --out datasets/photos-352",
        "how-to/transform.md",
        (
            arg("config", "CONFIG", "YAML file with the section transform"),
            SET,
            arg("dataset", "DIR", "folder or URL that `shardwright ingest` wrote"),
            OUT,
            WORKERS,
            flag("--tfx", "run ImageTransform on Beam, which adds statistics and a schema for TFX's components"),
            json("print what was made as JSON"),
            flag("--verbose", "show all messages of Beam and TensorFlow", "-v"),
        ),
    ),
    "verify": Entry(
        "read all bytes of a dataset and list damage",
        "Compares every record, shard, index and ledger with its checksum. Exit code 1 if anything is damaged.",
        "verify datasets/photos --deep",
        "how-to/inspect.md",
        (
            arg("dataset", "DIR", "folder that `shardwright ingest` wrote, or any file of TFRecords; or its URL"),
            flag("--deep", "also hash every image and compare it with its record"),
            WORKERS,
            json("print the findings as JSON"),
        ),
    ),
    "schema": Entry(
        "render, infer or compare schemas",
        "A schema states which features examples have, and in which range.",
        "schema infer datasets/photos --out photos.schema.pbtxt",
        "how-to/ingest.md#write-a-schema",
    ),
    "schema render": Entry(
        "write the schema of a configuration next to it",
        "The file is yours to edit; it is not overwritten without --force.",
        "schema render photos.yaml",
        "how-to/ingest.md#write-a-schema",
        (
            *CONFIG,
            flag("--force", "replace the file even if you have edited it"),
            json("print the file as JSON"),
        ),
        "schema:render",
    ),
    "schema infer": Entry(
        "infer a schema with domains as narrow as a dataset's values",
        "Reads all records.",
        "schema infer datasets/photos --out photos.schema.pbtxt",
        "how-to/ingest.md#write-a-schema",
        (
            INGESTED,
            arg("--out", "FILE", "file to write (default: print it)"),
            arg("--margin", "P", "margin beyond the values (default 0.1)", type=float, default=0.1),
            FORCE,
            json("print the file and the schema as JSON"),
        ),
        "schema:infer",
    ),
    "schema diff": Entry(
        "compare two schemas",
        "Exit code 1 if they differ.",
        "schema diff old.pbtxt new.pbtxt",
        "how-to/ingest.md#write-a-schema",
        (arg("one", "OLD", "a schema"), arg("other", "NEW", "another one"), json("print the differences as JSON")),
        "schema:diff",
    ),
}
LOOK = {
    "card": Entry(
        "describe a dataset or a model in Markdown or for Croissant",
        "Writes a data card from the manifest and the figures, or a model card from the evaluation and the lineage. "
        "With --croissant, writes Croissant's JSON-LD of a dataset.",
        "card datasets/photos --out CARD.md",
        "how-to/compare.md#write-a-card-or-croissant",
        (
            arg("path", "PATH", "a dataset, a model, or a run's folder (its blessed model); or a URL"),
            arg("--out", "FILE", "file to write; - prints it (default)", default="-"),
            flag("--croissant", "of a dataset: JSON-LD with the SHA-256 of all files"),
            arg("--name", "TEXT", "title (default: name of the folder)"),
            arg("--license", "URL", "for Croissant: the license of the images"),
            arg("--url", "URL", "for Croissant: the page of the dataset"),
            arg("--cite", "TEXT", "for Croissant: how to cite it"),
            several("--search", "DIR", "of a model: also search for its sources below this folder"),
            json("print the file's path, or the text, as JSON"),
            FORCE,
        ),
    ),
    "stats": Entry(
        "print the figures of a dataset",
        "Images, classes, sizes, quality and duplicates, for each split.",
        "stats datasets/photos",
        "how-to/inspect.md",
        (INGESTED, json("print the figures as JSON")),
    ),
    "report": Entry(
        "show a dataset as one HTML page",
        "Samples, figures, duplicates and rejects.",
        "report datasets/photos --out photos.html",
        "how-to/report.md",
        (
            INGESTED,
            arg("--out", "FILE", "file to write (default: DIR.html next to the folder)"),
            arg("--seed", "S", "selects the samples (default 0)", type=int, default=0),
            arg("--evaluation", "DIR", "also show a model: the output of the Evaluator"),
            arg("--training", "DIR", "and its curves: the output model_run of the Trainer"),
            FORCE,
            json("print the report's path as JSON"),
        ),
    ),
    "inspect": Entry(
        "show a dataset, a TFRecord file or a record",
        "Shows shards and features; also of files that other programs wrote.",
        "inspect datasets/photos/Split-train/data-00000-of-00002.tfrecord --record 0",
        "how-to/inspect.md",
        (
            arg("path", "PATH", "a dataset's folder, or any TFRecord file, plain or compressed"),
            arg("--record", "N", "one record of a file, from 0", type=int),
            json("print it as JSON"),
        ),
    ),
    "get": Entry(
        "find one record of a dataset by its key",
        "Reads that record only, through the index.",
        "get datasets/photos daisy/1.jpg --out daisy.jpg",
        "how-to/inspect.md",
        (
            arg("dataset", "DIR", "a dataset's folder"),
            arg("key", "KEY", "the image's path below the folder of images, as the ledger names it"),
            arg("--out", "FILE", "write the stored image here, byte for byte"),
            FORCE,
            json("print the record as JSON"),
        ),
    ),
    "diff": Entry(
        "compare two datasets",
        "Compares images, splits, classes, masks and other features, key by key. Exit code 1 if they differ.",
        "diff datasets/october datasets/november --html changes.html",
        "how-to/compare.md",
        (
            arg("one", "A", "the earlier dataset"),
            arg("other", "B", "the later one"),
            arg("--html", "FILE", "also write a page"),
            FORCE,
            json("print all of it as JSON"),
        ),
    ),
    "drift": Entry(
        "check whether images have changed more than by chance",
        "Compares the splits of a dataset, two datasets, or a dataset with a folder. "
        "Exit code 1 if images changed or cannot be read.",
        "drift datasets/october datasets/november",
        "how-to/drift.md",
        (
            arg("reference", "DIR", "the dataset with the expected images"),
            arg("current", "DIR", "a dataset, or a folder of images; without it splits are compared", nargs="?"),
            arg("--count", "N", "images per side (default 2000)", type=int, default=2000),
            arg("--alpha", "P", "chance of a false alarm (default 0.006)", type=float),
            arg("--ignore", "NAME", "measures that may change", nargs="*", default=[]),
            arg("--html", "FILE", "also write a page that shows the images that stand out"),
            FORCE,
            json("print the findings as JSON"),
        ),
    ),
}
CHANGE = {
    "subset": Entry(
        "make a dataset of a part of another one",
        "Takes the same share of every split and set of classes. Records keep their bytes. All cores write, unless the "
        "dataset is on a bucket.",
        "subset datasets/photos --share 0.1 --out datasets/tenth",
        "how-to/change-a-dataset.md",
        (
            DATASET,
            arg("--share", "P", "part of the images, 0 to 1", type=float),
            arg("--count", "N", "about this many images instead", type=int),
            arg("--splits", "NAME", "only of these splits", nargs="+"),
            arg("--classes", "NAME", "only images that have one of these classes", nargs="+"),
            arg("--keys", "FILE", "only these keys, one per line"),
            SEED,
            *DERIVED,
        ),
        "derived:subset",
    ),
    "merge": Entry(
        "merge several datasets into one",
        "The datasets need the same task, classes and features, and no key twice. If two have the same bytes in "
        "different splits, the image of the dataset that you name first stays, and the other is left out. All cores "
        "write, unless a dataset is on a bucket.",
        "merge datasets/october datasets/november --out datasets/autumn",
        "how-to/change-a-dataset.md",
        (arg("datasets", "DIR", "datasets of the same classes and features", nargs="+"), *DERIVED),
        "derived:merge",
    ),
    "reshard": Entry(
        "write the same records in other shards",
        "Records keep their bytes, splits and order. All cores write, unless the dataset is on a bucket.",
        "reshard datasets/photos --shard-size 50 --out datasets/small-shards",
        "how-to/change-a-dataset.md",
        (DATASET, *DERIVED),
        "derived:reshard",
    ),
    "relabel": Entry(
        "give images new annotations",
        "Replaces the annotations of a dataset, without reading the image files again. All cores write, unless the "
        "dataset is on a bucket.",
        "relabel datasets/photos corrected.csv --out datasets/corrected",
        "how-to/change-a-dataset.md#new-annotations",
        (
            DATASET,
            arg("labels", "FILE", "a table or COCO JSON, or its URL; as input.labels.path"),
            OUT,
            first_of(
                "--unlisted-images",
                ("auto", "empty", "reject", "fail", "keep"),
                "images without a row; keep: they keep their annotations",
            ),
            first_of(
                "--format",
                (AUTO, *(row.name for row in FORMATS if row.relabels)),
                "as input.labels.format (default: detected)",
            ),
            first_of("--encoding", ("auto", "absolute", "relative", "counts"), "as input.labels.rle.encoding"),
            first_of("--order", ("auto", "column", "row"), "as input.labels.rle.order"),
            choice("--start", (0, 1), "as input.labels.rle.start (default: detected)", type=int),
            several("--column", "ROLE=HEADER", "as input.labels.columns, for example image=photo; may be repeated"),
            arg("--key-regex", "REGEX", "as input.labels.key_regex"),
            several("--confirmed", "FACT", "as input.labels.confirmed, for example no_objects; may be repeated"),
            json("print what was made as JSON"),
        ),
    ),
    "forget": Entry(
        "make a dataset without some images",
        "Also lists every dataset, model and result that still contains them or their names. All cores write, unless "
        "the dataset is on a bucket.",
        "forget datasets/photos --keys keys.txt --out datasets/without",
        "how-to/change-a-dataset.md#delete-the-images-of-a-person",
        (
            DATASET,
            arg("--keys", "FILE", "the keys to forget, one per line", required=True),
            several("--staging", "DIR", "a staging folder to clear (run.staging)"),
            several("--search", "DIR", "also search for copies of the images below this folder"),
            *DERIVED,
        ),
    ),
    "retry-rejects": Entry(
        "read again what an ingest rejected",
        "All other images are copied.",
        "retry-rejects photos.yaml datasets/photos --out datasets/retried",
        "how-to/change-a-dataset.md#rejected-images",
        (
            arg("config", "CONFIG", "YAML file, fixed or unchanged"),
            SET,
            arg("dataset", "DIR", "the dataset that the ingest made"),
            OUT,
            WORKERS,
            json("print what was made as JSON"),
        ),
    ),
    "export": Entry(
        "write a dataset back as images, masks and a CSV",
        "An ingest reads the files back; names that begin like formulas need --raw.",
        "export datasets/photos --out files",
        "how-to/export.md",
        (
            INGESTED,
            OUT,
            choice("--to", EXPORTS, "format (default csv: images, labels.csv, features.jsonl)", default="csv"),
            first_of("--layout", ("keys", "classes"), "paths: keys (default), or a folder for each class"),
            first_of(
                "--masks",
                ("csv", "png", "none", "polygons"),
                "masks: run lengths (default), pictures or none; of coco and labelme: polygons",
            ),
            first_of(
                "--encoding",
                ("absolute", "relative", "counts", "compressed"),
                "how run lengths are written (default absolute)",
            ),
            first_of("--order", ("column", "row"), "order of the pixels (default column)"),
            choice("--start", (0, 1), "number of the first pixel (default 1)", type=int, default=1),
            first_of(
                "--table", ("image_label", "image_class", "image"), "columns of the CSV of masks (default image_label)"
            ),
            flag("--raw", "write names that begin like formulas into the CSV as they are"),
            arg("--splits", "NAME", "only of these splits", nargs="+", default=[]),
            arg("--classes", "NAME", "only images that have one of these", nargs="+", default=[]),
            json("print what was written as JSON"),
        ),
    ),
}
GROUPS = {
    "start": START,
    "data": DATA,
    "look": LOOK,
    "change": CHANGE,
    "model": MODEL,
    "cloud": CLOUD,
    "maintenance": MAINTENANCE,
}
ENTRIES: dict[str, Entry] = {name: entry for group in GROUPS.values() for name, entry in group.items()}
