"""Images that are the same, by bytes, pixels or looks: how they are found, and what becomes of them."""
