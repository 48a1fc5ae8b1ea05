"""`shardwright verify`: whether a dataset is, to the bit, what was written, and where it is not."""

from shardwright.verify.dataset import verify
from shardwright.verify.findings import VerifyFinding, VerifyReport

__all__ = ["VerifyFinding", "VerifyReport", "verify"]
