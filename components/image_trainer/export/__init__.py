"""From a trained model to a served one: signatures, thresholds, files."""
