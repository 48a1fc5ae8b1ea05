"""All commands of `shardwright` in the groups of the help: a summary, what they do, an example, the page about them.

Their options are in the module of each command.
"""

from __future__ import annotations

from typing import NamedTuple


class Entry(NamedTuple):
    """A command.

    Attributes:
        summary: for the list of commands: a verb first, without a period.
        description: for its own help, sentences.
        example: a call, without the program's name.
        page: file and anchor in `docs/`.
    """

    summary: str
    description: str
    example: str
    page: str


START = {
    "init": Entry(
        "write a configuration for a folder of images",
        "Looks at images and annotations and writes a configuration with everything that it detected. Asks where two "
        "readings fit; without a terminal it ends with exit code 2.",
        "init photos photos/labels.csv --out photos.yaml",
        "how-to/configure.md",
    ),
    "init-pipeline": Entry(
        "write a TFX pipeline project of your own",
        "Writes a small project around ImageExampleGen: pipeline, model, runners for this machine and for Kubeflow, a "
        "test. It runs as written.",
        "init-pipeline flowers --images photos",
        "tutorials/tfx-pipeline.md",
    ),
    "validate": Entry(
        "check a configuration",
        "Prints everything that is wrong with a configuration at once. Exit code 2 if anything is. With --data also "
        "tries up to 100 images with their annotations. Exit code 1 if too many would be rejected.",
        "validate photos.yaml --data",
        "how-to/configure.md",
    ),
    "run": Entry(
        "run the whole pipeline on this machine",
        "Ingests, checks, transforms, trains, evaluates and pushes. Steps without a change come from the cache. Exit "
        "code 1 if a check stops the run, or if the model is not blessed.",
        "run photos.yaml --root runs/photos",
        "deploy/local.md",
    ),
    "sample": Entry(
        "draw a data set to try things with",
        "Draws images with masks of four classes, and their CSV of run lengths.",
        "sample --out demo-data --count 40",
        "how-to/inspect.md",
    ),
    "docs": Entry(
        "show a page of the documentation",
        "Shows a page, or a section of it, in the terminal, without a network. Without PAGE it lists all pages.",
        "docs reference/messages paths",
        "index.md",
    ),
    "completion": Entry(
        "print a shell's completion script",
        "Prints a script that completes commands, options and values.",
        "completion bash > ~/.local/share/bash-completion/completions/shardwright",
        "get-started/installation.md#completion-in-the-shell",
    ),
}
DATA = {
    "ingest": Entry(
        "make a dataset of images and annotations",
        "Lists the images, reads their annotations, divides them into splits and writes TFRecord shards. The folder "
        "appears whole or not at all; the same call again finds it.",
        "ingest photos.yaml --out datasets/photos",
        "how-to/ingest.md",
    ),
    "transform": Entry(
        "resize a dataset, ready to train on",
        "Writes a dataset whose images have the size and the encoding of the section transform.",
        "transform photos.yaml datasets/photos --out datasets/photos-352",
        "how-to/transform.md",
    ),
    "verify": Entry(
        "read all bytes of a dataset and list damage",
        "Compares every record, shard, index and ledger with its checksum. Exit code 1 if anything is damaged.",
        "verify datasets/photos --deep",
        "how-to/inspect.md",
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
    ),
    "schema infer": Entry(
        "infer a schema with domains as narrow as a dataset's values",
        "Reads all records.",
        "schema infer datasets/photos --out photos.schema.pbtxt",
        "how-to/ingest.md#write-a-schema",
    ),
    "schema diff": Entry(
        "compare two schemas",
        "Compares feature by feature. Exit code 1 if they differ.",
        "schema diff old.pbtxt new.pbtxt",
        "how-to/ingest.md#write-a-schema",
    ),
}
LOOK = {
    "card": Entry(
        "describe a dataset or a model in Markdown or for Croissant",
        "Writes a data card from the manifest and the figures, or a model card from the evaluation and the lineage. "
        "With --croissant, writes Croissant's JSON-LD of a dataset.",
        "card datasets/photos --out CARD.md",
        "how-to/compare.md#write-a-card-or-croissant",
    ),
    "stats": Entry(
        "print the figures of a dataset",
        "Images, classes, sizes, quality and duplicates, for each split.",
        "stats datasets/photos",
        "how-to/inspect.md",
    ),
    "report": Entry(
        "show a dataset as one HTML page",
        "Writes a page with samples, figures, duplicates and rejects.",
        "report datasets/photos --out photos.html",
        "how-to/report.md",
    ),
    "inspect": Entry(
        "show a dataset, a TFRecord file or a record",
        "Shows shards and features; also of files that other programs wrote.",
        "inspect datasets/photos/Split-train/data-00000-of-00002.tfrecord --record 0",
        "how-to/inspect.md",
    ),
    "get": Entry(
        "find one record of a dataset by its key",
        "Reads that record only, through the index.",
        "get datasets/photos daisy/1.jpg --out daisy.jpg",
        "how-to/inspect.md",
    ),
    "diff": Entry(
        "compare two datasets",
        "Compares images, splits, classes, masks and other features, key by key. Exit code 1 if they differ.",
        "diff datasets/october datasets/november --html changes.html",
        "how-to/compare.md",
    ),
    "drift": Entry(
        "check whether images have changed more than by chance",
        "Compares the splits of a dataset, two datasets, or a dataset with a folder. "
        "Exit code 1 if images changed or cannot be read.",
        "drift datasets/october datasets/november",
        "how-to/drift.md",
    ),
}
CHANGE = {
    "subset": Entry(
        "make a dataset of a part of another one",
        "Takes the same part of the images of each split with the same classes. Records keep their bytes.",
        "subset datasets/photos --share 0.1 --out datasets/tenth",
        "how-to/change-a-dataset.md",
    ),
    "merge": Entry(
        "merge several datasets into one",
        "The datasets need the same task, classes and features, and no key twice. If two have the same bytes in "
        "different splits, the image of the dataset that you name first stays, and the other is left out.",
        "merge datasets/october datasets/november --out datasets/autumn",
        "how-to/change-a-dataset.md",
    ),
    "reshard": Entry(
        "write the same records in other shards",
        "Records keep their bytes, splits and order.",
        "reshard datasets/photos --shard-size 50 --out datasets/small-shards",
        "how-to/change-a-dataset.md",
    ),
    "relabel": Entry(
        "give images new annotations",
        "Replaces the annotations of a dataset, without reading the image files again.",
        "relabel datasets/photos corrected.csv --out datasets/corrected",
        "how-to/change-a-dataset.md#new-annotations",
    ),
    "forget": Entry(
        "make a dataset without some images",
        "Removes images, and lists every dataset, model and result that still contains them or their names.",
        "forget datasets/photos --keys keys.txt --out datasets/without",
        "how-to/change-a-dataset.md#delete-the-images-of-a-person",
    ),
    "retry-rejects": Entry(
        "read again what an ingest rejected",
        "Makes a dataset in which the rejected inputs are read again and all others are copied.",
        "retry-rejects photos.yaml datasets/photos --out datasets/retried",
        "how-to/change-a-dataset.md#rejected-images",
    ),
    "export": Entry(
        "write a dataset back as images, masks and a CSV",
        "Writes files that an ingest reads back without an option.",
        "export datasets/photos --out files",
        "how-to/export.md",
    ),
}
MODEL = {
    "predict": Entry(
        "write a model's masks or labels of images as a CSV",
        "Writes a table to submit, or to compare.",
        "predict runs/photos test_images --out submission.csv",
        "how-to/predict.md",
    ),
    "lineage": Entry(
        "show what a model or a dataset was made of",
        "Shows all ancestors with their digests. Exit code 1 if one of them has changed.",
        "lineage runs/photos",
        "how-to/compare.md#trace-the-lineage",
    ),
    "convert": Entry(
        "convert a model to LiteRT or ONNX",
        "Converts the blessed model, lets the result answer in a clean process, and compares its answers for your "
        "images with those of the SavedModel. Exit code 1 if they differ.",
        "convert runs/photos/pushed photos --to litert --out phone",
        "how-to/predict.md#convert-a-model-to-onnx-or-litert-formerly-tflite",
    ),
    "weights": Entry(
        "fetch published weights of an encoder",
        "Nothing else in Shardwright downloads weights.",
        "weights fetch efficientnetv2-b0 --out weights",
        "how-to/training.md#models",
    ),
    "weights fetch": Entry(
        "download the weights of an encoder and compare their checksum",
        "Fetches the ImageNet weights that Keras publishes. A training then reads the file. Exit code 1 if the "
        "download fails or has another checksum.",
        "weights fetch efficientnetv2-b0 --out weights",
        "how-to/training.md#models",
    ),
    "bench": Entry(
        "measure how fast this machine loads a dataset",
        "Other measurements are in the repository: `python -m benchmarks`.",
        "bench loader datasets/photos",
        "how-to/loader.md",
    ),
    "bench loader": Entry(
        "measure loading of a dataset and give advice on options",
        "Loads the dataset in several ways, and names what costs the most time.",
        "bench loader datasets/photos --batch-size 32",
        "how-to/loader.md",
    ),
    "preflight": Entry(
        "check on a CPU whether a training on TPUs would work",
        "Checks batch, hosts, memory, shapes and the loader against a slice. Exit code 1 if it would not work.",
        "preflight photos.yaml --tpu v5e-2x4",
        "how-to/dry-run.md#preflight-check-a-training-before-you-rent-a-tpu",
    ),
}
CLOUD = {
    "compile": Entry(
        "compile the pipeline for Vertex AI or Kubeflow Pipelines",
        "Writes one file that the platform runs.",
        "compile photos.yaml --target vertex --out photos.json",
        "deploy/vertex.md",
    ),
    "estimate": Entry(
        "estimate what a run in the cloud would cost",
        "Multiplies the number of images by measured rates and by the prices of a file. Sends nothing.",
        "estimate photos.yaml --target vertex --prices prices.yaml",
        "deploy/costs.md#estimate-a-run",
    ),
    "deliver": Entry(
        "put the blessed model on an endpoint of Vertex AI",
        "Uploads it to the Model Registry with its evaluation, deploys it with a share of the traffic, sends it "
        "images and rolls back if it does not answer. With --kserve it prints a manifest for KServe instead, with "
        "--model-registry it registers the model in Kubeflow, and with --batch it predicts many images.",
        "deliver photos.yaml --traffic 10 --dry-run",
        "deploy/vertex.md#deliver-a-model",
    ),
    "submit": Entry(
        "run on Vertex AI now",
        "Compiles and submits, with your own credentials. Prints the address of the run.",
        "submit photos.yaml --wait",
        "deploy/vertex.md",
    ),
    "schedule": Entry(
        "run on Vertex AI on a schedule",
        "Makes a schedule, or lists, pauses, resumes or deletes those of the configuration's name.",
        "schedule photos.yaml --cron '0 6 1 * *'",
        "deploy/vertex.md",
    ),
    "status": Entry(
        "list the runs on Vertex AI, or the tasks of one",
        "Lists the runs of a configuration. With an ID: exit code 1 if that run failed or was cancelled.",
        "status photos.yaml",
        "deploy/vertex.md",
    ),
    "cancel": Entry(
        "cancel a run on Vertex AI",
        "Cancels a run, and the CustomJob that trains for it.",
        "cancel photos.yaml photos-20260101000000",
        "deploy/vertex.md",
    ),
}
MAINTENANCE = {
    "clean": Entry(
        "remove old runs",
        "Removes what the last runs neither wrote nor read, never what a blessed model descends from. With --target it "
        "cleans the bucket of a compiled pipeline.",
        "clean runs/photos --keep 3 --dry-run",
        "deploy/local.md#free-disk-space-remove-old-runs",
    ),
    "doctor": Entry(
        "check this machine and the installation",
        "Checks memory, disk, accelerators and whether there are credentials, and imports every package. Exit code 1 "
        "if something is missing.",
        "doctor",
        "reference/messages.md",
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
