"""Settings of the test run: an own bundled server that need not survive a crash of the machine."""

import os

os.environ.setdefault("FLAGADMIN_LOG_LEVEL", "WARNING")
os.environ.pop("FLAGADMIN_DEBUG", None)

from flagadmin.settings import *  # noqa: F403
from flagadmin.settings import DATABASE_URL, DATABASES, PACKAGE, STORAGES, datadir

if not DATABASE_URL:
    # Its own directory: `flush` and killed servers must never come near anybody's data.
    DATA_DIR = datadir.make_data_dir(PACKAGE.parent / ".flagadmin" / "test")
    DATABASES["default"]["OPTIONS"] |= {"data_dir": DATA_DIR, "durable": False}

for database in DATABASES.values():
    # Kept for the next request: a server for each would take longer to start than many requests take. Larger than
    # in production: tests hold connections in many threads, and wait for each other with them.
    database["OPTIONS"]["pool"] |= {"max_size": 40, "max_idle": 60}

# Another process would look for what is imported in another database than the test's.
IMPORT_PROCESS_BYTES = 1_000_000_000

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
ALLOWED_HOSTS = ["*"]

# Static files are served from the source; tests/flagadmin/core/server/test_static_files.py collects them.
STATIC_ROOT = None
STORAGES["staticfiles"] = {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}
WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH = True  # otherwise each new test client reads the folders of all static files
