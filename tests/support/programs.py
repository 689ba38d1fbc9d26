"""Programs of other packages that tests run: nginx, Prometheus, promtool, PgBouncer, systemd-analyze, node, Helm, Patroni, etcd."""

import os
import shutil

import pytest


def program(name: str, package: str = "", *, target: str = "programs") -> str:
    """The path of a program. Skips the test without it; with FLAGADMIN_PROGRAMS=required, fails it.

    ``package`` is Debian's, for a program that make does not install; ``target`` is make's, for one that it does.
    """
    # Debian's administrators' programs are in sbin, which may not be in the path of others.
    program_path = shutil.which(name, path=os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin"]))
    if program_path is None:
        command = f"apt-get install {package}" if package else f"make {target}"
        reason = f"{name} is not installed, nothing was tried with it. `{command}` installs it."
        if os.environ.get("FLAGADMIN_PROGRAMS") == "required":
            pytest.fail(reason)
        pytest.skip(reason)
    return program_path
