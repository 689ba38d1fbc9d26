"""Tests over files that are no part of this repository: the client specification, and the full recordings.

They are collected only where the files are: in a folder ``shared`` beside the checkout, or in the one that
FLAGADMIN_SHARED names. They are an addition: the same rules are covered by ``tests/vectors``, and no other test reads
a file outside the repository. None of them skips.
"""

from tests.support.paths import SHARED

collect_ignore_glob = [] if SHARED.is_dir() else ["test_*.py"]
