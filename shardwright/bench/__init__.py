"""`shardwright bench`: every promised figure measured on this machine, beside what it is compared with, in one run."""
