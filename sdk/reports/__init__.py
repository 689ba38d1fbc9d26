"""Stores the usage that SDKs report.

`api.py` parses the body with pydantic. `batcher.py` writes the reports that arrive during one
commit together in the next, and answers 202 after that commit. `projects/applications/store_report.py` stores them;
triggers update the list of applications and the flags' lifecycle stages. `projects/applications/store_report.py`
stores the names of flags that do not exist. `projects/applications/cleanup.py` sums hourly counts older than two days
into daily totals.
"""
