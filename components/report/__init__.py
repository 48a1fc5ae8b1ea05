"""Report: the dataset as one HTML file, there also when the gate stops the run."""
