"""A blessed model in a repository of a model hub."""
