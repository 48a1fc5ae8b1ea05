"""What to look at again: doubtful annotations, and new images that would teach a model most."""
