"""A memory bounded in bytes, which keeps what is asked for again."""

from threading import Thread

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


def test_threads_do_not_miscount() -> None:
    memory: Remembered[str, bytes] = Remembered(10_000)
    other = Thread(target=memory.put, args=("key", b"x", 100))

    class Key(str):
        __slots__ = ()

        def __hash__(self) -> int:
            if not other.ident:
                other.start()
                other.join(0.1)
            return super().__hash__()

    memory.put(Key("key"), b"x", 100)
    other.join()
    assert memory._nbytes == ENTRY + 100
