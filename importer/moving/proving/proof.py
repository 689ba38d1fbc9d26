"""The result of a proof for one SDK token."""

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(slots=True)
class Difference:
    """A flag that is not the same. ``users`` are those of ``of`` contexts who get a different result."""

    flag: str
    reason: str
    users: int = 0
    of: int = 0
    example: str = ""


@dataclass(slots=True)
class TokenProof:
    """The results that one token gets. ``differences`` change a result, ``spellings`` none of those compared.

    ``problem`` says why nothing could be compared. Flags that are ``left_out`` of the move are not compared.
    """

    name: str
    environment: str
    flags: int = 0
    differences: list[Difference] = field(default_factory=list)
    spellings: list[Difference] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    problem: str = ""
    note: str = ""

    @property
    def is_equal(self) -> bool:
        return not self.problem and not self.differences

    def take_results(self, other: "TokenProof") -> None:
        """Takes over the results of another token that gets the same."""
        self.flags, self.left_out = other.flags, other.left_out
        self.differences, self.spellings = other.differences, other.spellings

    def document(self) -> dict[str, Any]:
        return {
            "token": self.name,
            "environment": self.environment,
            "flags": self.flags,
            "problem": self.problem,
            "note": self.note,
            "differences": list(map(asdict, self.differences)),
            "leftOut": self.left_out,
            "writtenOtherwise": list(map(asdict, self.spellings)),
        }
