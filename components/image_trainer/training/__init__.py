"""The training itself: loop, steps for each backend, losses, checkpoints, logs."""
