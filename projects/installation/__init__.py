"""The installation's settings and statistics."""
