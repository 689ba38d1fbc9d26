"""JSON objects as Python reads them."""

from typing import Any

Document = dict[str, Any]
