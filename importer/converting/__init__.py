"""Converts flags of other products into an export document.

`files.py` reads JSON, YAML or TOML, and `convert.py` recognizes the product. A module for each product (such as
`flagd.py`) validates the file with its own schema and creates the flags of `flags.py`: ordered rules, the first
matching one of which decides. `conditions.py` turns conditions into alternatives of constraints, `strategies.py`
turns rules into strategies, and `convert.py` makes the export document. A flag that cannot be converted exactly
raises `Unsupported` with a sentence, which becomes its note. `strategies.py` has the choices for percentages.
`changes.py` compares the converted flags with the users selected by the source's own hash, as segments.
"""
