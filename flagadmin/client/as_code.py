"""flagadmin pull, plan and apply: flags as files.

Compares files with the server: only differences are sent, planned and applied.
"""

import json
import re
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from flagadmin.client.files import (
    FOLDERS,
    SETTINGS,
    Document,
    File,
    Folder,
    check_keys,
    find_line,
    open_folder,
    read_files,
)
from flagadmin.client.merge import SCHEMAS, is_same, rewrite, write, write_new
from flagadmin.client.report import drop_controls, write_junit, write_markdown, write_text
from flagadmin.client.server import BadFiles, ClientError, Problem, Refused, Server, connect

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


CHANGES = 2
"""The exit status of a plan with changes."""
NOTHING: dict[str, Any] = {
    "changes": [],
    "changeRequests": [],
    "whoChanges": [],
    "notes": [],
    "fingerprint": "",
}


def add_pull(parser: ArgumentParser) -> None:
    parser.add_argument("directory", type=Path)
    parser.add_argument(
        "--project",
        action="append",
        default=[],
        help="the project whose flags to write, into a new directory; may be given several times",
    )
    parser.add_argument("--json", action="store_true", help="write new files as JSON instead of YAML")


def add_plan(parser: ArgumentParser) -> None:
    _add_common(parser)
    parser.add_argument("--out", type=Path, help="write the plan to this file, for apply --plan")
    parser.add_argument("--junit", type=Path, help="write JUnit's XML to this file")
    parser.add_argument("--markdown", type=Path, help="write Markdown for a pull request to this file")


def add_apply(parser: ArgumentParser) -> None:
    _add_common(parser)
    parser.add_argument("--plan", type=Path, help="apply just what this plan says, or nothing")
    parser.add_argument("--comment", default="", help="why: kept in the audit log")


def _add_common(parser: ArgumentParser) -> None:
    parser.add_argument("directory", type=Path)
    parser.add_argument(
        "--archive-missing", action="store_true", help="archive flags of the projects that have no file"
    )
    parser.add_argument(
        "--skip-change-requests",
        action="store_true",
        help="change at once what needs a change request; needs the permission to skip them",
    )


# Pull ------------------------------------------------------------------------------------------------------


def pull(options: Namespace) -> int:
    server = connect(options.url, options.token)
    folder = open_folder(options.directory, may_be_new=True)
    read_files(folder)
    if not folder.projects:
        _begin(folder, options)
    elif options.project and sorted(options.project) != sorted(folder.projects):
        raise ClientError(f"{SETTINGS}.yaml names the projects of a directory: change it there.")
    stored = read_stored(server, folder.projects, shared=folder.is_shared)
    for kind in (*FOLDERS, SETTINGS):
        schema = server.get(f"{URL}/schemas/{kind}")
        write(folder.root / SCHEMAS / f"{kind}.json", json.dumps(schema, indent=2) + "\n")
    counts = _write_all(folder, stored, ".json" if options.json else ".yaml")
    print(", ".join(f"{number:,} {what}" for what, number in counts.items()) + ".")
    return 0


def _begin(folder: Folder, options: Namespace) -> None:
    if not options.project:
        raise ClientError("Say which project's flags to write: --project.")
    folder.projects = sorted(set(options.project))
    suffix = ".json" if options.json else ".yaml"
    write_new(folder.root / f"{SETTINGS}{suffix}", {"projects": folder.projects}, SETTINGS)


def _write_all(folder: Folder, stored: Stored, suffix: str) -> dict[str, int]:
    counts = {"written": 0, "changed": 0, "removed": 0, "the same": 0}
    for key, document in stored.documents.items():
        kind, name = key
        file = folder.files.pop(key, None)
        if file is not None and kind == "flag" and file.project != stored.projects[name]:
            file.path.unlink()  # moved to another project
            file = None
        if file is None:
            if kind != "flag" and not document.get("project") and key not in stored.used:
                continue
            write_new(_free_path(folder, kind, name, stored, suffix), document, kind)
            counts["written"] += 1
        elif is_same(file.document, document):
            counts["the same"] += 1
        else:
            rewrite(file.path, document)
            counts["changed"] += 1
    for file in folder.files.values():
        if file.kind == "flag" or folder.is_shared or file.document.get("project"):
            file.path.unlink()
            counts["removed"] += 1
    return counts


def _free_path(folder: Folder, kind: str, name: str, stored: Stored, suffix: str) -> Path:
    """A free path: segment and field names may have any character, and file systems may ignore case."""
    safe = (
        "".join(c if c.isascii() and (c.isalnum() or c in "-._") else "-" for c in name).lstrip(".")[:100]
        or "-"
    )
    parent = folder.root / FOLDERS[kind]
    if kind == "flag":
        parent /= stored.projects[name]
    path, number = parent / f"{safe}{suffix}", 1
    while path.exists():
        number += 1
        path = parent / f"{safe}-{number}{suffix}"
    return path


# Plan and apply --------------------------------------------------------------------------------------------


def plan(options: Namespace) -> int:
    try:
        server = connect(options.url, options.token)
        differences = _compare(server, options)
        answer = differences.post(server, "plan") if differences else NOTHING
    except BadFiles as error:
        if options.junit:
            _write(options.junit, write_junit(None, error.problems))
        raise
    missing = [] if options.archive_missing else differences.missing
    _print(answer, missing, is_plan=True)
    if options.out:
        _write(options.out, json.dumps({"fingerprint": answer["fingerprint"]}) + "\n")
    if options.junit:
        _write(options.junit, write_junit(answer, ()))
    if options.markdown:
        _write(options.markdown, "\n".join(write_markdown(answer, missing)) + "\n")
    return CHANGES if has_work(answer) else 0


def has_work(answer: dict[str, Any]) -> bool:
    return bool(answer["changes"]) or any(entry["isNew"] for entry in answer["changeRequests"])


def apply(options: Namespace) -> int:
    server = connect(options.url, options.token)
    differences = _compare(server, options)
    if not differences:
        _print(NOTHING, differences.missing, is_plan=False)
        return 0
    if options.plan:
        fingerprint = _read_plan(options.plan)
    else:
        fingerprint = differences.post(server, "plan")["fingerprint"]
    answer = differences.post(server, "apply", fingerprint=fingerprint)
    _print(answer, [] if options.archive_missing else differences.missing, is_plan=False)
    return 0


def _compare(server: Server, options: Namespace) -> Differences:
    folder = open_folder(options.directory)
    with ThreadPoolExecutor(1) as thread:  # the server takes about as long as reading the files
        stored = thread.submit(read_stored, server, folder.projects, shared=folder.is_shared)
        read_files(folder)
    return find_differences(
        folder,
        stored.result(),
        archives=options.archive_missing,
        skips_requests=options.skip_change_requests,
        comment=getattr(options, "comment", ""),
    )


def _read_plan(path: Path) -> str:
    try:
        fingerprint = json.loads(path.read_bytes())["fingerprint"]
    except (OSError, ValueError, TypeError, KeyError):
        raise ClientError(f"{path} is no plan: `flagadmin plan --out` writes one.") from None
    return str(fingerprint) or "nothing to do"


def _print(answer: dict[str, Any], missing: list[tuple[str, str]], *, is_plan: bool) -> None:
    for line in write_text(answer, missing, is_plan=is_plan):
        print(drop_controls(line))
    number = len({(line["kind"], line["name"]) for line in answer["changes"]})
    if not has_work(answer):
        print("Nothing to do.")
    else:
        print(f"{number:,} to change. Nothing was written." if is_plan else f"{number:,} changed.")


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ClientError(f"Cannot write {path}: {error.strerror}") from None
