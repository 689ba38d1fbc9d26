"""Archives that somebody else made, given to `restore`: refused, or restored, and nothing else happens."""

import gzip
import io
import os
import random
import subprocess
import tarfile
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

from flagadmin.core.db.backups.backup import MARK
from tests.attack.calls import Call, Verdict
from tests.attack.installation import Installation, installation
from tests.attack.result import Result

COMMIT = "after COMMIT"
FLIPS = 6  # archives in which some bytes are others
UNLABELED = "unlabeled"
BACK_WITHIN = 10.0  # seconds, after tables were missing


def packed(good: bytes) -> Iterator[tuple[str, bytes]]:
    """What is no archive of pg_dump, or only a part of one."""
    yield "nothing", b""
    yield "five letters", b"PGDMP"
    yield "noise", b"PGDMP" + random.Random(1).randbytes(50_000)
    yield "half", good[: len(good) // 2]
    yield "all but the end", good[:-200]
    yield "SQL", b"\\! touch canary\nDROP TABLE groups_user CASCADE;\n"
    yield "gzip", gzip.compress(good)
    yield "a bomb of gzip", gzip.compress(b"\0" * 50_000_000)
    yield "another version", good[:5] + b"\x7f\x7f\x7f" + good[8:]
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr("../../canary", "x")
    yield "a zip that leaves its folder", made.getvalue()
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as tar:
        tar.addfile(tarfile.TarInfo("../../canary"))
    yield "a tar that leaves its folder", made.getvalue()


def patched(good: bytes, canary: Path) -> Iterator[tuple[str, bytes]]:
    """Archives of which a statement is another one of the same length: pg_restore passes it on as it is.

    They have no label: its checksum protects against accidents only.
    """
    good = good[: good.rindex(MARK)]
    start = good.index(b"CREATE FUNCTION public.")
    length = int.from_bytes(good[start - 4 : start], "little")
    for name, statement in {
        "a command of psql": f"SELECT 1;\n\\! touch {canary}\n",
        f"a command of psql {COMMIT}": f"COMMIT;\n\\! touch {canary}\n",
        "an output into a program": f"SELECT 1 \\g |touch {canary}\n",
        "an output into a file": f"SELECT 1;\n\\o {canary}\nSELECT 1;",
        "COPY to a program": f"COPY (SELECT 1) TO PROGRAM 'touch {canary}';",
        "COPY to a file": f"COPY (SELECT 1) TO '{canary}';",
        "another's rights": "ALTER ROLE CURRENT_USER SUPERUSER;",
        "a large object of a file": "SELECT lo_import('/etc/passwd');",
    }.items():
        own = statement.encode()
        if len(own) <= length:
            yield name, good[:start] + own + b" " * (length - len(own)) + good[start + length :]


def flipped(good: bytes, seed: int) -> Iterator[tuple[str, bytes]]:
    """Without a label, nothing tells that PostgreSQL restores something else."""
    chosen = random.Random(seed)
    for archive, name in ((good, "labeled"), (good[: good.rindex(MARK)], UNLABELED)):
        for number in range(FLIPS):
            data = bytearray(archive)
            for _ in range(chosen.choice((1, 5, 50))):
                data[chosen.randrange(5, len(data))] ^= chosen.randrange(1, 256)
            yield f"{name} {number}", bytes(data)


def attacks(seed: int, manage: Callable[..., subprocess.CompletedProcess]) -> Iterator[Result]:
    with installation(workers=1) as target:
        yield restored(target, seed, manage)


def restored(target: Installation, seed: int, manage: Callable[..., subprocess.CompletedProcess]) -> Result:
    verdict, file = Verdict(target), target.folder / "foreign.backup"
    canary, refused = target.folder / "canary", 0
    manage(target, "backup", str(file)).check_returncode()
    good = file.read_bytes()
    flags = Call("admin", "GET", "/api/admin/search/features?limit=100")
    _, before = verdict.send(flags)
    for name, data in (*packed(good), *patched(good, canary), *flipped(good, seed)):
        file.write_bytes(data)
        done = manage(target, "restore", str(file), "--force")
        said = (done.stdout + done.stderr).decode(errors="replace")
        refused += done.returncode != 0
        if "Traceback" in said or (done.returncode and not said.strip()):
            verdict.fault(f"{name}: {said.strip()[-300:]}")
        if canary.exists() or Path("canary").exists():
            verdict.fault(f"{name}: a file was made")
            canary.unlink(missing_ok=True)
        if name.startswith("labeled") and not done.returncode:
            verdict.fault(f"{name}: taken")
        is_other = name.startswith(UNLABELED) and not done.returncode
        if is_other or verdict.send(flags)[1] != before:
            told = "refused, but something changed" if done.returncode else "restored something else"
            # PostgreSQL obeys a COMMIT: all that can be done is to say so.
            said_so = COMMIT in name and "a part of it was restored" in said
            if not said_so and not is_other:
                verdict.fault(f"{name}: {told}: {said.strip()[-200:]}")
            file.write_bytes(good)
            manage(target, "restore", str(file), "--force").check_returncode()
            if not any(verdict.send(flags)[1] == before for _ in until(BACK_WITHIN)):
                verdict.fault(f"{name}: the server has not come back")
    for place in (target.folder, target.folder / "none", Path(os.devnull)):
        done = manage(target, "restore", str(place), "--force")
        if not done.returncode or b"Traceback" in done.stderr:
            verdict.fault(f"{place}: {done.stderr[-200:]!r}")
    return verdict.result("archives of others", f"{refused} refused")


def until(seconds: float) -> Iterator[None]:
    """Yields at once, and again and again as long as there is time."""
    end = time.monotonic() + seconds
    yield
    while time.monotonic() < end:
        time.sleep(0.2)
        yield
