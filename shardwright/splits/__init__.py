"""Which split an image falls into: arithmetic on keys, groups, classes and what was decided earlier."""

from shardwright.splits.assignment import NEW, UNASSIGNED, Assignment, Folds, assign_splits, folder_split, split_named
from shardwright.splits.hashing import Splitter, hash_name, split_order
from shardwright.splits.stratified import ClassTable
from shardwright.splits.units import join_units

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
    "join_units",
    "split_named",
    "split_order",
]
