"""A worker that is killed again right after its restart does not stop the server."""

from flagadmin.management.commands.serve import MAX_RESPAWNS, RespawnLimit


def is_a_loop(respawns: RespawnLimit, worker: int, now: float) -> bool:
    """As Granian asks, before it starts the worker again."""
    return now - respawns.get(worker, 0) <= 5.5


def test_a_worker_may_be_killed_twice_at_once() -> None:
    respawns = RespawnLimit()
    for number in range(MAX_RESPAWNS - 1):
        assert not is_a_loop(respawns, 0, 100.0 + number)
        respawns[0] = 100.0 + number
    assert not is_a_loop(respawns, 0, 100.0 + MAX_RESPAWNS)


def test_a_worker_that_always_dies_ends_the_server() -> None:
    respawns = RespawnLimit()
    for number in range(MAX_RESPAWNS):
        respawns[0] = 100.0 + number
    assert is_a_loop(respawns, 0, 100.0 + MAX_RESPAWNS)


def test_kills_spread_over_hours_do_not() -> None:
    respawns = RespawnLimit()
    for number in range(MAX_RESPAWNS):
        respawns[0] = 100.0 + 60 * number
    assert not is_a_loop(respawns, 0, 100.0 + 60 * MAX_RESPAWNS)
