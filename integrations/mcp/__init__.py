"""Serves AI agents through the Model Context Protocol.

`api.py` authenticates the token and reads the message (`api.py`) in any supported revision. There are no sessions.
It finds the tool and validates its arguments with pydantic. A tool is a function beside its arguments
(`*_tools.py`), which calls the same queries and actions as pages and API, as the token's account. `tool.perform` runs
tools that write; a dry run is the same action, rolled back, with all its checks. Answers stay under 4 kB of JSON: long
lists and texts are cut.
"""
