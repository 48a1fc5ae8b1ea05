"""Input formats: what each image is annotated with, one module per format."""
