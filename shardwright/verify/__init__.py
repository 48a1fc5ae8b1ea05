"""`shardwright verify`: compares a dataset, bit by bit, with what was written, and locates all damage."""

from shardwright.verify.findings import VerifyFinding, VerifyReport
from shardwright.verify.verify_dataset import verify

__all__ = ["VerifyFinding", "VerifyReport", "verify"]
