"""The way back from the present through audit events, as it was when versions were introduced.

Only `backfill_versions` uses it, to store versions of the time before the upgrade to 1.4.0. It stays as it is, and goes
once no release without versions can be upgraded.
"""
