"""`shardwright review`: runs a model over a dataset or new images, and writes what a person should look at."""
