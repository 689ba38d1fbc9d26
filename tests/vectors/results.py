"""Writes the expected results in ``tests/vectors/engine`` and ``hashes.jsonl`` anew, as Yggdrasil gives them.

``python -m tests.vectors.results``, after adding flags or cases: a new case needs ``case`` and ``context`` only, a new
hash ``group`` and ``identifier``.
"""

from typing import Any

from tests.support.cases import Case, sdk_results, state_of
from tests.support.hashes import sdk_places
from tests.support.vectors import FOLDER, read_rows, write_rows


def main() -> None:
    hashes = FOLDER / "hashes.jsonl"
    write_rows(hashes, [hashed(line["group"], line["identifier"]) for line in read_rows(hashes)])
    for path in sorted((FOLDER / "engine").glob("*.jsonl")):
        lines = read_rows(path)
        asked = [line for line in lines if "case" in line]
        cases = [Case(line["case"], line["context"], None, None) for line in asked]
        found = sdk_results(state_of(lines), cases)
        for line, (enabled, variant) in zip(asked, found, strict=True):
            line |= {"enabled": enabled, "variant": variant}
        write_rows(path, lines)


def hashed(group: str, identifier: str) -> dict[str, Any]:
    bucket, place = sdk_places(group, identifier)
    return {"group": group, "identifier": identifier, "bucket": bucket, "place": place}


if __name__ == "__main__":
    main()
