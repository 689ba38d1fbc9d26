"""A small process that stops the bundled PostgreSQL server if the last process using it is killed.

Started as `python -m flagadmin.core.db.bundled.guard DATA_DIR`.
"""

import sys
from pathlib import Path

from flagadmin.core.db.bundled.cluster import Cluster, stop_when_unused

if __name__ == "__main__":
    stop_when_unused(Cluster(Path(sys.argv[1]), durable=True))
