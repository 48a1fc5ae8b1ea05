"""What was made of what, and which model is blessed."""
