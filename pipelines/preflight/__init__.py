"""Rules that check on a CPU whether a training on TPUs would work and get its data in time."""
