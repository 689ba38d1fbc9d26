"""Collects static files before serving: compressed, with a hash of the content in each file name."""

import fcntl
import hashlib
from pathlib import Path

from django.conf import settings
from django.contrib.staticfiles.finders import get_finders
from django.core.management import call_command

from flagadmin.core.db.data_dir import give_to_owner_of

NOT_SERVED = ["rest_framework", "redoc", "ext"]  # folders of libraries that no page refers to


def collect_static_files() -> None:
    """Updates STATIC_ROOT from the source files. Servers that start together do so one after the other.

    Deletes nothing: a page loaded before an update may still request its old style sheet.
    """
    if settings.DEBUG or not settings.STATIC_ROOT:
        return  # served from the source folders
    root = Path(settings.STATIC_ROOT)
    root.mkdir(exist_ok=True)
    with (root / "source.sha256").open("a+") as collected:
        fcntl.flock(collected, fcntl.LOCK_EX)
        collected.seek(0)
        digest = source_digest()
        if collected.read() == digest:
            return
        call_command("collectstatic", interactive=False, verbosity=0, ignore_patterns=NOT_SERVED)
        collected.truncate(0)
        collected.write(digest)
        for path in (root, *root.rglob("*")):
            give_to_owner_of(root.parent, path)


def source_digest() -> str:
    """A hash of the names and contents of all source files."""
    digest = hashlib.sha256()
    for finder in get_finders():
        for path, storage in sorted(finder.list(NOT_SERVED), key=lambda found: found[0]):
            digest.update(
                path.encode() + b"\0" + hashlib.sha256(Path(storage.path(path)).read_bytes()).digest()
            )
    return digest.hexdigest()
