"""Finds a string that probably matches a regular expression. The engine then checks it."""

from __future__ import annotations

from contextlib import suppress

MAX_LENGTH = 1_000  # characters
_ESCAPED = {"d": "0", "w": "a", "s": " ", "D": "a", "W": "-", "S": "a", "n": "\n", "t": "\t"}
_NAMED = {"upper": "A", "digit": "0", "space": " ", "punct": "!", "blank": " "}
_NOTHING = "bBAzZQE"
_OUTSIDE = "~a0A -"


def find_matching_text(pattern: str) -> str:
    """A string with the first of all alternatives and the fewest repetitions, at least one; "" if there is none."""
    with suppress(IndexError, RecursionError):
        return _Pattern(pattern).alternatives()
    return ""


class _Pattern:
    """Reads a pattern from left to right. Reading past its end raises IndexError."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0

    def next(self) -> str:
        self.position += 1
        return self.text[self.position - 1]

    def sees(self, characters: str) -> bool:
        return self.position < len(self.text) and self.text[self.position] in characters

    def until(self, ends: str) -> str:
        start = self.position
        while self.text[self.position] not in ends:
            self.position += 1
        return self.text[start : self.position]

    def alternatives(self) -> str:
        text = self.sequence()
        while self.sees("|"):
            self.next()
            self.sequence()
        return text

    def sequence(self) -> str:
        text = ""
        while self.position < len(self.text) and not self.sees("|)"):
            part = self.item()
            text = (text + part * self.times())[:MAX_LENGTH]
        return text

    def item(self) -> str:
        character = self.next()
        if character in "^$":
            return ""
        if character == "(":
            return self.group()
        if character == "[":
            return self.one_of()
        if character == "\\":
            return self.escaped()
        return "a" if character == "." else character

    def group(self) -> str:
        if self.sees("?"):  # flags, or the name of the group
            self.until(":)>")
            if self.next() == ")":
                return ""
        text = self.alternatives()
        self.next()
        return text

    def one_of(self) -> str:
        negated = self.sees("^")
        if negated:
            self.next()
        first = self.next()
        if first == "\\":
            first = self.escaped()
        elif first == "[" and self.sees(":"):
            first = _NAMED.get(self.named(), "a")
        members = first + self.until("]")
        while members.count("[:") > members.count(":]"):  # the bracket belonged to a class
            members += self.next() + self.until("]")
        self.next()
        return (
            next((character for character in _OUTSIDE if character not in members), "") if negated else first
        )

    def named(self) -> str:
        """The name of a class like [:upper:], after its bracket."""
        self.next()
        name = self.until(":")
        self.position += 2
        return name

    def escaped(self) -> str:
        character = self.next()
        return "" if character in _NOTHING else _ESCAPED.get(character, character)

    def times(self) -> int:
        count = 1
        if self.sees("{"):
            self.next()
            least = self.until("}").partition(",")[0]
            self.next()
            count = min(int(least), MAX_LENGTH) if least.isdecimal() else 1
        elif self.sees("*+?"):
            self.next()
        if self.sees("?"):
            self.next()
        return count
