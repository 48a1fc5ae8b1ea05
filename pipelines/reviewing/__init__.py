"""`shardwright review`: runs a model over a dataset or new images, and writes what a person should look at."""

# The first row of a review's ranking of annotated images.
RANKING_HEADER = ("rank", "image", "split", "annotation", "prediction", "score", "reason")
