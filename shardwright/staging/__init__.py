"""How a dataset appears whole or not at all: staging folder, finished shards, commit."""
