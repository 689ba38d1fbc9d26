"""The WSGI application, fully loaded on import so that the first request of a worker is not slow."""

import os

from django.core.wsgi import get_wsgi_application

from flagadmin.worker import load

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "flagadmin.settings")

load()
application = get_wsgi_application()
