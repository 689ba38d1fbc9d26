"""A small process beside the server that stops it when its last user was killed.

python -m flagadmin.embedded.guard DATA_DIR
"""

import sys
from pathlib import Path

from flagadmin.embedded.cluster import Cluster
from flagadmin.embedded.server import stop_if_unused, wait_until_unused


def main(data_dir: Path) -> None:
    cluster = Cluster(data_dir, durable=True)
    while cluster.is_listening():
        wait_until_unused(data_dir)
        stop_if_unused(cluster)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
