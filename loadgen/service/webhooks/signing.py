"""Signatures as Standard Webhooks has them: HMAC-SHA256 over id, time and body."""

import base64
import binascii
import hmac
from hashlib import sha256

from loadgen.core.errors import ConfigError

_PREFIX = "whsec_"
_FEWEST_BYTES = 24


def secret_bytes(text: str) -> bytes:
    """The secret that `whsec_<base64>` stands for. Raises ConfigError."""
    try:
        secret = base64.b64decode(text.removeprefix(_PREFIX), validate=True)
    except (binascii.Error, ValueError):
        secret = b""
    if len(secret) < _FEWEST_BYTES:
        raise ConfigError(f"expected whsec_ and at least {_FEWEST_BYTES} bytes in base64")
    return secret


def signed_headers(secret: bytes, message_id: str, at_unix_s: int, body: bytes) -> dict[str, str]:
    """The headers by which a receiver knows that a message is from here, of now, and as it was sent."""
    signed = b".".join((message_id.encode(), str(at_unix_s).encode(), body))
    signature = base64.b64encode(hmac.new(secret, signed, sha256).digest()).decode()
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(at_unix_s),
        "webhook-signature": f"v1,{signature}",
    }
