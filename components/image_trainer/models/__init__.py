"""Models: the built-in ones, encoders, a user's own, and how one is checked before training."""
