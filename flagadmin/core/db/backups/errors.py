class BackupError(Exception):
    """A backup or restore failed. The message says what is wrong and what to do."""
