"""The programs that connect an SDK: those of docs/sdk-languages.md and docs/openfeature.md, which the tests run.

The pages have example values: a URL, an application, a flag, and a token that is read from the environment or included.
`render` replaces them with the reader's own.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from django.conf import settings
from django.utils.html import conditional_escape, format_html
from django.utils.safestring import SafeString, mark_safe

from groups.models import ApiToken

PACKAGED = Path(__file__).with_name("docs")
DOCS = settings.PACKAGE.parent / "docs" if settings.IN_CHECKOUT else PACKAGED
SERVERS, CLIENTS, OTHERS = "servers", "browsers and phones", "without an Unleash SDK"

_ROW = re.compile(r"^\| ([^|]+) \| ([^|]*) \| ([^|]*) \| `([^|]+)` \| (backend|frontend) \|$", re.MULTILINE)
_SECTION = re.compile(r"^### ([^\n]+)\n\n```\w+\n([^`]+(?:`(?!``)[^`]*)*)```$", re.MULTILINE)
_PROVIDER = re.compile(r"`((?:npm|pip) install [^`\n]+)`[^\n]*\n\n```\w+\n([^`]+)```$", re.MULTILINE)
_CODE = re.compile(r"`([^`]+)`")
# Code that reads the token, by language.
_READS_TOKEN = re.compile(
    r"process\.env\.UNLEASH_TOKEN"
    r'|(?:System\.getenv|os\.Getenv|ENV\.fetch|Environment\.GetEnvironmentVariable)\("UNLEASH_TOKEN"\)'
    r"|os\.environ\[\"UNLEASH_TOKEN\"\]|getenv\('UNLEASH_TOKEN'\)"
    r'|(?P<rust>std::env::var\("UNLEASH_TOKEN"\)\.ok\(\))|(?P<shell>\$UNLEASH_TOKEN)'
)
_ONLY_FOR_READING = re.compile(r'^(?:import os\n\n|\t"os"\n)', re.MULTILINE)
_EXAMPLE_VALUES = re.compile(
    r"(?P<url>https://flags\.example\.(?:org|com))|(?P<application>\bshop\b)"
    r"|(?P<flag>one-click-pay|new-checkout)|(?P<token>FRONTEND-TOKEN|(?<![A-Z_])TOKEN\b)"
)


@dataclass(frozen=True, slots=True)
class Snippet:
    """``tool`` names the tool for an ``install`` that is not a command: Maven. ``address`` is the SDK's path."""

    key: str
    label: str
    group: str
    kind: ApiToken.Kind
    tool: str
    install: str
    version: str
    address: str
    code: str

    @property
    def reads_token(self) -> bool:
        """Whether the program reads the token from the environment; it can then also be included."""
        return _READS_TOKEN.search(self.code) is not None

    @property
    def registers(self) -> bool:
        """Whether it names its application: OpenFeature's providers and curl do not."""
        return self.group != OTHERS


@cache
def read_snippets() -> dict[str, Snippet]:
    """All of them by key, in the order of the documentation's table."""
    text = (DOCS / "sdk-languages.md").read_text()
    programs = dict(_SECTION.findall(text)) | dict(_PROVIDER.findall((DOCS / "openfeature.md").read_text()))
    return {snippet.key: snippet for snippet in _snippets(text, programs)}


def _snippets(text: str, programs: Mapping[str, str]) -> Iterator[Snippet]:
    for label, how, version, address, kind in _ROW.findall(text):
        command = _CODE.search(how)
        install = command[1] if command else ""
        is_other = label == "curl" or label.startswith("OpenFeature")
        yield Snippet(
            key="-".join(re.findall(r"\w+", label.lower())),
            label=label,
            group=OTHERS if is_other else SERVERS if kind == "backend" else CLIENTS,
            kind=ApiToken.Kind(kind),
            tool=how.partition("`")[0].strip(),
            install=install,
            version=version.strip(" –"),
            address=address.partition("flags.example.org")[2],
            code=(programs.get(label) or programs[install]).rstrip(),
        )


def find_snippet(key: str) -> Snippet:
    """The one with this key, otherwise the first."""
    snippets = read_snippets()
    return snippets.get(key) or next(iter(snippets.values()))


def openfeature_snippets(kind: str) -> Sequence[Snippet]:
    """OpenFeature's programs for a token of this kind."""
    return [
        snippet
        for snippet in read_snippets().values()
        if snippet.kind == kind and snippet.label.startswith("OpenFeature")
    ]


def render(
    snippet: Snippet, *, url: str, flag: str = "", application: str = "my-app", token: str = ""
) -> SafeString:
    """The program with these values, each in ``<mark>``.

    An empty flag leaves the example's. An empty token leaves the program as documented; otherwise the token is
    included.
    """
    code = snippet.code
    if token:
        code = _ONLY_FOR_READING.sub("", _READS_TOKEN.sub(_in_place, code))
    values = {"url": url, "flag": flag, "application": application, "token": token}
    parts = (
        format_html("<mark>{}</mark>", text) if is_value else conditional_escape(text)
        for text, is_value in _pieces(code, values)
    )
    return mark_safe("".join(parts))  # noqa: S308 - each part is escaped


def render_text(snippet: Snippet, *, url: str, flag: str = "", application: str = "my-app") -> str:
    """The program with these values, as text. It reads the token as documented."""
    values = {"url": url, "flag": flag, "application": application}
    return "".join(text for text, _ in _pieces(snippet.code, values))


def _pieces(code: str, values: Mapping[str, str]) -> Iterator[tuple[str, bool]]:
    """The program cut into constant parts and the values that replace the example's."""
    end = 0
    for match in _EXAMPLE_VALUES.finditer(code):
        yield code[end : match.start()], False
        yield values.get(match.lastgroup or "") or match[0], True
        end = match.end()
    yield code[end:], False


def _in_place(match: re.Match[str]) -> str:
    if match["shell"]:
        return "TOKEN"
    return 'Some("TOKEN".into())' if match["rust"] else '"TOKEN"'
