"""The line of time on a flag's page: for how many users it was on, is on, and will be on, in each environment.

``past`` reads the versions of the flag and its parents, ``ahead`` its release plans and requests, ``draw`` turns both
into positions, and ``view`` unites them for the template.
"""
