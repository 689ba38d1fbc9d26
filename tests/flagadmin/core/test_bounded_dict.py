"""A dictionary that keeps only so many of its entries."""

from concurrent.futures import ThreadPoolExecutor

from flagadmin.core.caches import BoundedDict


def test_those_set_last_stay() -> None:
    squares: BoundedDict[int, int] = BoundedDict(3)
    for number in (1, 2, 3, 1, 4):
        squares[number] = number**2
    assert squares == {3: 9, 1: 1, 4: 16}
    squares.move_to_end(3)
    squares[5] = 25
    assert list(squares) == [4, 3, 5]


def test_threads_that_set_and_drop_disturb_nobody() -> None:
    numbers: BoundedDict[int, int] = BoundedDict(10)

    def work(first: int) -> None:
        for number in range(first, first + 2_000):
            numbers[number % 25] = number
            numbers.pop((number + 7) % 25, None)
            assert len(list(numbers.values())) <= 11  # one more while it is being set

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(work, range(4)))
    assert len(numbers) <= 10


def test_an_entry_that_is_set_again_is_never_absent() -> None:
    numbers: BoundedDict[str, int] = BoundedDict(10)
    numbers["known"] = 0

    def work(is_setting: bool) -> None:
        for number in range(100_000):
            if is_setting:
                numbers["known"] = number
            else:
                assert "known" in numbers

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(work, (True, False, True, False)))
