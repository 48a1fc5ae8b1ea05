"""Predictions of an exported model for images without annotations."""
