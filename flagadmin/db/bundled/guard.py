"""A small process beside the server that stops it when its last user was killed.

Started as `python -m flagadmin.db.bundled.guard DATA_DIR`.
"""

import sys
from pathlib import Path

from flagadmin.db.bundled.cluster import Cluster
from flagadmin.db.bundled.users import stop_when_unused

if __name__ == "__main__":
    stop_when_unused(Cluster(Path(sys.argv[1]), durable=True))
