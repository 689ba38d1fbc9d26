"""Collects static files before serving: compressed, with a hash of the content in each file name."""

import fcntl
import hashlib
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

from django.conf import settings
from django.contrib.staticfiles.finders import BaseFinder, get_finders
from django.core.files.storage import FileSystemStorage
from django.core.management import call_command

from flagadmin.core.db.data_dir import give_to_owner_of

NOT_SERVED = ["rest_framework", "ext"]  # folders of libraries that no page refers to

SOURCES = Path(__file__).parents[2] / "assets"
JOINED = ("app.css", "app.js")
IMPORT = re.compile(r'^@?import [^"\n]*"([^"\n]+)";\n', re.MULTILINE)
EXPORT = re.compile(r"^export ", re.MULTILINE)


class JoinedFilesFinder(BaseFinder):
    """Finds ``flagadmin/app.css`` and ``flagadmin/app.js``, each joined from the files that its source imports.

    A page requests one style sheet and one script. A source imports a file before those that need it. Joined modules
    share one scope, so no two may declare the same name.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        self.storage = FileSystemStorage(settings.DATA_DIR / "joined")

    def find(self, path: str, find_all: bool = False, **options: Any) -> Any:
        folder, _, name = path.rpartition("/")
        if folder != "flagadmin" or name not in JOINED:
            return []
        file = str(self._join(name))
        return [file] if find_all else file

    def list(self, ignore_patterns: Iterable[str] | None) -> Iterator[tuple[str, FileSystemStorage]]:
        for name in JOINED:
            self._join(name)
            yield f"flagadmin/{name}", self.storage

    def _join(self, name: str) -> Path:
        joined = join_files(SOURCES / name)
        target = Path(self.storage.path(f"flagadmin/{name}"))
        if not target.is_file() or target.read_text() != joined:
            target.parent.mkdir(parents=True, exist_ok=True)
            # A separate file for each thread: several may request it for the first time at once.
            with NamedTemporaryFile("w", dir=target.parent, delete=False) as new:
                new.write(joined)
            os.chmod(new.name, 0o644)
            os.replace(new.name, target)
            for path in (target.parent.parent, target.parent, target):
                give_to_owner_of(settings.DATA_DIR, path)
        return target


def join_files(source: Path) -> str:
    """The content of all files that ``source`` imports, in that order, and then its own."""
    files = [source.parent / name for name in IMPORT.findall(source.read_text())]
    return "\n".join(EXPORT.sub("", IMPORT.sub("", file.read_text())) for file in (*files, source))


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
        digest = hash_sources()
        if collected.read() == digest:
            return
        call_command("collectstatic", interactive=False, verbosity=0, ignore_patterns=NOT_SERVED)
        collected.truncate(0)
        collected.write(digest)
        for path in (root, *root.rglob("*")):
            give_to_owner_of(root.parent, path)


def hash_sources() -> str:
    """A hash of the names and contents of all source files."""
    digest = hashlib.sha256()
    for finder in get_finders():
        for path, storage in sorted(finder.list(NOT_SERVED), key=lambda file: file[0]):
            digest.update(
                path.encode() + b"\0" + hashlib.sha256(Path(storage.path(path)).read_bytes()).digest()
            )
    return digest.hexdigest()
