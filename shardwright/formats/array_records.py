"""ArrayRecord files as TFRecords: the records stay what they are.

A file is one of Riegeli (google/riegeli, doc/riegeli_records_file_format.md), which begins with a block of 64 bytes
that is always the same.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import IO

from shardwright.errors import UsageError
from shardwright.storage.scratch import local_copy
from shardwright.tfrecords.records import frame
from shardwright.untrusted.budget import Budget, OverBudget

_SIGNATURE = bytes.fromhex(
    "83af70d10d884a3f0000000000000000400000000000000091bac23c9287e1a9"
    "0000000000000000e19f13c0e9b1c37273000000000000000000000000000000"
)
# A record has a header of some bytes, and a chunk of records is compressed as one.
BUDGET = Budget("records", objects=1_000_000, bytes_each=1)
# Records that are in memory at once; each is at most as large as an image with its masks.
_AT_ONCE = 16


def begins_as_array_record(start: bytes) -> bool:
    """Returns whether a file with this beginning is an ArrayRecord file."""
    return start.startswith(_SIGNATURE)


def write_records(path: str, pin: str, copy: IO[bytes], name: str) -> None:
    """Writes the records of a file as TFRecords, in their order.

    Args:
        path: the file.
        pin: see `shardwright.storage.read_bytes`.
        copy: receives the records.
        name: what messages call the file.

    Raises:
        UsageError: it is damaged, or the package that reads it is not installed.
    """
    try:
        # Not a dependency: few people need it.
        module = import_module("array_record.python.array_record_module")
    except ImportError:
        raise UsageError(f"{name}: ArrayRecord needs a package. Run `pip install array_record`.") from None
    with local_copy(path, pin) as local:
        try:
            reader = module.ArrayRecordReader(local)
            count = reader.num_records()
            BUDGET.check_objects(count, os.path.getsize(local))
            for begin in range(0, count, _AT_ONCE):
                for record in reader.read(begin, min(begin + _AT_ONCE, count)):
                    copy.write(frame(record))
            reader.close()
        except OverBudget:
            raise
        except (RuntimeError, ValueError, IndexError) as error:
            problem = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
            raise UsageError(f"{name}: the ArrayRecord file is damaged: {problem}. Copy or write it again.") from None
        if not count:
            raise UsageError(f"{name}: the ArrayRecord file is empty or cut off. Copy or write it again.")
