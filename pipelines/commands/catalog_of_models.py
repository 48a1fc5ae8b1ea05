"""The commands for models, clouds and maintenance, as `catalog` describes them."""

from __future__ import annotations

from shardwright.label_formats import EXPORTS
from shardwright.pipelines.commands.entry import (
    CONFIG,
    FORCE,
    OUT,
    SET,
    TRUST,
    Entry,
    arg,
    choice,
    first_of,
    flag,
    json,
    several,
)

TARGETS = ("vertex", "kubeflow")
# Those of `published_weights` and of `evaluation.submission`, which the help of all commands does not import.
PUBLISHED_ENCODERS = ("efficientnetv2-b0", "efficientnetv2-b1", "efficientnetv2-b2", "efficientnetv2-b3")
DIALECTS = (
    *("clouds", "severstal", "severstal-first", "airbus", "dsb2018", "tgs", "carvana", "siim", "sartorius"),
    *("uw-madison", "coco"),
)
# Those of `config.trainer` and `config.loader`.
OUTPUTS = ("auto", "logits", "probabilities")
NORMALIZATIONS = ("unit", "imagenet_torch", "imagenet_caffe", "dataset", "none")
TARGET = choice("--target", TARGETS, "platform that runs it", required=True)
MODEL_PLACE = arg("model", "MODEL", "folder of a run, folder that models are pushed to, or SavedModel")
ANY_MODEL = arg("model", "MODEL", "folder of a run, of pushed models or of a SavedModel, or a .keras file")
# What a model by others does not say itself.
STATED = (
    choice("--preprocess", NORMALIZATIONS, "for a model by others: how pixels become numbers, as loader.normalize"),
    arg("--classes", "NAME", "for a model by others: the classes of its outputs", nargs="+", default=[]),
    arg("--size", ("H", "W"), "for a model by others that takes any size: that of its images", nargs=2, type=int),
    first_of("--outputs", OUTPUTS, "for a model by others (default: by its last activation)"),
)
VERTEX_RUN = (
    *CONFIG,
    several("--parameter", "NAME=VALUE", "data_root or span; may be repeated"),
    flag("--no-cache", "run all steps again"),
    flag("--dry-run", "show the request and send nothing"),
    json("print what was made, or listed, as JSON"),
)
MODEL = {
    "predict": Entry(
        "predict masks or labels and write them as a CSV",
        "Writes a table to submit, or to compare.",
        "predict runs/photos test_images --out submission.csv",
        "how-to/predict.md",
        (
            ANY_MODEL,
            arg("images", "IMAGES", "folder or glob of images, or a dataset"),
            arg("--out", "PATH", "CSV to write, or folder of TFRecord files", required=True),
            first_of("--format", ("csv", "tfrecord"), "a table, or TFRecord files (default csv)"),
            arg("--split", "NAME", "split of a dataset (default: all)"),
            flag("--unblessed", "MODEL is a run: take its last model, blessed or not"),
            (
                choice("--dialect", DIALECTS, "layout of masks (default: that of the model's own table)"),
                arg("--like", "CSV", "the layout of this table, e.g. a sample submission"),
            ),
            arg("--texts", "CSV", "texts of the images, for a model that reads texts"),
            arg("--batch-size", "N", "images per batch (default 16)", type=int, default=16),
            arg("--beam", "OPTION", "an option of Beam, whose workers then predict; repeatable", action="append"),
            arg("--staging", "PATH", "folder or URL that all of Beam's workers reach"),
            arg("--dataset", "DIR", "for a model by others: the dataset it was trained on (default: IMAGES)"),
            *STATED,
            TRUST,
            FORCE,
            json("print what was done as JSON"),
        ),
    ),
    "review": Entry(
        "show doubtful annotations, or what to label next",
        "Ranks annotated images by how much the model doubts their annotations, or a folder of new images by how much "
        "labeling them would teach it. Writes a page to mark what is right, a table, and files for annotation tools.",
        "review runs/photos --out review --folds 5",
        "tutorials/review-labels.md",
        (
            ANY_MODEL,
            arg("--out", "DIR", "folder to make", required=True),
            arg("--dataset", "DIR", "annotated images (default: those that the model was trained on)"),
            arg("--split", "NAME", "only these splits (default: all but train)", nargs="+", default=[]),
            arg("--folds", "K", "also review train, by K models that are trained on other parts", type=int, default=0),
            arg("--config", "FILE", "configuration of these trainings (default: the options of the model)"),
            arg("--images", "FOLDER", "instead: choose among new images what to label next"),
            arg("--count", "N", "images of the page (default 100)", type=int, default=100),
            choice("--export-format", EXPORTS, "also write the images with the predictions for a tool", default=""),
            *STATED,
            TRUST,
            json("print what was found as JSON"),
        ),
    ),
    "try": Entry(
        "try a model in the browser",
        "Serves one page, by default on this machine only: drop photographs on it, and see masks or classes. Ctrl-C "
        "ends it.",
        "try runs/photos",
        "how-to/predict.md#try-a-model-in-the-browser",
        (
            ANY_MODEL,
            arg("--dataset", "DIR", "dataset whose images can be shown with their annotations, by their keys"),
            arg("--port", "N", "port (default: any free one)", type=int, default=0),
            arg("--host", "ADDRESS", "in a container: 0.0.0.0, to publish the port", default="127.0.0.1"),
            flag("--unblessed", "MODEL is a run: its last model, though it is not blessed"),
            *STATED,
            TRUST,
            json("print the address as JSON"),
        ),
        "try_model:run",
    ),
    "lineage": Entry(
        "show what a model or a dataset was made of",
        "Shows all ancestors with their digests. Exit code 1 if one of them has changed.",
        "lineage runs/photos",
        "how-to/compare.md#trace-the-lineage",
        (
            arg("path", "PATH", "a model, a dataset, another artifact, or a run's folder; or a URL"),
            several("--search", "DIR", "also look for parents below this folder or URL"),
            json("print all of it as JSON"),
        ),
    ),
    "convert": Entry(
        "convert a model to LiteRT or ONNX",
        "Compares the answers of both models for your images. Exit code 1 if they differ.",
        "convert runs/photos/pushed photos --to litert --out phone",
        "how-to/predict.md#convert-a-model-to-onnx-or-litert-formerly-tflite",
        (
            MODEL_PLACE,
            arg("images", "IMAGES", "images to compare answers on: a folder, a glob or a dataset"),
            choice("--to", ("litert", "onnx"), "format", required=True),
            OUT,
            arg("--count", "N", "images to compare (default 16)", type=int, default=16),
            TRUST,
            json("print the comparison as JSON"),
        ),
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
        (
            choice("name", PUBLISHED_ENCODERS, f"encoder: {', '.join(PUBLISHED_ENCODERS)}", metavar="NAME"),
            arg("--out", "DIR", "folder for the file, which keeps its name", required=True),
            arg("--mirror", "URL", "folder with the same files (default: that of Keras)", default=""),
            flag("--force", "replace a file that has another checksum"),
            json("print the file and its checksum as JSON"),
        ),
        "weights:fetch",
    ),
    "bench": Entry(
        "measure how fast this machine loads a dataset",
        "Other measurements are in the repository: `python -m benchmarks`.",
        "bench loader datasets/photos",
        "how-to/loader.md",
    ),
    "bench loader": Entry(
        "measure how fast a dataset loads, and suggest options",
        "Loads the dataset in several ways, and names what costs the most time.",
        "bench loader datasets/photos --batch-size 32",
        "how-to/loader.md",
        (
            arg("dataset", "DIR", "folder of a dataset on this machine"),
            arg("--split", "NAME", "split to load (default train)", default="train"),
            arg("--batch-size", "N", "images in a batch (default 32)", type=int, default=32),
            arg("--rounds", "N", "rounds, for medians (default 5)", type=int, default=5),
            arg("--augment", "NAME", "augmentations (default: both flips)", nargs="*"),
            arg("--read-rate", "MB", "MB/s that storage gives in a training (default 500)", type=float, default=500),
            json("print all of it as JSON"),
        ),
        "bench:loader",
    ),
    "preflight": Entry(
        "check on a CPU whether a training on TPUs would work",
        "Checks batch, hosts, memory, shapes and the loader against a slice. Exit code 1 if it would not work.",
        "preflight photos.yaml --tpu v5e-2x4",
        "how-to/preflight.md",
        (
            *CONFIG,
            arg("--tpu", "SLICE", "generation and topology, v5e-2x4", required=True),
            arg("--hosts", "N", "machines (default: the fewest of such a slice)", type=int),
            arg("--dataset", "DIR", "dataset to train on; adds rules and tries the loader"),
            arg("--needed", "N", "images/s that the slice needs", type=float),
            arg("--host-memory", "GB", "of one machine (default: from a table)", type=float),
            arg("--host-processors", "N", "of one machine (default: from a table)", type=int),
            arg("--seconds", "S", "time for the loader (default 3)", type=float, default=3.0),
            json("print the findings as JSON"),
        ),
    ),
}
CLOUD = {
    "compile": Entry(
        "compile the pipeline for Vertex AI or Kubeflow Pipelines",
        "Writes one file that the platform runs. Kubeflow: `shardwright docs deploy/kubeflow`.",
        "compile photos.yaml --target vertex --out photos.json",
        "deploy/vertex.md",
        (
            *CONFIG,
            TARGET,
            arg("--out", "FILE", ".json file for Vertex AI, .yaml for Kubeflow", required=True),
            FORCE,
            json("print the file, its tasks and parameters as JSON"),
        ),
    ),
    "estimate": Entry(
        "estimate what a run in the cloud would cost",
        "Number of images times measured rates times your prices. Sends nothing.",
        "estimate photos.yaml --target vertex --prices prices.yaml",
        "deploy/costs.md#estimate-a-run",
        (
            *CONFIG,
            TARGET,
            arg("--prices", "FILE", "YAML file with your prices and rates", required=True),
            arg("--images", "N", "number of images (default: they are listed)", type=int),
            arg("--image-size", "BYTES", "with --images: mean size of an image", type=int),
            json("print the parts as JSON"),
        ),
    ),
    "deliver": Entry(
        "put the blessed model on an endpoint of Vertex AI, or on a model hub",
        "Uploads it to the Model Registry with its evaluation, deploys it with a share of the traffic, sends it "
        "images and rolls back if it does not answer. Instead, --kserve prints a manifest for KServe, "
        "--model-registry registers it in Kubeflow (`shardwright docs deploy/kubeflow deliver-a-model`), --hub pushes "
        "it to push.hub, and --batch predicts many images.",
        "deliver photos.yaml --traffic 10 --dry-run",
        "deploy/vertex.md#deliver-a-model",
        (
            *CONFIG,
            arg("--alias", "NAME", "alias of the version (default blessed)", default="blessed"),
            arg("--endpoint", "NAME", "endpoint (default: the configuration's name)"),
            arg("--traffic", "P", "percentage of requests (default 100)", type=int, default=100),
            arg("--machine", "TYPE", "machine (default n1-standard-4)", default="n1-standard-4"),
            arg("--replicas", "N", "machines (default 1)", type=int, default=1),
            arg("--serving-image", "NAME", "image with TF Serving (default: Google's)"),
            arg("--model-version", "N", "with --kserve: a pushed model (default: the blessed)"),
            (
                flag("--roll-back", "undeploy the model that was deployed last"),
                flag("--kserve", "print a KServe manifest, and send nothing"),
                arg("--model-registry", "URL", "register it in Kubeflow's Model Registry instead"),
                flag("--hub", "push it to the repository of push.hub instead"),
            ),
            arg("--pushed", "DIR", "with --hub: where pushed models are (default: those of `shardwright run`)"),
            arg("--token-file", "FILE", "with --model-registry: a bearer token"),
            arg("--batch", ("IMAGES", "OUT"), "predict many images; with --kserve print a Kubernetes Job", nargs=2),
            TRUST,
            flag("--dry-run", "print the requests, with --hub the files, and send nothing"),
            json("print what was delivered as JSON"),
        ),
    ),
    "submit": Entry(
        "run on Vertex AI now",
        "Compiles and submits, with your own credentials. Prints the address of the run.",
        "submit photos.yaml --wait",
        "deploy/vertex.md",
        (
            *VERTEX_RUN,
            arg("--run-name", "ID", "ID of the run (default: the name and the time)"),
            flag("--wait", "wait until the run has ended; 1 if it failed"),
        ),
        "submit:run_now",
    ),
    "schedule": Entry(
        "run on Vertex AI on a schedule",
        "Makes a schedule, or lists, pauses, resumes or deletes those of the configuration's name.",
        "schedule photos.yaml --cron '0 6 1 * *'",
        "deploy/vertex.md",
        (
            *VERTEX_RUN,
            arg("--cron", "FIELDS", "when (default: vertex.schedule.cron)"),
            flag("--replace", "delete earlier schedules of the same name"),
            (
                flag("--list", "list the schedules of this name, and send nothing"),
                flag("--pause", "pause them"),
                flag("--resume", "resume them; missed runs are not made up for"),
                flag("--delete", "delete them; runs that have begun continue"),
            ),
        ),
        "submit:run_on_schedule",
    ),
    "status": Entry(
        "list the runs on Vertex AI, or the tasks of one",
        "Lists the runs of a configuration. With an ID: exit code 1 if that run failed or was cancelled.",
        "status photos.yaml",
        "deploy/vertex.md",
        (
            *CONFIG,
            arg("run", "RUN", "ID of a run; exit code 1 if it failed or was cancelled", nargs="?"),
            arg("--limit", "N", "list at most N runs (default 10)", type=int, default=10),
            json("print JSON"),
        ),
        "runs:status",
    ),
    "cancel": Entry(
        "cancel a run on Vertex AI",
        "Also cancels its CustomJob.",
        "cancel photos.yaml photos-20260101000000",
        "deploy/vertex.md",
        (*CONFIG, arg("run", "RUN", "ID of the run, as `status` lists it"), json("print the run as JSON")),
        "runs:cancel",
    ),
}
MAINTENANCE = {
    "clean": Entry(
        "remove old runs",
        "Removes what the last runs neither wrote nor read, never what a blessed model descends from. With --target it "
        "cleans the bucket of a compiled pipeline.",
        "clean runs/photos --keep 3 --dry-run",
        "deploy/local.md#free-disk-space-remove-old-runs",
        (
            arg("root", "DIR", "folder of `shardwright run`, or the configuration that names it"),
            SET,
            arg("--keep", "N", "number of latest runs to keep", type=int),
            flag("--superseded", "also remove superseded pushed models and their data"),
            flag("--dry-run", "only list what would be removed, with sizes"),
            choice("--target", TARGETS, "clean the bucket of a compiled pipeline; DIR is its YAML file"),
            arg("--pushed", "DIR", "with --target: where pushed models are, if not as configured"),
            flag("--lifecycle", "with --target: print lifecycle rules of the buckets"),
            json("print what was removed as JSON"),
        ),
    ),
    "doctor": Entry(
        "check this machine and the installation",
        "Checks memory, disk, accelerators and whether there are credentials, and imports every package. Exit code 1 "
        "if something is missing.",
        "doctor",
        "reference/messages.md",
        (json("print them as JSON"),),
    ),
}
