"""StatisticsGen: TFDV's statistics of what is beside the pixels, of all images, of every class and of every source."""
