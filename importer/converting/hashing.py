"""A hash of other products that no library has."""

FNV_BASIS, FNV_PRIME = 0x811C9DC5, 0x01000193


def hash_fnv1a_32(text: str, *, encoding: str = "utf-16-le") -> int:
    """FNV-1a of the UTF-16 code units of a text, as JavaScript has them; or of its bytes in another encoding."""
    data = text.encode(encoding, "surrogatepass")
    units = memoryview(data).cast("H") if encoding == "utf-16-le" else data
    value = FNV_BASIS
    for unit in units:
        value = ((value ^ unit) * FNV_PRIME) & 0xFFFFFFFF
    return value
