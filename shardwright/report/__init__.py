"""One HTML file that shows a dataset: figures, charts, pictures with their masks, what was rejected and why."""
