"""Collects static files before serving: compressed, with a hash of the content in each file name."""

import fcntl
import hashlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.staticfiles.finders import get_finders
from django.core.files.base import ContentFile
from django.core.management import call_command
from whitenoise.storage import CompressedManifestStaticFilesStorage

from flagadmin.core.db.data_dir import give_to_owner_of

NOT_SERVED = ["rest_framework", "redoc", "ext"]  # folders of libraries that no page refers to

STYLES = "flagadmin/app.css"
IMPORTED_STYLES = re.compile(r'@import "(.+)";')
# Django's own pattern would also read the scripts of libraries.
IMPORTED_MODULES = (
    r"""(?P<matched>import(?P<names>(?: {[^}]+} from)? )"(?P<url>[^"]+)";)""",
    'import%(names)s"%(url)s";',
)


class StaticFilesStorage(CompressedManifestStaticFilesStorage):
    """Puts what the style sheet imports into it, and the hashed names of modules into those that import them."""

    patterns = (*CompressedManifestStaticFilesStorage.patterns, ("flagadmin/*.js", (IMPORTED_MODULES,)))

    def post_process(self, paths: dict[str, Any], dry_run: bool = False, **options: Any) -> Iterator[Any]:
        if STYLES in paths and not dry_run:
            paths = {
                name: source for name, source in paths.items() if not name.startswith("flagadmin/styles/")
            }
            paths[STYLES] = (self, STYLES)
            joined = IMPORTED_STYLES.sub(lambda line: self._read(f"flagadmin/{line[1]}"), self._read(STYLES))
            self.delete(STYLES)
            self.save(STYLES, ContentFile(joined))
        yield from super().post_process(paths, dry_run=dry_run, **options)

    def _read(self, name: str) -> str:
        with self.open(name) as file:
            return file.read().decode()


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
