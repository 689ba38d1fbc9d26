"""Compares two sets of flags in files, of any product: what differs, and for whom. Needs no database and no server.

`compare.py` reads a file or directory into a `Side`, `terraform.py` both sides of a plan, and `compare.py` finds the
differences and counts users.
"""
