"""Which split an image falls into: arithmetic on keys, groups, classes and what was decided earlier."""

from shardwright.splits.assignment import (
    NEW,
    UNASSIGNED,
    Assignment,
    ClassTable,
    Folds,
    Splitter,
    assign_splits,
    folder_split,
    hash_name,
    hash_names,
    join_units,
    split_named,
    split_order,
)

__all__ = [
    "NEW",
    "UNASSIGNED",
    "Assignment",
    "ClassTable",
    "Folds",
    "Splitter",
    "assign_splits",
    "folder_split",
    "hash_name",
    "hash_names",
    "join_units",
    "split_named",
    "split_order",
]
