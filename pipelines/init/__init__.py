"""`shardwright init`: from a folder of images to a configuration with everything spelled out."""
