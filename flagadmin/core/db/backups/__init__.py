"""Backs up and restores the whole database: `backup.py`, `restore.py`, and the programs that both run."""
