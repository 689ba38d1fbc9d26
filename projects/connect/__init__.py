"""Helps connect SDKs: programs to paste, and the latest refused request.

`NotesRefusals` (`sdk/base.py`), a base of all views of SDKs, notes every 401 and 403 in `queries.py`: in memory, at
most 20 different ones a second, and only the scope and the last four characters of the token. The event loop stores
them once a second, at most 200 rows of the last quarter of an hour. The page *Connect an SDK* shows the latest one to
people who may create tokens. Its programs are the blocks of `docs/sdk-languages.md` and `docs/openfeature.md`.
"""
