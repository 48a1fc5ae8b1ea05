"""What was made of what: lineage, digests, and which model and dataset are in force."""
