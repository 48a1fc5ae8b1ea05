"""Looking at what is on disk: a dataset, a file of TFRecords whoever wrote it, one record, the picture in it."""

from shardwright.inspection.contents import DatasetView, FeatureRange, FileView, SplitView, view_dataset, view_file
from shardwright.inspection.fetch import Fetched, fetch
from shardwright.inspection.picture import draw
from shardwright.inspection.record import FeatureView, RecordView, record_of_file, view_record

__all__ = [
    "DatasetView",
    "FeatureRange",
    "FeatureView",
    "Fetched",
    "FileView",
    "RecordView",
    "SplitView",
    "draw",
    "fetch",
    "record_of_file",
    "view_dataset",
    "view_file",
    "view_record",
]
