"""Keeps the changes in the flags of a scope, as the events that delta and streaming SDKs take."""

from flagadmin.core.document import Document
from relay.flags import Body, Flags
from sdk.delta.history import History
from sdk.features.chunks import Chunk, write_text
from sdk.streaming.scope_streams import NOTHING

MAX_KEPT = 20  # answers


class Texts:
    """The flags and segments at one moment, each as JSON."""

    def __init__(self, flags: Flags, earlier: "Texts | None" = None) -> None:
        """Those of flags that are the same objects as ``earlier`` are taken over."""
        self._documents: dict[str, Document] = {flag["name"]: flag for flag in flags.features}
        self._flags: dict[str, bytes] = {}
        for name, flag in self._documents.items():
            is_same = earlier is not None and earlier._documents.get(name) is flag
            self._flags[name] = earlier._flags[name] if earlier and is_same else write_text(flag)
        self._projects = {flag["name"]: str(flag.get("project") or "default") for flag in flags.features}
        self.segments = dict(sorted((segment["id"], write_text(segment)) for segment in flags.segments))

    @property
    def flags(self) -> list[tuple[str, bytes]]:
        return list(self._flags.items())

    def get_flag(self, name: str, project: str) -> bytes | None:
        return self._flags.get(name)

    def find_changed_flags(self, before: "Texts") -> dict[str, str]:
        projects = before._projects | self._projects
        names = before._flags.keys() | self._flags.keys()
        return {name: projects[name] for name in names if before._flags.get(name) != self._flags.get(name)}

    def find_compressed_chunks(self) -> list[Chunk]:
        return []


class Changes:
    """The history of a scope, with the answers that many ask for."""

    def __init__(self, version: int, texts: Texts) -> None:
        self._history = History(version, texts)
        self._answers: dict[int | None, Body] = {}  # by version what has changed since

    @property
    def version(self) -> int:
        return self._history.version

    @property
    def texts(self) -> Texts:
        """The latest."""
        return self._history.content

    def advance(self, version: int, texts: Texts) -> None:
        """Takes over those of a later version."""
        self._history.advance(version, texts)
        self._answers.clear()

    def events(self, since: int | None) -> Body:
        """``{"events": [...]}``: what changed since a version, or everything if that version is not known."""
        since = since if self._history.knows(since) else None
        if since not in self._answers:
            if len(self._answers) >= MAX_KEPT:
                self._answers.clear()
            chunks = self._history.events(since) or [Chunk((NOTHING,))]
            body = self._answers[since] = Body(f'"{self.version}"', chunks)
            body.join_small()  # streams then share the whole instead of its many parts
        return self._answers[since]
