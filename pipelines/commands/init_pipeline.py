"""`shardwright init-pipeline`: writes a TFX pipeline project around Shardwright's components."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

from shardwright.pipelines.commands.parsers import Commands
from shardwright.pipelines.commands.results import print_json


def add(commands: Commands) -> None:
    """Adds the command to the parser of `shardwright`."""
    project = commands.add("init-pipeline")
    project.add_argument("folder", metavar="DIR", help="folder to make")
    project.add_argument("--images", metavar="FOLDER", help="images in class folders (default: data, in the project)")
    project.add_argument("--json", action="store_true", help="print the files as JSON")
    project.set_defaults(command=_init_pipeline)


def _init_pipeline(options: argparse.Namespace) -> int:
    from shardwright.pipelines.init.write_project import pipeline_name, write_project
    from shardwright.storage import is_remote

    images = options.images
    classes = None if images is None else _classes(images)
    if images is not None and not is_remote(images):
        # No path of this machine is in the project, which may be copied with its images.
        images = Path(os.path.relpath(images, options.folder)).as_posix()
    files = write_project(options.folder, pipeline_name(options.folder), images or "data", classes)
    if options.json:
        print_json({"folder": options.folder, "files": files, "classes": classes})
        return 0
    for file in files if not options.quiet else ():
        print(f"  {file}")
    first = "" if images else "put images into data/CLASS/, then "
    print(f"{options.folder}: {len(files)} files. Next: cd {options.folder}; {first}python local_runner.py")
    return 0


def _classes(images: str) -> Sequence[str]:
    """Returns the classes of images in class folders."""
    from shardwright.pipelines.init.decide import detect_input

    given = {"task": "classification", "input.labels.format": "class_folders"}
    return detect_input(images, None, given).input.surveyed.survey.classes
