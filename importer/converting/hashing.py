"""Hashes of other products that no library has, and what is hashed."""

FNV_BASIS, FNV_PRIME = 0x811C9DC5, 0x01000193


def hash_fnv1a_32(text: str, *, encoding: str = "utf-16-le") -> int:
    """FNV-1a of the UTF-16 code units of a text, as JavaScript has them; or of its bytes in another encoding."""
    data = text.encode(encoding, "surrogatepass")
    units = memoryview(data).cast("H") if encoding == "utf-16-le" else data
    value = FNV_BASIS
    for unit in units:
        value = ((value ^ unit) * FNV_PRIME) & 0xFFFFFFFF
    return value


def encode_cbor_texts(*texts: str, is_list: bool) -> bytes:
    """A text, or a list of texts, in canonical CBOR (RFC 8949)."""
    head = bytes([0x80 + len(texts)]) if is_list else b""
    return head + b"".join(map(_encode_cbor_text, texts))


def _encode_cbor_text(text: str) -> bytes:
    data = text.encode()
    size = len(data)
    if size < 24:
        return bytes([0x60 + size]) + data
    width = 1 if size < 256 else 2 if size < 65_536 else 4
    return bytes([{1: 0x78, 2: 0x79, 4: 0x7A}[width]]) + size.to_bytes(width, "big") + data
