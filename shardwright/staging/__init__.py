"""Makes a dataset appear whole or not at all: staging folder, finished shards, commit."""
