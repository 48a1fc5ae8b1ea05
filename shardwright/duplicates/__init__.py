"""Which images are the same: hashes, search, groups, decision."""
