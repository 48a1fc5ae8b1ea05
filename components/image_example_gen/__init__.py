"""Images and annotations into sharded Examples, with a manifest and a ledger."""
