"""The parts that pages and notebooks show things with: HTML, charts, pictures, overlays."""
