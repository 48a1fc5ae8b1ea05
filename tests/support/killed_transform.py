"""A process that transforms a dataset, and for which the third record that it writes is the last thing it does.

python killed_transform.py DATASET STAGING RECIPE
"""

import os
import signal
import subprocess
import sys
from pathlib import Path


def killed_transform(source: str, staging: str, recipe: str) -> None:
    """Runs the process, and sees that it was killed."""
    command = [sys.executable, str(Path(__file__).resolve()), source, staging, recipe]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr


def _main(root: str, place: str, text: str) -> None:
    from shardwright.components.image_transform import transform_plan as planning
    from shardwright.components.image_transform.text import write_vocabularies
    from shardwright.components.image_transform.transform_recipe import read_recipe
    from shardwright.dataset.reader import ImageDataset
    from shardwright.tfrecords import records

    source = ImageDataset.open(root)
    plan = planning.plan_transform(source, *read_recipe(text))
    shared = planning.open_staging(place, plan.dataset)
    shards = [(shard, file.file, file.checksum) for shard, file in zip(plan.train, source.shards("train"), strict=True)]

    def spread(function, count):
        for number in range(count):
            function(number)

    texts = write_vocabularies(spread, shared, shards, plan.texts) if plan.texts else {}

    left, write = 3, records.RecordWriter.write

    def counted(self, *args):
        nonlocal left
        left -= 1
        if not left:
            os.kill(os.getpid(), signal.SIGKILL)
        return write(self, *args)

    records.RecordWriter.write = counted
    work = planning.TransformWork.of(source, plan, shared, texts)
    for number in range(len(work.shards)):
        planning.write_numbered(number, work)


if __name__ == "__main__":
    _main(*sys.argv[1:])
