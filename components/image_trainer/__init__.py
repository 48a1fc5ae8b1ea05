"""The Trainer: a Keras 3 model learned in one process and exported as a SavedModel in another."""
