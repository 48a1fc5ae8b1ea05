"""A file of TFRecords that belongs to no dataset: lengths and checksums are all that can be held against it."""

from __future__ import annotations

from shardwright.errors import UsageError
from shardwright.storage import open_file
from shardwright.tfrecords.record_files import DAMAGED, TRUNCATED, begins_as_records, walk_records
from shardwright.verify import findings as what
from shardwright.verify.findings import Finding, Report

_START = 1 << 16
_CODES = {DAMAGED: what.PAYLOAD_CHECKSUM, TRUNCATED: what.TRUNCATED}


def verify_file(path: str) -> Report:
    """Reads a file of TFRecords to its end, plain or compressed, whoever wrote it.

    Args:
        path: the file, or its URL.

    Raises:
        UsageError: it cannot be read, or holds no records.
    """
    found = []
    count = size = 0
    try:
        with open_file(path) as file:
            if not begins_as_records(file.read(_START)):
                raise UsageError(
                    f"{path}: is a file and holds no TFRecords. Give a folder that `shardwright ingest` wrote, or a "
                    "file of TFRecords."
                )
            file.seek(0)
            for record in walk_records(file):
                if record.payload is None:
                    code = _CODES.get(record.code, what.LENGTH)
                    found.append(Finding(path, code, record.reason, record=record.number, offset=record.offset))
                else:
                    count += 1
                    size += len(record.payload)
    except OSError as error:
        raise UsageError(f"{path}: cannot be read ({error.strerror or error}). Check the path.") from None
    return Report(path, tuple(found), 1, count, size)
