"""Reads Parquet as CSV, in a process with bounds of memory and time: files may lie about their sizes."""

import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from typing import IO, Any

from flagadmin.core.errors import ValidationError
from playground.outcomes import parquet_reader
from playground.outcomes.experiment.problems import EXTRA

MAGIC = b"PAR1"
MAX_SECONDS = 900
"""Of CPU, for 2,000,000 rows of many columns."""
MAX_MEMORY = 1_500_000_000
"""Addresses. A million rows of 13 columns need less than 600 MB."""


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
        self._process = subprocess.Popen(
            [sys.executable, "-I", parquet_reader.__file__, str(MAX_MEMORY), str(MAX_SECONDS)],
            stdin=file,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=os.sep,
            env={"ARROW_DEFAULT_MEMORY_POOL": "system", "OMP_NUM_THREADS": "1"},
        )

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        assert self._process.stdout is not None
        count = self._process.stdout.readinto(buffer)  # type: ignore[attr-defined]
        if not count and self._process.wait():
            raise ValidationError.at("file", self._find_problem())
        return count

    def _find_problem(self) -> str:
        assert self._process.stderr is not None
        try:
            return str(json.loads(self._process.stderr.read(10_000).splitlines()[-1])["problem"])
        except (ValueError, LookupError, TypeError):  # killed by a limit, or by what is in the file
            return "cannot be read as Parquet within the memory and time that there are"

    def close(self) -> None:
        if not self.closed:
            if self._process.poll() is None:
                self._process.kill()
            self._process.wait()
            for pipe in filter(None, (self._process.stdout, self._process.stderr)):
                pipe.close()
        super().close()
