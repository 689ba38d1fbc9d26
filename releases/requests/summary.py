"""Summarizes a measurement for the page of a request: kept with it, so that opening the page counts nobody again."""

from collections.abc import Iterator
from itertools import chain, islice

from flagadmin.core.document import Document
from playground.comparison.who_changes import FlagChanges, WhoChanges
from playground.pages.lines import Explain, Line, Side, Who, make_line

EXAMPLES = 3


def summarize(who: WhoChanges) -> Document:
    """JSON: users by flag and change, how many of the other contexts change, and some of those who change."""
    examples = chain.from_iterable(_list_examples(who, flag) for flag in who.flags)
    return {
        "flags": {
            flag.name: {change.value: number for change, number in flag.counts.items() if number}
            for flag in who.flags
        },
        "made": sum(flag.made for flag in who.flags),
        "examples": list(islice(examples, EXAMPLES)),
    }


def _list_examples(who: WhoChanges, flag: FlagChanges) -> Iterator[Document]:
    for example in who.examples(flag, limit_each=1):
        context = flag.source.table.contexts[example.position]
        line = make_line(example, context)
        yield {
            "flag": example.flag,
            "context": dict(context.fields),
            "who": [*line.who],
            "before": [*line.before],
            "after": [*line.after],
        }


def read_line(example: Document, explain: Explain) -> Line:
    """An example, with its flag and a link that explains it."""
    link = explain(example["flag"], example["context"])
    name, rest = example["who"]
    who = Who(name, f"{example['flag']} · {rest}" if rest else example["flag"])
    return Line(who, Side(*example["before"]), Side(*example["after"]), link)
