"""What a model says of images: scores, thresholds, masks at the size of the image, tables, pictures."""
