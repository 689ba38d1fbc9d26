"""The limit of open files, of which each connection takes one."""

import resource

OTHERS = 1_024  # of a worker: connections that are no streams, database, files


def raise_limit(wanted: int) -> None:
    """Raises this process's soft limit to ``wanted``, or as far as it may. Its workers inherit it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, allowed), hard))


def count_files_for_streams(wanted: int) -> int:
    """As many of the wanted streams as this process may have, besides everything else."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return wanted if soft == resource.RLIM_INFINITY else max(0, min(wanted, soft - OTHERS))
