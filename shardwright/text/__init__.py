"""Text on its way to a terminal, a log or a file that is published: control characters escaped, secrets left out."""
