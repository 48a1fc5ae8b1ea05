"""What files of images say of themselves, and what becomes of their pixels: headers, Exif, conversion, encoding."""
