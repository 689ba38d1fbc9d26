"""Measures a YAML document before it is parsed: the number of its values, with each alias counted as its target."""

import yaml


class TooLarge(ValueError):
    """``line`` is the line that exceeds a bound."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line


def check_yaml(text: str, *, values: int, depth: int) -> None:
    """Raises TooLarge beyond this number of values or levels, and for a document that contains itself.

    Raises yaml.YAMLError for text that is not YAML. Keeps only the size of each anchor, so nested aliases, which could
    fill the memory when expanded, cost no more than their bytes.
    """
    measure = _Measure()
    for event in yaml.parse(text, Loader=yaml.CSafeLoader):
        message = measure.add(event)
        if measure.size > values:
            message = f"must have at most {values:,} values, with those that aliases repeat"
        if len(measure.above) > depth:
            message = f"must be nested at most {depth} levels deep"
        if message:
            raise TooLarge(event.start_mark.line + 1 if event.start_mark else 1, message)


class _Measure:
    """``above``: the anchors of the open lists and mappings, with the size before each."""

    def __init__(self) -> None:
        self.size, self.above = 0, list[tuple[str | None, int]]()
        self._sizes: dict[str | None, int] = {}

    def add(self, event: yaml.Event) -> str:
        """Adds an event. Returns the problem, if any."""
        if isinstance(event, yaml.AliasEvent):
            self.size += self._sizes.get(event.anchor, 1)
            if any(anchor == event.anchor for anchor, _ in self.above):
                return "contains itself"
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, before = self.above.pop()
            self._sizes[anchor] = self.size - before
        elif isinstance(event, yaml.CollectionStartEvent):
            self.above.append((event.anchor, self.size))
            self.size += 1
        elif isinstance(event, yaml.ScalarEvent):
            self._sizes[event.anchor] = 1
            self.size += 1
        return ""
