"""InputResolver: which spans there are now, and the content fingerprint of what they hold."""
