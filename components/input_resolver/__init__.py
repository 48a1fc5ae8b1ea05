"""InputResolver: the current spans of the input, and the fingerprint of their content."""
