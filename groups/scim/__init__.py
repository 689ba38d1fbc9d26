"""SCIM 2.0: identity providers create, change and deactivate people and groups.

`api.py` compares the token and imports `service.py` with the first request, unless `preload.py` has done so in an
installation that uses SCIM. It reads the body with scim2-models. `resources.py` converts accounts and groups to
resources, interprets their values and applies a PATCH to the members of a group. `filters.py` converts filters to query
conditions. `actions.py` calls the actions of people and groups as a caller named SCIM.
"""
