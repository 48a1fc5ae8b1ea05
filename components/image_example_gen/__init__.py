"""ImageExampleGen: images and annotations become sharded Examples, with a manifest and a ledger."""
