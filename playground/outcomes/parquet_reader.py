"""Writes the rows of the Parquet file on standard input to standard output, as CSV. A program: imports nothing of ours.

Problems are a line of JSON on standard error, ``{"problem": "..."}``.
"""

import csv
import io
import json
import resource
import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

MAX_NAME, MAX_COLUMNS, MAX_GROUPS = 1_000, 1_000, 100_000
MAX_METADATA = 50_000_000
MAX_COLUMN_CHUNK = 1_000_000_000
MAX_ERRORS = 1_000_000
"""Bytes of standard error, a file."""
ROWS = 500


class Problem(Exception):
    pass


def read_rows(stream: Any) -> Iterator[list[str]]:
    """The names of the columns, then the rows."""
    import pyarrow as pa
    from pyarrow import parquet

    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    try:
        file = parquet.ParquetFile(
            stream,
            memory_map=False,
            pre_buffer=False,
            buffer_size=1 << 20,
            thrift_string_size_limit=MAX_METADATA,
            thrift_container_size_limit=MAX_GROUPS,
        )
        schema = file.schema_arrow
        _check(file.metadata, schema, pa.types)
        yield list(schema.names)
        for batch in file.iter_batches(ROWS, use_threads=False):
            yield from zip(*(_write(column, pa) for column in batch.columns), strict=True)
    except MemoryError:
        raise Problem("needs more memory than there is for one file") from None
    except (pa.ArrowException, OSError, OverflowError) as error:
        raise Problem("is not a valid Parquet file") from error


def _check(metadata: Any, schema: Any, types: Any) -> None:
    if not 0 < len(schema.names) <= MAX_COLUMNS:
        raise Problem(f"must have 1 to {MAX_COLUMNS:,} columns")
    for field in schema:
        kind = field.type.value_type if types.is_dictionary(field.type) else field.type
        if not any(is_kind(kind) for is_kind in _list_kinds(types)):
            told = "must have columns of text, numbers, true or false, dates and timestamps"
            raise Problem(f"{told}; {field.name[:100]} is {str(kind)[:60]}")
    for group in range(metadata.num_row_groups):
        found = metadata.row_group(group)
        for place in range(found.num_columns):
            if not 0 <= found.column(place).total_uncompressed_size <= MAX_COLUMN_CHUNK:
                raise Problem(
                    f"has a row group with more than {MAX_COLUMN_CHUNK // 1_000_000:,} MB in a column"
                )


def _list_kinds(types: Any) -> Any:
    kinds = "string large_string string_view integer floating decimal boolean date timestamp null"
    return [getattr(types, f"is_{kind}") for kind in kinds.split()]


def _write(column: Any, pa: Any) -> list[str]:
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_timestamp(column.type):  # To ISO 8601 in UTC; finer parts than microseconds are cut off.
        column = column.cast(pa.timestamp("us", tz=column.type.tz), safe=False).cast(pa.timestamp("us"))
        return ["" if value is None else f"{value.isoformat()}Z" for value in column.to_pylist()]
    if pa.types.is_boolean(column.type):
        return ["" if value is None else str(value).lower() for value in column.to_pylist()]
    if pa.types.is_floating(column.type):  # Whole numbers as in other formats: 42, not 42.0.
        return ["" if value is None or value != value else _number(value) for value in column.to_pylist()]
    return ["" if value is None else str(value) for value in column.to_pylist()]


def _number(value: float) -> str:
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)


def main(memory: int, seconds: int) -> int:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    resource.setrlimit(resource.RLIMIT_FSIZE, (MAX_ERRORS, MAX_ERRORS))
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    out = io.TextIOWrapper(
        sys.stdout.buffer, encoding="utf-8", errors="replace", newline="", write_through=False
    )
    try:
        csv.writer(out).writerows(read_rows(sys.stdin.buffer))
        out.flush()
    except BrokenPipeError:
        with suppress(OSError):
            sys.stdout.buffer.close()
        return 1
    except Problem as problem:
        sys.stderr.write(json.dumps({"problem": str(problem)}) + "\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:3])))
