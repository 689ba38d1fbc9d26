"""Reads the files of flags as code, and finds the line of each problem.

Measures a YAML document before it is parsed: the number of its values, with each alias counted as its
target.
"""

import io
import json
import os
import re
from codecs import BOM_UTF8
from collections.abc import Iterator
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path
from typing import Any

import yaml
from yaml12 import parse_yaml

from flagadmin.client.server import BadFiles, Problem

Document = dict[str, Any]
SETTINGS = "flagadmin"
FOLDERS = {"flag": "flags", "segment": "segments", "context-field": "context-fields"}
SUFFIXES = (".yaml", ".yml", ".json")
MAX_FILE = 1_000_000  # bytes
MAX_FILES = 100_000
MAX_VALUES = 100_000
MAX_DEPTH = 100
_PLACE = re.compile(r"(?:YAML parse error: )?(.*) at byte \d+ line (\d+) column \d+", re.DOTALL)
_KEY = re.compile(r"^([ -]*)([\w.\"'-]+):(?:\s|$)")
_STEP = re.compile(r"[^.\[\]]+|\[\d+\]")


@dataclass(slots=True)
class File:
    """`kind` is a key of `FOLDERS`. `project` is the project of a flag's folder."""

    path: Path
    kind: str
    document: Document
    project: str = ""

    @property
    def name(self) -> str:
        return self.document["name"]

    @property
    def key(self) -> tuple[str, str]:
        return self.kind, self.name


@dataclass
class Folder:
    """The contents of a folder: the projects named in flagadmin.yaml, and all files by kind and name."""

    root: Path
    projects: list[str] = field(default_factory=list)
    is_shared: bool = True
    files: dict[tuple[str, str], File] = field(default_factory=dict)


def open_folder(root: Path, *, may_be_new: bool = False) -> Folder:
    """A folder with its settings, before its files are read. Raises BadFiles."""
    folder = Folder(root)
    if path := _find_settings(root):
        _read_settings(path, folder)
    elif not may_be_new:
        raise BadFiles([Problem(root / f"{SETTINGS}.yaml", 0, "is missing: `flagadmin pull` makes it")])
    return folder


def read_files(folder: Folder) -> None:
    """Reads all files. Raises BadFiles with the problems of all of them."""
    problems: list[Problem] = []
    for kind, path in _find_files(folder):
        file, wrong = _read_file(path, kind)
        problems += wrong
        if file is None:
            continue
        if file.project and folder.projects and file.project not in folder.projects:
            message = f"{SETTINGS}.yaml does not name project {file.project}"
            problems.append(Problem(path, 0, message))
        if (other := folder.files.get(file.key)) is not None:
            problems.append(Problem(path, 0, f"{file.name} is in {other.path}, too"))
        folder.files.setdefault(file.key, file)
    if problems:
        raise BadFiles(problems)


def _find_settings(root: Path) -> Path | None:
    return next((path for suffix in SUFFIXES if (path := root / f"{SETTINGS}{suffix}").is_file()), None)


def _read_settings(path: Path, folder: Folder) -> None:
    document = parse(path)
    projects, is_shared = document.get("projects"), document.get("shared", True)
    if not isinstance(projects, list) or not projects or not isinstance(is_shared, bool):
        message = "must have projects, a list of projects, and may have shared: true or false"
        raise BadFiles([Problem(path, 1, message)])
    if unknown := document.keys() - {"projects", "shared"}:
        raise BadFiles([Problem(path, find_line(path, min(unknown)), f"{min(unknown)} is not a valid key")])
    folder.projects, folder.is_shared = [str(project) for project in projects], is_shared


def _find_files(folder: Folder) -> Iterator[tuple[str, Path]]:
    root, number = folder.root, 0
    for kind, name in FOLDERS.items():
        parents = _list_projects(root / name, folder.projects) if kind == "flag" else [str(root / name)]
        for parent in parents:
            for entry in _list(parent):
                if entry.name.startswith(".") or not entry.name.endswith(SUFFIXES):
                    continue
                number += 1
                if number > MAX_FILES:
                    raise BadFiles([Problem(root, 0, f"has more than {MAX_FILES:,} files")])
                yield kind, Path(entry.path)


def _list_projects(folder: Path, projects: list[str]) -> list[str]:
    """The folders of projects. A folder with a leading dot belongs to another program, unless it is a named project."""
    return [
        entry.path
        for entry in _list(folder)
        if entry.is_dir() and (not entry.name.startswith(".") or entry.name in projects)
    ]


def _list(folder: str | Path) -> list[os.DirEntry[str]]:
    if not os.path.isdir(folder):
        return []
    with os.scandir(folder) as entries:
        return sorted(entries, key=attrgetter("path"))


def _read_file(path: Path, kind: str) -> tuple[File | None, list[Problem]]:
    try:
        document = parse(path)
    except BadFiles as error:
        return None, error.problems
    name = document.get("name")
    if not isinstance(name, str) or not name:
        message = "name: must be a string" if "name" in document else "name: is required"
        return None, [Problem(path, 1, message)]
    return File(path, kind, document, path.parent.name if kind == "flag" else ""), []


def parse(path: Path) -> Document:
    """The document in a file. Raises BadFiles."""
    try:
        if path.stat().st_size > MAX_FILE:
            raise BadFiles([Problem(path, 0, f"has more than {MAX_FILE:,} bytes")])
        text = read_text(path)
        document: Any = _parse_json(path, text) if path.suffix == ".json" else _parse_yaml(path, text)
    except json.JSONDecodeError as error:
        raise BadFiles([Problem(path, error.lineno, error.msg)]) from None
    except UnicodeDecodeError:
        raise BadFiles([Problem(path, 0, "is not UTF-8")]) from None
    except OSError as error:
        raise BadFiles([Problem(path, 0, error.strerror or "cannot be read")]) from None
    except RecursionError:
        raise BadFiles([_too_deep(path)]) from None
    if not isinstance(document, dict):
        raise BadFiles([Problem(path, 1, "must be a mapping of keys to values")])
    if _is_too_deep(document):
        raise BadFiles([_too_deep(path)])
    return document


def _parse_json(path: Path, text: str) -> Any:
    """Parses JSON. Raises BadFiles for a duplicate key."""

    def make(pairs: list[tuple[str, Any]]) -> Document:
        document = dict(pairs)
        if len(document) < len(pairs):
            load_with_comments(
                path, text.expandtabs()
            )  # raises with the line, unless it cannot read the file
            raise BadFiles([Problem(path, 1, "has a key twice in one object")])
        return document

    return json.loads(text, object_pairs_hook=make)


def _parse_yaml(path: Path, text: str) -> Any:
    """Parses YAML. Measures a file with aliases first, because the parser copies each target. Raises BadFiles."""
    try:
        if "*" in text and "&" in text:
            check_yaml(text, values=MAX_VALUES, depth=MAX_DEPTH)
        return parse_yaml(text)
    except TooLarge as error:
        raise BadFiles([Problem(path, error.line, str(error))]) from None
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise BadFiles([Problem(path, line, error.problem or "is not valid YAML")]) from None
    except ValueError as error:
        match = _PLACE.fullmatch(str(error))
        problem = Problem(path, int(match[2]), match[1]) if match else Problem(path, 1, str(error))
        raise BadFiles([problem]) from None


def _is_too_deep(document: Document) -> bool:
    level: list[Any] = [document]
    for _ in range(MAX_DEPTH):
        level = [value for each in level for value in (each.values() if isinstance(each, dict) else each)]
        level = [value for value in level if isinstance(value, dict | list)]
        if not level:
            return False
    return True


def _too_deep(path: Path) -> Problem:
    return Problem(path, 0, f"must be nested at most {MAX_DEPTH} levels deep")


def read_text(path: Path) -> str:
    return path.read_bytes().removeprefix(BOM_UTF8).decode()


def check_keys(path: Path) -> None:
    """Raises BadFiles for a duplicate key, of which `parse` takes the last."""
    text = read_text(path)
    if path.suffix != ".json" and _may_repeat_keys(text):
        load_with_comments(path, text)


def _may_repeat_keys(text: str) -> bool:
    """Whether a key may occur twice. Text in quotes can cause a false positive."""
    above: list[tuple[int, set[str]]] = []
    for line in text.splitlines():
        if (match := _KEY.match(line)) is None:
            continue
        depth, key = len(match[1]), match[2]
        while above and (above[-1][0] > depth):
            above.pop()
        if "-" in match[1] and above and above[-1][0] == depth:
            above.pop()
        if not above or above[-1][0] < depth:
            above.append((depth, set()))
        if key in above[-1][1]:
            return True
        above[-1][1].add(key)
    return False


def make_round_trip_parser() -> Any:
    """A parser that keeps comments, quotes and the order of keys. It is two hundred times slower than the other one."""
    from ruamel.yaml import YAML  # slow to import and rarely needed

    yaml = YAML()
    yaml.preserve_quotes = True
    yaml.width = 1_000_000
    yaml.indent(mapping=2, sequence=4, offset=2)
    return yaml


def load_with_comments(path: Path, text: str) -> Any:
    """Parses YAML with comments. Raises BadFiles, also for a duplicate key."""
    from ruamel.yaml.error import MarkedYAMLError

    try:
        return make_round_trip_parser().load(io.StringIO(text))
    except MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        message = (error.problem or str(error)).partition(" with value")[0]
        raise BadFiles([Problem(path, line, message)]) from None


def find_line(path: Path, location: str) -> int:
    """The line of a member such as ``environments.production.strategies[0].name``, or of its nearest parent."""
    try:
        node = load_with_comments(path, read_text(path))
    except (BadFiles, OSError):
        return 1
    line = 1
    for step in _STEP.findall(location):
        key: Any = int(step[1:-1]) if step.startswith("[") else step
        try:
            line = (node.lc.item(key) if isinstance(key, int) else node.lc.key(key))[0] + 1
            node = node[key]
        except (AttributeError, KeyError, IndexError, TypeError):
            break
    return line


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
