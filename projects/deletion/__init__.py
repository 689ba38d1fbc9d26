"""Deletes projects.

`plan.py` finds what blocks a deletion (active flags, the default project, dependent flags in other projects), and lists
the losses. API, console and admin site use both. `execute.py` locks the project row exclusively, checks the blockers
again, and deletes table by table in one transaction with the audit event. A token for several projects keeps the
others; it never gains access.
"""
