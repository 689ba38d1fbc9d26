"""What other servers ask to wait, in all the ways in which they say it."""

from datetime import UTC, datetime, timedelta

import pytest

from flagadmin.core.http.outside import read_retry_after


@pytest.mark.parametrize(("text", "seconds"), [("1800", 1800.0), (" 0 ", 0.0), ("9" * 40, 9_999_999_999.0)])
def test_a_number_is_seconds(text: str, seconds: float) -> None:
    assert read_retry_after(text) == seconds


@pytest.mark.parametrize(("zone", "ahead"), [("GMT", 0), ("+0200", 2)])
def test_a_date_is_a_moment_in_any_zone(zone: str, ahead: int) -> None:
    local = datetime.now(UTC) + timedelta(hours=1 + ahead)
    assert read_retry_after(f"{local:%a, %d %b %Y %H:%M:%S} {zone}") == pytest.approx(3600, abs=60)


def test_a_date_that_has_passed_is_now() -> None:
    assert read_retry_after("Sat, 21 Nov 2020 09:00:00 GMT") == 0.0


@pytest.mark.parametrize("text", ["", "soon", "-5", "1.5", "٣", "Sat, 99 Nov 2026 09:00:00 GMT"])
def test_anything_else_says_nothing(text: str) -> None:
    assert read_retry_after(text) is None
