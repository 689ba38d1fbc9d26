"""Tables as Parquet: the same rows as in other forms, and files that mean no good."""

import io
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from django.core.management import call_command
from pyarrow import parquet as writer

from flagadmin.core.errors import ValidationError
from playground.outcomes import parquet
from playground.outcomes.table import Limits, Table, TooLarge
from tests.support.playground import live_flag

NOW = datetime(2026, 11, 21, 14, 5, 0, 250_000, tzinfo=UTC)
TIMES = pa.array([NOW, NOW - timedelta(days=1), None], pa.timestamp("ns", "Europe/Berlin"))


def pack(table: pa.Table | dict[str, Any], **options: Any) -> bytes:
    file = io.BytesIO()
    writer.write_table(pa.table(table), file, **options)
    return file.getvalue()


def read(body: bytes, limits: Limits = Limits(), *, timed: bool = True) -> tuple[list[str], list[list[str]]]:  # noqa: B008
    table = Table(io.BytesIO(body), until=NOW, limits=limits, timed=timed)
    return table.columns, [row for rows in table.chunks(1_000) for row in rows.cells]


def refused(body: bytes, limits: Limits = Limits()) -> str:  # noqa: B008
    with pytest.raises(ValidationError) as caught:
        read(body, limits, timed=False)
    return str(caught.value.details[0])


def test_values_are_those_of_other_forms() -> None:
    columns = {
        "userId": [42, 7, None],
        "time": TIMES.fill_null(NOW),
        "properties.plan": pa.array(["pro, or “so”", "free", None]).dictionary_encode(),
        "beta": [True, None, False],
        "amount": [12.0, 0.25, float("nan")],
        "day": [NOW.date(), None, None],
        "local": pa.array([NOW.replace(tzinfo=None)] * 3, pa.timestamp("ms")),
    }
    names, rows = read(pack(columns))
    assert names == list(columns)
    local = "2026-11-21T14:05:00.250000Z"
    assert rows == [
        ["42", "2026-11-21T14:05:00.250000Z", "pro, or “so”", "true", "12", "2026-11-21", local],
        ["7", "2026-11-20T14:05:00.250000Z", "free", "", "0.25", "", local],
        ["", "2026-11-21T14:05:00.250000Z", "", "false", "", "", local],
    ]


def test_rows_of_many_groups_keep_their_order() -> None:
    _, rows = read(pack({"userId": range(9_000)}, row_group_size=700, compression="zstd"), timed=False)
    assert [int(row[0]) for row in rows] == list(range(9_000))


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        ([[1, 2]], "list"),
        ([{"a": 1}], "struct"),
        ([b"x"], "binary"),
        (pa.array([[("a", 1)]], pa.map_("string", "int8")), "map"),
    ],
)
def test_nested_and_binary_columns_are_named(column: Any, kind: str) -> None:
    assert (
        f"must have columns of text, numbers, true or false, dates and timestamps; it is {kind}"
        in refused(pack({"it": column}))
    )


def repeat(text: str, rows: int) -> bytes:
    """The text once, and a few bytes for all rows."""
    places = pa.array([0] * rows, pa.int32())
    return pack({"userId": pa.DictionaryArray.from_arrays(places, pa.array([text]))})


def test_small_files_with_much_in_them_are_bounded() -> None:
    long = repeat("x" * 9_000, 20_000_000)
    assert len(long) < 100_000
    assert "row 2: must have at most 1,000 characters in a cell" in refused(long)
    many = repeat("x" * 900, 20_000_000)
    assert "must have at most 1,000 rows" in refused(many, Limits(rows=1_000))
    with pytest.raises(TooLarge, match="1 MB unpacked"):
        read(many, Limits(unpacked=1_000_000), timed=False)


def test_a_file_that_needs_too_much_memory_is_refused() -> None:
    huge = repeat("x" * 50_000_000, 2_000)
    assert "needs more memory than there is for one file" in refused(huge)


def test_a_file_that_takes_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "MAX_SECONDS", 0)
    assert "within the memory and time limits" in refused(pack({"userId": ["42"]}))


def act_as_reader(program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "reader.py"
    file.write_text(program)
    monkeypatch.setattr(parquet.parquet_reader, "__file__", str(file))


def test_a_process_that_only_waits_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    act_as_reader("import signal\nsignal.pause()", tmp_path, monkeypatch)
    monkeypatch.setattr(parquet, "MAX_WAIT", 0.1)
    assert "within the memory and time limits" in refused(pack({"userId": ["42"]}))


def test_many_errors_do_not_block_the_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """More than a pipe holds."""
    program = "import sys\nprint('warning\\n' * 50_000, '\\n{\"problem\": \"is odd\"}', file=sys.stderr)\nsys.exit(1)"
    act_as_reader(program, tmp_path, monkeypatch)
    monkeypatch.setattr(parquet, "MAX_WAIT", 60)
    assert "is odd" in refused(pack({"userId": ["42"]}))


def test_broken_files_are_refused() -> None:
    body = pack({"userId": [f"user-{number}" for number in range(5_000)]})
    assert "is not a valid Parquet file" in refused(b"PAR1" + b"\xff" * 100 + b"PAR1")
    assert "is not a valid Parquet file" in refused(body[:-9])
    random = Random(1)
    for _ in range(6):
        broken = bytearray(body)
        for _ in range(20):
            broken[random.randrange(len(body) - 400, len(body) - 8)] = random.randrange(256)
        with suppress(ValidationError):
            read(bytes(broken), timed=False)


def test_who_stops_reading_ends_the_process() -> None:
    stream = parquet.read_parquet(io.BytesIO(repeat("x" * 900, 20_000_000)))
    stream.read(1_000)
    process = stream._process  # type: ignore[attr-defined]
    assert process.poll() is None
    stream.close()
    assert process.returncode == -9


def test_without_the_extra_one_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "find_spec", lambda name: None)
    assert "flagadmin[experiments]" in refused(pack({"userId": ["42"]}))


@pytest.mark.django_db
def test_the_command_and_the_api_read_parquet(api: Any, shop: Any, tmp_path: Path) -> None:
    live_flag("f")
    file = tmp_path / "orders.parquet"
    body = pack({"userId": ["42", "7"], "time": TIMES[:2]})
    file.write_bytes(body)
    out = io.StringIO()
    call_command("assignments", file, environment="production", flag=["f"], stdout=out, stderr=io.StringIO())
    assert [line.split(",")[2] for line in out.getvalue().splitlines()] == ["result", "off", "off"]
    url = "/api/admin/playground/assignments?environment=production&flag=f"
    answer = api["viewer"].post(url, data=body, content_type="application/vnd.apache.parquet")
    assert [line.split(",")[0] for line in answer.content.decode().splitlines()] == ["userId", "42", "7"]
