"""Why? A flag's answer for one user in one environment: the path to it, when it was and will be another, and what would
turn the flag on.

``path`` puts the explanation of the engine in order, ``when`` evaluates versions, release plans and scheduled requests.
"""
