"""flagadmin references: finds the names of flags in code, and reports the places to the server.

flagadmin stale: flags that can be removed, each with its proof.
"""

import json
import os
import re
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pathspec import GitIgnoreSpec

from flagadmin.client.report import drop_controls
from flagadmin.client.server import ClientError, connect

URL = "/api/admin/code-references"
MAX_FILE = 1_000_000  # bytes; a larger file is machine-made
MAX_FILES = 1_000_000
MAX_PLACES = 1_000  # per flag
MAX_PATH = 500
HEAD = 8_192  # bytes within which a binary file has a NUL
IGNORED = (".git", ".hg", ".svn", "node_modules", ".venv", "__pycache__")
_WORD = re.compile(rb"[\w.~-]+")
Places = dict[str, list[dict[str, str | int]]]


def add_references(parser: ArgumentParser) -> None:
    parser.add_argument("directory", type=Path, help="the root of a repository")
    parser.add_argument("--repository", help="its name, such as shop/web; default: the name of the directory")
    parser.add_argument("--revision", default="", help="the commit, for links")
    parser.add_argument(
        "--link", default="", help="the address of a place: https://…/blob/{revision}/{path}#L{line}"
    )
    parser.add_argument("--dry-run", action="store_true", help="print the places, and report nothing")


def report_references(options: Namespace) -> int:
    root: Path = options.directory
    if not root.is_dir():
        raise ClientError(f"{root} is no directory.")
    server = connect(options.url, options.token)
    names = set(server.get(URL)["flags"])
    places, files = find_references(root, names)
    if options.dry_run:
        for name in sorted(places):
            for place in places[name]:
                print(drop_controls(f"{place['path']}:{place['line']}: {name}"))
    else:
        body = {
            "repository": options.repository or root.resolve().name,
            "revision": options.revision,
            "link": options.link,
            "references": [{"flag": name, "places": places[name]} for name in sorted(places)],
        }
        server.post(URL, body)
    verb = "Found" if options.dry_run else "Reported"
    print(f"{verb} {len(places):,} of {len(names):,} flags in {files:,} files.")
    return 0


def find_references(root: Path, names: set[str]) -> tuple[Places, int]:
    """The places of each flag found, and the number of files read. A place is a line."""
    names_by_bytes = {name.encode(): name for name in names}
    places: Places = {}
    files = 0
    for path in list_files(root):
        files += 1
        if files > MAX_FILES:
            raise ClientError(f"{root} has more than {MAX_FILES:,} files.")
        content = _read(path)
        for number, line in enumerate(content.split(b"\n"), 1):
            for name in _find_names(line, names_by_bytes):
                places_of_name = places.setdefault(name, [])
                if len(places_of_name) < MAX_PLACES:
                    places_of_name.append(
                        {"path": path.relative_to(root).as_posix()[:MAX_PATH], "line": number}
                    )
    return places, files


def _find_names(line: bytes, names_by_bytes: dict[bytes, str]) -> set[str]:
    """Names that stand alone or between dots: `old-checkout-redesign` does not contain `checkout-redesign`."""
    names = set()
    for word in _WORD.findall(line):
        for part in (word, word.strip(b"."), *word.split(b".")):
            if part in names_by_bytes:
                names.add(names_by_bytes[part])
    return names


def list_files(root: Path) -> Iterator[Path]:
    """All files except those ignored by .gitignore files in the tree, and those of version control. Skips links."""
    yield from _walk(root, [])


def _walk(folder: Path, above: list[tuple[Path, GitIgnoreSpec]]) -> Iterator[Path]:
    rules = list(above)
    ignore = folder / ".gitignore"
    if ignore.is_file():
        rules.append((folder, GitIgnoreSpec.from_lines(_read(ignore).decode(errors="replace").splitlines())))
    with os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda each: each.name):
            is_folder = entry.is_dir(follow_symlinks=False)
            if entry.is_symlink() or (is_folder and entry.name in IGNORED):
                continue
            path = Path(entry.path)
            if _is_ignored(path, rules, is_folder=is_folder):
                continue
            if is_folder:
                yield from _walk(path, rules)
            elif entry.is_file():
                yield path


def _is_ignored(path: Path, rules: list[tuple[Path, GitIgnoreSpec]], *, is_folder: bool) -> bool:
    """As in Git, the nearest .gitignore with a rule for the path decides."""
    for folder, spec in reversed(rules):
        ignored = spec.check_file(f"{path.relative_to(folder).as_posix()}{'/' if is_folder else ''}").include
        if ignored is not None:
            return ignored
    return False


def _read(path: Path) -> bytes:
    """Reads a file; empty if it is not text, too large or unreadable."""
    try:
        if path.stat().st_size > MAX_FILE:
            return b""
        content = path.read_bytes()
    except OSError:
        return b""
    return b"" if b"\0" in content[:HEAD] else content


PAGE = 50
MAX_FLAGS = 10_000


def add_stale(parser: ArgumentParser) -> None:
    parser.add_argument("--project", help="only flags of this project")
    parser.add_argument("--all", action="store_true", help="also flags that have to stay for now")
    parser.add_argument("--json", action="store_true", help="print all that is known, as JSON")
    parser.add_argument(
        "--tasks", action="store_true", help="print a task for each flag, for a ticket or an agent"
    )


def list_stale(options: Namespace) -> int:
    server = connect(options.url, options.token)
    flags: list[dict[str, Any]] = []
    query = [("project", options.project)] if options.project else []
    for offset in range(0, MAX_FLAGS, PAGE):
        answer = server.get("/api/admin/stale-flags", [*query, ("limit", str(PAGE)), ("offset", str(offset))])
        flags += answer["flags"]
        if len(flags) >= answer["total"] or not answer["flags"]:
            break
    listed = [flag for flag in flags if options.all or flag["canLeaveTheCode"]]
    if options.json:
        print(json.dumps(listed, indent=2))
        return 0
    for flag in listed:
        for line in flag["task"].splitlines() if options.tasks else _describe(flag):
            print(drop_controls(line))
        print()
    number = sum(flag["canLeaveTheCode"] for flag in flags)
    print(f"{number:,} of {len(flags):,} flags that are past their time can leave the code.")
    return 0


def _describe(flag: dict[str, Any]) -> list[str]:
    keep, seen = flag["keep"], max(flag["lastEvaluated"].values(), default="never")
    lines = [f"{flag['name']} in {flag['project']}: {', '.join(flag['why'])}"]
    if keep and flag["canLeaveTheCode"]:
        lines.append(f"    keep: {keep['variant'] or ('on' if keep['isEnabled'] else 'off')}")
    gets = ", ".join(f"{name}: {words}" for name, words in flag["everybodyGets"].items())
    lines += [f"    everybody gets: {gets}", f"    not changed for {flag['unchangedDays']:,} days"]
    lines.append(f"    last evaluated: {seen}")
    if flag["dependents"]:
        lines.append(f"    depend on it: {', '.join(flag['dependents'][:10])}")
    return lines
