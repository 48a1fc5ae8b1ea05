"""One graph, and one module per place to run it."""
