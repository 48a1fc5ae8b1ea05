"""Commands whose arguments and output are more than a few lines; each imports its work when it runs."""
