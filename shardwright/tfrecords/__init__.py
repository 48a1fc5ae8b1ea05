"""TFRecord files and the examples in them, without TensorFlow: written, walked, and read by their places."""
