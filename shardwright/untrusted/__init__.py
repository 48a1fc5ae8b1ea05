"""Input that anyone may have written: what reading it may cost, and JSON that is checked before it is used."""
