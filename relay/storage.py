"""The directory of a relay's data: readable only by its owner, with each file written completely or not at all."""

import errno
import fcntl
import logging
import os
from pathlib import Path

log = logging.getLogger("flagadmin.relay")


class DirectoryInUse(Exception):
    """Another relay uses the directory."""


class Storage:
    """Logs failures to write once and keeps them in ``fault``: the relay continues with its memory."""

    def __init__(self, folder: Path) -> None:
        """Raises OSError, and DirectoryInUse."""
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.chmod(0o700)
        self._folder = folder
        self.fault = ""
        self._appended, self._descriptor = "", -1  # the last file that lines were added to
        self._lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._lock)
            raise DirectoryInUse(f"{folder} is used by another relay.") from None

    def close(self) -> None:
        os.close(self._lock)

    def names(self, prefix: str) -> list[str]:
        """The files with this prefix, the oldest first."""
        files = [path for path in self._folder.glob(f"{prefix}*") if not path.name.endswith(".new")]
        return [path.name for path in sorted(files, key=lambda path: (path.stat().st_mtime_ns, path.name))]

    def read(self, name: str) -> bytes | None:
        try:
            return (self._folder / name).read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            self._failed(error)
            return None

    def write(self, name: str, *parts: bytes) -> bool:
        """Writes a file. Returns whether that worked. Until then, readers get the old content."""
        path, new = self._folder / name, self._folder / f"{name}.new"
        try:
            descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.writelines(parts)
                file.flush()
                os.fsync(file.fileno())
            new.replace(path)
        except OSError as error:
            new.unlink(missing_ok=True)
            self._failed(error)
            return False
        self._worked()
        return True

    def append(self, name: str, line: bytes) -> bool:
        """Adds a line, which survives the end of the process, but not of the machine. Returns whether that worked."""
        try:
            if self._appended != name:
                if self._appended:
                    os.close(self._descriptor)
                self._appended = ""
                self._descriptor = os.open(self._folder / name, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
                self._appended = name
            written = os.write(self._descriptor, line + b"\n")
            if written == len(line) + 1:
                return True
            # Keeps the next line from continuing this one.
            os.ftruncate(self._descriptor, os.fstat(self._descriptor).st_size - written)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            self._failed(error)
            return False

    def delete(self, name: str) -> None:
        try:
            (self._folder / name).unlink(missing_ok=True)
        except OSError as error:
            self._failed(error)

    def _failed(self, error: OSError) -> None:
        fault = error.strerror or str(error)
        if fault != self.fault:
            log.error("The data directory cannot be used: %s. What is new stays in memory.", fault)
        self.fault = fault

    def _worked(self) -> None:
        if self.fault:
            log.warning("The data directory can be used again")
        self.fault = ""
