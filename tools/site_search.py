"""Searches the built site for the terms below, as its search field does, and fails where the right page is not first.

`.tools/docs/bin/python tools/site_search.py [TERM...]` prints the first hits of other terms.
"""

from __future__ import annotations

import html
import json
import re
import sys
from pathlib import Path

from lunr import get_default_builder
from lunr.index import Index
from lunr.stop_word_filter import WORDS

SITE = Path(__file__).parents[1] / "build/site"
# A term that newcomers search for -> the page, or the section of one, that must come first.
TERMS: dict[str, str] = {
    "place_trainer": "tutorials/own-pipeline-tpu.html",
    "Kaggle RLE to TFRecord": "tutorials/kaggle-segmentation.html",
    "COCO to TFRecord": "formats/coco.html",
    "parse segmentation TFRecord": "reference/tfrecord-features.html#parse-a-segmentation-tfrecord-with-tensorflow",
    "parquet": "formats/parquet.html",
    "yolo": "formats/annotation-tools.html#yolo",
    "webdataset": "formats/tfrecords.html#webdatasets-tar-files",
    "bounding boxes": "formats/tables.html#bounding-boxes",
    "wrong labels": "tutorials/review-labels.html",
    "image classification": "tutorials/image-folders.html",
    "duplicate images": "how-to/images.html",
    "data leakage": "how-to/splits.html#prevent-data-leakage",
    "split by patient": "how-to/splits.html#split-by-patient-class-or-fold",
    "corrupted images": "how-to/images.html#find-damaged-or-corrupted-images",
    "bad_rle": "reference/messages.html#reject-codes",
    "rejected images": "how-to/ingest.html#print-the-rejected-images",
    "data augmentation": "how-to/loader.html#data-augmentation",
    "pytorch": "how-to/other-programs.html",
    "tfds": "how-to/other-programs.html",
    "resume training": "how-to/training.html#resume-a-training-after-a-preemption",
    "warm start": "how-to/training.html#warm-start",
    "class weights": "how-to/training.html#class-weights-for-unbalanced-classes",
    "class imbalance": "how-to/training.html#class-weights-for-unbalanced-classes",
    "unbalanced classes": "how-to/training.html#class-weights-for-unbalanced-classes",
    "custom model": "how-to/own-model.html",
    "own model": "how-to/own-model.html",
    "what is shardwright": "index.html",
    "first dataset": "get-started/first-dataset.html",
    "mlflow": "how-to/own-model.html",
    "onnx": "how-to/predict.html",
    "Severstal": "reference/rle-layouts.html",
    "ImageId_ClassId": "reference/rle-layouts.html",
    "submission": "tutorials/kaggle-segmentation.html",
    "drift": "how-to/drift.html",
    "tflite": "how-to/predict.html",
    "export yolo": "how-to/export.html",
    "delete images of a person": "how-to/change-a-dataset.html",
    "GDPR": "how-to/change-a-dataset.html",
    "merge datasets": "how-to/change-a-dataset.html",
    "disk space": "deploy/local.html",
    "lineage": "how-to/compare.html",
    "schema": "how-to/ingest.html",
    "retrain every month": "tutorials/monthly-retraining.html",
    "blessed": "explain/blessing.html",
    "determinism": "explain/how-it-works.html",
    "TPU node pool": "tutorials/gke-tpu.html",
    "dry run": "how-to/dry-run.html",
    "vertex dry run": "how-to/dry-run.html",
    "Vertex AI quota": "deploy/vertex.html#quota-on-vertex-ai",
    "dataflow": "deploy/beam-runners.html",
    "docker image": "deploy/image.html",
    "costs": "deploy/costs.html",
    "kfp component": "reference/kfp-components.html",
    "ImageExampleGen": "reference/tfx-components.html#imageexamplegen",
    "out of memory": "reference/messages.html#out-of-memory",
    "permission denied": "reference/messages.html#permission-denied",
    "exit code": "reference/command-line.html",
    "environment variables": "reference/command-line.html#environment-variables",
    "backtracking": "get-started/installation.html#if-it-does-not-work",
    "glibc": "get-started/installation.html",
    "GPU": "how-to/training.html#on-a-gpu",
    # Whole messages, as people paste them.
    "trainer.epoch: unknown key. Did you mean epochs?": "reference/messages.html#unknown-key",
    "shardwright: tfx is not installed. Install it: pip install 'shardwright[tfx]'.": "get-started/installation.html",
    "0 rows of train.csv matched an image": "reference/messages.html#0-rows-of-matched-an-image",
    "ds: named by the manifest, but missing": "reference/messages.html#named-by-the-manifest-but-missing",
    "trainer.machine: 4x9 is not a topology of ct5lp-hightpu-4t": "reference/messages.html#is-not-a-topology-of",
    "input.images: photos does not exist": "reference/messages.html#inputimages-does-not-exist",
    "12 of 400 inputs were rejected, 4 are allowed": "reference/messages.html#inputs-were-rejected-are-allowed",
    "The data gate is shut": "reference/messages.html#the-data-gate-is-shut",
    "the model was not blessed": "explain/blessing.html",
    "Kubernetes refused to create the JobSet": "reference/messages.html#kubernetes-refused-to-jobset",
    "the store failed in 5 attempts; the last one: 503": "reference/messages.html#the-store-failed-in-attempts",
    "the pushed model does not answer in a clean process": "reference/messages.html#does-not-answer-in-a-clean-process",
    "ds: its images have several sizes": "reference/messages.html#its-images-have-several-sizes",
    "shards cannot be written (No space left on device)": "reference/messages.html#cannot-be-written-no-space",
    "40 of 400 images have no row in train.csv": "reference/messages.html#images-have-no-row-in",
    "Killed": "reference/messages.html#killed-exit-code-137",
    "the codes are those of images of 700 x 1050": "reference/messages.html#were-they-drawn-on-smaller-images",
    "ds: contains another dataset (fingerprint 1a2b3c4d5e6f, this one is 6f5e4d3c2b1a)": "reference/messages.html",
    "16 of 390 inputs were rejected, 3 are allowed (rejects.max_fraction is 0.01)": "reference/messages.html",
    "kubeflow.notify: left out, since Kubeflow Pipelines 2.5 would refuse it": "reference/messages.html",
    "rollback": "deploy/operations.html#roll-back-a-model-rollback",
    "reproduce": "tutorials/monthly-retraining.html#reproduce-an-earlier-model",
    "air-gapped": "deploy/image.html",
    "alerts": "deploy/operations.html#what-to-watch",
    "_mask.png": "formats/mask-images.html",
    # Questions of people who know the field, in its words.
    "train on a TPU": "how-to/preflight.html",
    "object detection": "how-to/other-programs.html#object-detection",
    "pretrained weights": "how-to/training.html#fine-tune-pretrained-weights",
    "early stopping": "how-to/training.html#options",
    "confusion matrix": "how-to/training.html#evaluation",
    "dicom": "index.html",
}


class Search:
    """The index of the site, with the fields, boosts and scores of the theme's own search."""

    def __init__(self, site: Path) -> None:
        """Reads the index of a built site."""
        stored = json.loads((site / "search/search_index.json").read_text(encoding="utf-8"))
        self.separator = re.compile(stored["config"]["separator"])
        builder = get_default_builder()
        for function in (*builder.pipeline._stack, *builder.search_pipeline._stack):
            if function.label not in stored["config"]["pipeline"]:
                builder.pipeline.remove(function)
                builder.search_pipeline.remove(function)
        builder.ref("location")
        builder.b(0)
        for name, options in stored["config"]["fields"].items():
            builder.field(name, boost=options["boost"])
        for page in stored["docs"]:
            text = {name: html.unescape(re.sub("<[^>]*>", " ", page.get(name, ""))) for name in ("title", "text")}
            words = {name: [word for word in self.separator.split(one) if word] for name, one in text.items()}
            builder.add({"location": page["location"], "tags": [], **words}, {"boost": page.get("boost", 1)})
        self.index: Index = builder.build()

    def find(self, term: str) -> list[str]:
        """Returns the best place of each page, the best page first."""
        # What ends with a colon would be the name of a field, and is left out.
        parts = [part.rpartition(":")[2] for part in term.lower().split()]
        words = [word for part in parts for word in self.separator.split(part) if word]
        scores: dict[str, float] = {}
        for hit in self.index.search(" ".join(f"{word}*" for word in words)):
            found = [word for word in words if any(one.startswith(word) for one in hit["match_data"].metadata)]
            asked = [word for word in words if word in found or word not in WORDS]
            share = ("#" not in hit["ref"]) + len(found) / len(asked)
            scores[hit["ref"]] = hit["score"] * (1 + share**2)
        best: dict[str, str] = {}
        for place in sorted(scores, key=lambda one: -scores[one]):
            best.setdefault(place.partition("#")[0], place)
        return list(best.values())


def main() -> None:
    """Prints the hits of the terms that were given, or checks the table."""
    search = Search(SITE)
    for term in sys.argv[1:]:
        print(f"{term}: {', '.join(search.find(term)[:4])}")
    if sys.argv[1:]:
        return
    wrong = []
    for term, page in TERMS.items():
        first = next(iter(search.find(term)), "nothing")
        if not first.startswith(page):
            wrong.append(f"site: a search for {term!r} leads to {first}, not to {page}")
    if wrong:
        raise SystemExit("\n".join(wrong))


if __name__ == "__main__":
    main()
