"""Flags as code, on the server.

`flagadmin/client/` has the commands `pull`, `plan` and `apply`, which start without Django, read and write files, and
call this API. `documents.py` turns files into import bodies, one for each environment of each project. `actions.py`
runs them and the actions for segments and context fields in one transaction. A plan is the same work, rolled back;
applying compares its fingerprint. For an environment that needs a change request, `actions.py` derives one from its
part.
"""
