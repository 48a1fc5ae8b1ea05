"""Report: the dataset as one HTML file, also if the gate stops the run."""
