"""Creates the data directory and its files, with the right owner.

It contains `postgres/` (the bundled database), `secret_key`, `static/` (with the sources in `joined/`), lock files and
the database's log. Files created by root are given to the owner of the parent folder, so that a start as root never
locks the owner out. Only files created here change their owner or mode.
"""

import os
import secrets
import tempfile
from pathlib import Path


def make_data_dir(path: Path) -> Path:
    """Creates the directory (and missing parents) if it does not exist, and returns its resolved path.

    Raises PermissionError, with a message for the user, if it exists but has another owner.
    """
    path = path.expanduser().resolve()
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    # The account that runs the database for root must traverse the directory, but not list its files.
    mode = 0o711 if os.geteuid() == 0 else 0o700
    for folder in reversed(missing):
        folder.mkdir(exist_ok=True)
        folder.chmod(mode)
        give_to_owner_of(folder.parent, folder)
    if not os.access(path, os.R_OK | os.W_OK | os.X_OK):
        raise PermissionError(f"The data directory {path} {_describe_fault(path)}")
    return path


def _describe_fault(path: Path) -> str:
    if os.statvfs(path).f_flag & os.ST_RDONLY:
        return "is on a read-only file system."
    if path.stat().st_uid != os.geteuid():
        return "belongs to another user. Start as that user, or name another directory in FLAGADMIN_DATA_DIR."
    return "cannot be read and written by its owner. Change its mode to 0700."


def give_to_owner_of(folder: Path, path: Path) -> None:
    """If this process runs as root, gives a new file to the owner of its folder."""
    if os.geteuid() == 0:
        owner = folder.stat()
        os.chown(path, owner.st_uid, owner.st_gid, follow_symlinks=False)


def read_secret_key(data_dir: Path) -> str:
    """The key in `secret_key`, generated on first use. Processes that start together get the same key.

    Raises ValueError if the file is empty, OSError if it cannot be read.

    The key is written to a temporary file and then linked: the first link wins, and no process reads a
    partial key.
    """
    path = data_dir / "secret_key"
    if not path.exists():
        descriptor, drafted = tempfile.mkstemp(dir=data_dir, prefix="secret_key.")  # mode 0600
        try:
            with os.fdopen(descriptor, "w") as draft:
                draft.write(secrets.token_urlsafe(50))
                draft.flush()
                os.fsync(draft.fileno())
            give_to_owner_of(data_dir, Path(drafted))
            os.link(drafted, path)
        except FileExistsError:
            pass
        finally:
            os.unlink(drafted)
    key = path.read_text().strip()
    if not key:
        raise ValueError(
            f"The secret key file {path} is empty. Restore it from a backup, or delete it:"
            " a new key is created, and everybody has to log in again."
        )
    return key
