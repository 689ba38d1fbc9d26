"""Keys that sign the tokens of tests."""

from typing import Any

import jwt


def public(key: Any, **more: Any) -> dict[str, Any]:
    """The public half as a JSON Web Key with the id "one"."""
    return jwt.algorithms.ECAlgorithm.to_jwk(key.public_key(), as_dict=True) | {"kid": "one"} | more
