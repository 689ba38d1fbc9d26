"""The data directory, its owner and its files.

It holds `postgres/` (the bundled database), `secret_key`, `static/`, lock files and the database's log. Started as
root inside somebody's folder, everything in it is given to that folder's owner, so that a start as root
never locks its owner out later. Only what is made here is ever given away or re-moded.
"""

import os
import secrets
import tempfile
from pathlib import Path


def make_data_dir(path: Path) -> Path:
    """Make the directory (and missing parents) if it is not there, and return its resolved path.

    Raises PermissionError, with a message for people, if it is there but belongs to somebody else.
    """
    path = path.expanduser().resolve()
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    # An account that runs the database for root needs to pass through, but not to list files.
    mode = 0o711 if os.geteuid() == 0 else 0o700
    for folder in reversed(missing):
        folder.mkdir(exist_ok=True)
        folder.chmod(mode)
        give_to_owner_of(folder.parent, folder)
    if not os.access(path, os.R_OK | os.W_OK | os.X_OK):
        raise PermissionError(f"The data directory {path} {_why_not(path)}")
    return path


def _why_not(path: Path) -> str:
    if os.statvfs(path).f_flag & os.ST_RDONLY:
        return "is on a read-only file system."
    if path.stat().st_uid != os.geteuid():
        return "belongs to another user. Start as that user, or name another directory in FLAGADMIN_DATA_DIR."
    return "cannot be read and written by its owner. Change its mode to 0700."


def give_to_owner_of(folder: Path, made: Path) -> None:
    """As root, gives a new file to the owner of its folder."""
    if os.geteuid() == 0:
        owner = folder.stat()
        os.chown(made, owner.st_uid, owner.st_gid, follow_symlinks=False)


def kept_secret_key(data_dir: Path) -> str:
    """The key kept in `secret_key`, generated on first use; all processes that start at once agree.

    Raises ValueError if the file is empty, OSError if it cannot be read.

    It is written whole under another name and then linked: the first link wins, and nobody ever reads
    half a key.
    """
    kept = data_dir / "secret_key"
    if not kept.exists():
        descriptor, drafted = tempfile.mkstemp(dir=data_dir, prefix="secret_key.")  # mode 0600
        try:
            with os.fdopen(descriptor, "w") as draft:
                draft.write(secrets.token_urlsafe(50))
                draft.flush()
                os.fsync(draft.fileno())
            give_to_owner_of(data_dir, Path(drafted))
            os.link(drafted, kept)
        except FileExistsError:
            pass
        finally:
            os.unlink(drafted)
    key = kept.read_text().strip()
    if not key:
        raise ValueError(
            f"The secret key file {kept} is empty. Restore it from a backup, or delete it:"
            " a new key is made then, and everybody has to log in again."
        )
    return key
