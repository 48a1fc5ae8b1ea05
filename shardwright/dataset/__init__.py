"""A dataset on disk and how it is read: manifest, ledger, index, shard names, features, schema."""
