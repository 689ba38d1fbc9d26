"""Outcomes: who had which flag at the time of something that happened, from the past instead of from a log.

`table.py` reads rows of context fields with a time, `history.py` all that flags have been, `assign.py` evaluates the
rows with the states that were valid, in batch; `partial.py` finds what cannot be known because the table lacks a field.
"""
