"""Image files and their pixels: headers, Exif, decoding, geometry, boxes, quality. Imports nothing of ours."""
