"""Demo data for `manage.py demo`."""
