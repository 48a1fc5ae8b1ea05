"""`shardwright verify`: compares a dataset, bit by bit, with what was written, and locates all damage."""

from shardwright.verify.dataset import verify
from shardwright.verify.findings import VerifyFinding, VerifyReport

__all__ = ["VerifyFinding", "VerifyReport", "verify"]
