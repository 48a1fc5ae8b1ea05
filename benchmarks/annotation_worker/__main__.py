"""Writes a data set with a tool, or prints its truth.

    python -m benchmarks.annotation_worker write ROW SCENE OUT     SCENE: folder with scene.json and images/
    python -m benchmarks.annotation_worker truth ROW SCENE OUT     prints the truth as JSON

The truth is {file name: {"masks": {class: packed bits}, "boxes": [[class, x0, y0, x1, y1]], "classes": []}};
a part that the format does not hold is left out.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
from pathlib import Path

from benchmarks.annotation_worker import converters, tools
from benchmarks.annotation_worker.scene import READERS, WRITERS

# Their import fills both tables.
__all__ = ["converters", "tools"]


def main() -> None:
    """Writes a data set, or prints its truth."""
    what, row, scene_folder, out = sys.argv[1:]
    scene = json.loads(Path(scene_folder, "scene.json").read_text(encoding="utf-8"))
    if what == "write":
        WRITERS[row](scene, Path(out))
        return
    with contextlib.redirect_stdout(io.StringIO()):
        truth = READERS[row](scene, Path(out))
    print(json.dumps(truth))


if __name__ == "__main__":
    main()
    sys.stdout.flush()
    os._exit(0)
