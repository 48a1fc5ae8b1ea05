"""ImportSchemaGen for compiled pipelines: the schema is part of the specification, not a separate file."""
