"""A memory bounded in bytes, which keeps what is asked for again."""

from sdk.evaluation.prepared import ENTRY, Remembered


def test_what_is_asked_for_again_stays() -> None:
    memory: Remembered[int, bytes] = Remembered(20 * (ENTRY + 100))
    memory.put(0, b"", 100)
    for number in range(1, 100):
        memory.put(number, b"x", 100)
        assert memory.get(0) == b""
    assert [memory.get(number) for number in (99, 95, 50, 1)] == [b"x", b"x", None, None]


def test_what_is_too_large_is_not_kept() -> None:
    memory: Remembered[str, list[int]] = Remembered(10_000)
    memory.put("large", [1], 5_000)
    memory.put("empty", [], 0)
    memory.put("empty", [], 0)
    assert (memory.get("large"), memory.get("empty")) == (None, [])
    memory.clear()
    assert memory.get("empty") is None
