"""Records of the sources of each artifact, and of the blessed model."""
