from collections.abc import Iterable

from flagadmin.errors import Problem, ValidationError


def check_problems(problems: Iterable[Problem]) -> None:
    """Raises ValidationError with all of them, if there is one."""
    found = list(problems)
    if found:
        raise ValidationError.of(found)
