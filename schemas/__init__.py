"""The features every dataset has, one base schema a task, as TensorFlow Metadata text protos."""
