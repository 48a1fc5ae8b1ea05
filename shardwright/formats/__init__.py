"""Annotation formats, one module each, and how a format is recognized."""
