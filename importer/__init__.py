"""Imports and exports flags.

`body/` reads the bytes with pydantic; `schema_errors.py` turns its errors into problems with JSON paths. `plan/`
compares the body with the database in a fixed number of queries and determines the changes of each flag; it only reads.
Preview, `validate` and import use the same plan. `runs.py` makes the import and rolls it back to find refusals by the
whole project. `apply/` locks the project, plans again, compares the plan's fingerprint with the confirmed one, and
writes all rows and events in one transaction. `apply/undo.py` undoes an import while nothing that it wrote has changed.
`states.py` compiles the planned flags on top of the stored ones, and `effects.py` compares both. `bulk_work.py` handles
bodies larger than `FLAGADMIN_IMPORT_PROCESS_BYTES` in a separate process.

`promotion.py` promotes flags by an import whose body it reads from another environment of the project, when it is
planned and again once the project is locked.
"""
