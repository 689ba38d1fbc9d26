"""A filled installation to look around in: `manage.py demo`."""
