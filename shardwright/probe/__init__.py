"""One pass over the pixels: is each image sound, what does it look like, how good is it."""
