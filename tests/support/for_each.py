"""Tables of cases for tests whose set-up costs more than what they try."""

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest
from django.db import connection, transaction

from tests.support.cast import Clients


def for_each(
    names: str | Sequence[str], cases: Iterable[Any]
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Like ``pytest.mark.parametrize``, but with one set-up for all cases; one message names every case that fails.

    What a case writes is rolled back before the next one. Objects of fixtures are shared, so a case must not change
    them in memory. Where the test commits (``transaction=True``), nothing is undone: there, only refused changes and
    reads belong into such a table.
    """
    keys = [names] if isinstance(names, str) else list(names)
    table = [(case,) if isinstance(names, str) else tuple(case) for case in cases]
    assert table, "no cases"

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(test)
        def of_all(*instance: Any, **fixtures: Any) -> None:
            failures = []
            for case in table:
                try:
                    _try_case(
                        functools.partial(test, *instance), dict(zip(keys, case, strict=True)), fixtures
                    )
                except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001 - told below
                    failures.append(f"{', '.join(map(repr, case))}: {type(error).__name__}: {error}")
            assert not failures, "\n".join([f"{len(failures)} of {len(table)} cases failed:", *failures])

        given = inspect.signature(test)
        kept = [parameter for name, parameter in given.parameters.items() if name not in keys]
        of_all.__signature__ = given.replace(parameters=kept)  # type: ignore[attr-defined]
        return of_all

    return decorate


def _try_case(test: Callable[..., None], case: dict[str, Any], fixtures: dict[str, Any]) -> None:
    if "caplog" in fixtures:
        fixtures["caplog"].clear()
    if not connection.in_atomic_block:
        test(**fixtures, **case)
        return
    clients = [value for value in fixtures.values() if isinstance(value, Clients)]
    known = [set(each) for each in clients]
    try:
        with transaction.atomic():
            test(**fixtures, **case)
            transaction.set_rollback(True)
    finally:
        for each, names in zip(clients, known, strict=True):
            for name in each.keys() - names:
                del each[name]  # its token is gone
