"""Request bodies, responses and errors over HTTP.

Each layer validates its own part. This one checks size, time, JSON syntax, depth and number of values
(`request_bodies.py`). DRF serializers check the shape of API bodies. pydantic checks imports and SDK reports, because
it is fast for 50,000 flags. django-filter checks query strings; lists with filters reject unknown parameters with 400.
`rules.py` of each subject checks everything else, for API, console, admin site and import. Database constraints hold
even if the code has a bug. `error_responses.py` turns exceptions into responses.
"""
