"""Events of a chat stream that hold no content."""

import json

DONE = b"data: [DONE]\n\n"


def usage(**counts: object) -> bytes:
    return f"data: {json.dumps({'choices': [], 'usage': counts})}\n\n".encode()
