"""Running the work: the process pool, progress on a terminal, and the extra that brings a missing package."""
