"""`shardwright init-pipeline`: writes a TFX pipeline project around Shardwright's components."""

from __future__ import annotations

import os
from argparse import Namespace
from pathlib import Path

from shardwright.pipelines.commands.results import finish
from shardwright.pipelines.init.decide import detect_input
from shardwright.pipelines.init.write_project import pipeline_name, write_project
from shardwright.storage import is_remote

_CLASS_FOLDERS = {"task": "classification", "input.labels.format": "class_folders"}


def run(options: Namespace) -> int:
    """Writes the project."""
    images, classes = options.images, None
    if images is not None:
        classes = detect_input(images, None, _CLASS_FOLDERS).input.surveyed.survey.classes
        if not is_remote(images):
            # No path of this machine is in the project, which may be copied with its images.
            images = Path(os.path.relpath(images, options.folder)).as_posix()
    files = write_project(options.folder, pipeline_name(options.folder), images or "data", classes)
    listed = [f"  {file}" for file in files if not options.quiet]
    first = "" if images else "put images into data/CLASS/, then "
    following = f"{options.folder}: {len(files)} files. Next: cd {options.folder}; {first}python local_runner.py"
    return finish(options, {"folder": options.folder, "files": files, "classes": classes}, *listed, following)
