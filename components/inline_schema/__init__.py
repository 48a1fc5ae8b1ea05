"""ImportSchemaGen for compiled pipelines: the schema comes with the specification, not from a file beside it."""
