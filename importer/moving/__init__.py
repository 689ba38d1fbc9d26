"""Moves an installation of Unleash to flagadmin.

`reading/` asks the other server, bounded in time, size and number, and reads everything before anything is written.
`writing/move.py` writes everything in one transaction, through the actions of each subject and through imports; a plan
is the same work, rolled back. Integrations are created through a hook (`created_integration.py`), because their app is
above this one. `writing/keeping.py` finds edits made here since the last move in the audit log, and preserves them.

`proving/` reads SDK answers from both servers and compares them; it evaluates flags whose definitions differ.
`run.py` repeats all of this. The console runs it in a thread of the worker that got the request (`run.py`), because
only this worker's memory has the token. `back.py` writes exports to the other server.
"""
