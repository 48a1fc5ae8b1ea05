"""StatisticsGen: TFDV's statistics of the features besides the pixels, of all images, each class and each source."""
