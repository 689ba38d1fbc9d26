"""Limits the computation of one comparison."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from time import monotonic

from flagadmin.core.errors import ValidationError


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits of one comparison. ``results`` are flags times contexts, ``advice`` suggests how to reduce them."""

    results: int = 1_000_000
    seconds: float = 20
    advice: str = "Name a flag, or give fewer contexts."

    def check_size(self, flags: int, contexts: int) -> None:
        """Raises ValidationError if these are too many."""
        if flags * contexts > self.results:
            flag, user = "flag" if flags == 1 else "flags", "user" if contexts == 1 else "users"
            size = f"{flags:,} {flag} × {contexts:,} {user} (limit {self.results:,})"
            raise ValidationError(f"Too many: {size}. {self.advice}")

    def spend(self, names: Sequence[str]) -> Iterator[str]:
        """Yields the names while there is time left: some rules can take long. Raises ValidationError."""
        start = monotonic()
        for done, name in enumerate(names):
            if monotonic() - start > self.seconds:
                raise ValidationError(
                    f"After {self.seconds} seconds {done:,} of {len(names):,} flags were compared. {self.advice}"
                )
            yield name
