"""Compares files with the server: only differences are sent, planned and applied."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from flagadmin.client.errors import BadFiles, ClientError, Problem, Refused
from flagadmin.client.files import Document, File, Folder, check_keys, find_line
from flagadmin.client.merge import is_same
from flagadmin.client.server import Server

URL = "/api/admin/flags-as-code"
LISTS = {"flag": "flags", "segment": "segments", "context-field": "contextFields"}
_PLACE = re.compile(r"(flags|segments|contextFields)\[(\d+)\]\.?(?:flag\.?)?(.*)", re.DOTALL)


@dataclass
class Stored:
    """The server's documents by kind and name, and the project of each flag."""

    documents: dict[tuple[str, str], Document]
    projects: dict[str, str]
    used: set[tuple[str, str]]


def read_stored(server: Server, projects: list[str], *, shared: bool) -> Stored:
    """Reads the server's documents. Without ``shared``, only segments and context fields of the projects."""
    answer = server.get(URL, [("project", project) for project in projects])
    documents = {("flag", entry["flag"]["name"]): entry["flag"] for entry in answer["flags"]}
    for kind in ("segment", "context-field"):
        entries = (entry for entry in answer[LISTS[kind]] if shared or entry.get("project"))
        documents |= {(kind, entry["name"]): entry for entry in entries}
    used = {(kind, name) for kind in ("segment", "context-field") for name in answer["used"][LISTS[kind]]}
    return Stored(documents, {entry["flag"]["name"]: entry["project"] for entry in answer["flags"]}, used)


@dataclass
class Differences:
    """``files`` are the files to send, by list. ``missing`` are flags without a file."""

    folder: Folder
    files: dict[str, list[File]]
    missing: list[tuple[str, str]]
    archives: bool = False
    skips_requests: bool = False
    comment: str = ""
    sent: Document = field(default_factory=dict)

    def __bool__(self) -> bool:
        return any(self.files.values()) or bool(self.archives and self.missing)

    def body(self) -> Document:
        flags = [{"project": file.project, "flag": file.document} for file in self.files["flags"]]
        body: Document = {"flags": flags}
        for key in ("segments", "contextFields"):
            body[key] = [file.document for file in self.files[key]]
        if self.archives:
            body["archive"] = [{"project": project, "name": name} for project, name in self.missing]
        return body | ({"skipChangeRequests": True} if self.skips_requests else {})

    def post(self, server: Server, what: str, **more: Any) -> Document:
        """Sends the files. Raises BadFiles if the server reports problems with them."""
        headers = {"X-Comment": self.comment.encode().decode("latin-1")} if self.comment else {}
        try:
            return server.post(f"{URL}/{what}", self.body() | more, headers=headers)
        except Refused as error:
            problems = list(self._problems(error))
            raise BadFiles(problems) if problems else error from None

    def _problems(self, error: Refused) -> Iterator[Problem]:
        for detail in error.details:
            match = _PLACE.fullmatch(detail.get("path", ""))
            if match is None or int(match[2]) >= len(self.files[match[1]]):
                raise ClientError(
                    "\n".join([str(error), *(f"{d.get('path')}: {d.get('message')}" for d in error.details)])
                )
            file = self.files[match[1]][int(match[2])]
            message = f"{match[3]}: {detail.get('message')}" if match[3] else f"{detail.get('message')}"
            yield Problem(file.path, find_line(file.path, match[3]), message)


def find_differences(folder: Folder, stored: Stored, **options: Any) -> Differences:
    """Compares the files with the stored documents. Raises BadFiles."""
    files: dict[str, list[File]] = {key: [] for key in LISTS.values()}
    for file in folder.files.values():
        if file.kind != "flag" and not folder.is_shared and not file.document.get("project"):
            continue
        known = stored.documents.get(file.key)
        if file.kind == "flag" and stored.projects.get(file.name, file.project) != file.project:
            known = None
        if known is None or not _says_the_same(file, known):
            check_keys(file.path)
            files[LISTS[file.kind]].append(file)
    missing = [
        (project, name) for name, project in stored.projects.items() if ("flag", name) not in folder.files
    ]
    return Differences(folder, files, sorted(missing), **options)


def _says_the_same(file: File, stored: Document) -> bool:
    """Whether file and document are equal, except for environments that the file leaves out."""
    if file.document == stored:
        return True
    environments = file.document.get("environments")
    if file.kind == "flag" and (environments is None or isinstance(environments, dict)):
        known = {
            name: state for name, state in stored["environments"].items() if name in (environments or {})
        }
        stored = {**stored, "environments": known}
    return is_same(file.document, stored)
