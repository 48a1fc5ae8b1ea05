"""ImageTransform: examples as ingested in, examples of one size and a TransformGraph that serves the same pixels."""
