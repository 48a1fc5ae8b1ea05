"""TFRecord files and the examples in them, without TensorFlow: written, scanned, and read by offset."""
