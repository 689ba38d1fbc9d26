"""Reads Parquet as CSV, in a process with bounds of memory and time: files may lie about their sizes."""

import io
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from typing import IO, Any

from flagadmin.core.errors import ValidationError
from playground.outcomes import parquet_reader
from playground.outcomes.experiment.problems import EXTRA

MAGIC = b"PAR1"
MAX_SECONDS = 900
"""Of CPU, for 2,000,000 rows of many columns."""
MAX_WAIT = 1_800
"""Seconds for which its reader waits, all together: a process that waits for something uses no CPU."""
MAX_ERRORS = 10_000
"""Bytes of its last errors that are read."""
MAX_MEMORY = 1_500_000_000
"""Addresses. A million rows of 13 columns need less than 600 MB."""
PAST_LIMITS = "cannot be read as Parquet within the memory and time limits"


def read_parquet(stream: IO[bytes]) -> io.RawIOBase:
    """The rows as CSV with a header, which may be more than the file has bytes. Raises ValidationError, also later."""
    if find_spec("pyarrow") is None:
        raise ValidationError.at(
            "file", f"is Parquet, for which the server needs {EXTRA}. Send CSV or lines of JSON"
        )
    with tempfile.TemporaryFile(buffering=0) as file:
        shutil.copyfileobj(stream, file, 1 << 20)
        return _Csv(file)


class _Csv(io.RawIOBase):
    def __init__(self, file: Any) -> None:
        # No pipe: nobody reads it before the end, so that a full one would block the process.
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115
        self._seconds_left: float = MAX_WAIT
        self._process = subprocess.Popen(
            [sys.executable, "-I", parquet_reader.__file__, str(MAX_MEMORY), str(MAX_SECONDS)],
            stdin=file,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            bufsize=0,
            cwd=os.sep,
            env={"ARROW_DEFAULT_MEMORY_POOL": "system", "OMP_NUM_THREADS": "1"},
        )
        self._output = select.poll()
        self._output.register(self._process.stdout)  # type: ignore[arg-type]

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        assert self._process.stdout is not None
        began = time.monotonic()
        if not self._output.poll(max(self._seconds_left, 0) * 1_000):
            raise ValidationError.at("file", PAST_LIMITS)
        count: int = self._process.stdout.readinto(buffer)  # type: ignore[attr-defined]
        self._seconds_left -= time.monotonic() - began
        if not count and self._process.wait():
            raise ValidationError.at("file", self._find_problem())
        return count

    def _find_problem(self) -> str:
        self._errors.seek(max(self._errors.seek(0, os.SEEK_END) - MAX_ERRORS, 0))
        try:
            return str(json.loads(self._errors.read().splitlines()[-1])["problem"])
        except (ValueError, LookupError, TypeError):  # killed by a limit, or by what is in the file
            return PAST_LIMITS

    def close(self) -> None:
        if not self.closed:
            if self._process.poll() is None:
                self._process.kill()
            self._process.wait()
            for file in filter(None, (self._process.stdout, self._errors)):
                file.close()
        super().close()
