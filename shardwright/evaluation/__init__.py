"""Metrics, thresholds and submission tables."""
