"""What an exported model says of images that no one has annotated."""
