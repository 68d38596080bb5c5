"""How the notebook and its worker talk: frames of JSON and bytes; arrays as npy, never as pickles."""

from __future__ import annotations

import io
import json
import struct
from typing import Any, BinaryIO

import numpy as np

from transformer_lite.practice.running import Outcome

_HEAD = struct.Struct("<QQ")
RESULT_ALLOWED = 2**28  # bytes of one message from the worker: more than eight of the largest arrays that it keeps


def write_frame(stream: BinaryIO, header: dict[str, Any], body: bytes = b"") -> None:
    """Write one message: lengths, JSON, bytes."""
    head = json.dumps(header).encode()
    stream.write(_HEAD.pack(len(head), len(body)) + head + body)
    stream.flush()


def read_frame(stream: BinaryIO, allowed: int | None = None) -> tuple[dict[str, Any], bytes] | None:
    """Read one message, or None at the end of the stream.

    Raises:
        ValueError: this is no message (somebody else wrote into the stream), or it is longer than ``allowed``.
    """
    lengths = _read(stream, _HEAD.size)
    if lengths is None:
        return None
    head_size, body_size = _HEAD.unpack(lengths)
    if allowed is not None and head_size + body_size > allowed:
        raise ValueError(f"a message of {head_size + body_size} bytes.")
    head, body = _read(stream, head_size), _read(stream, body_size)
    return None if head is None or body is None else (json.loads(head), body)


def _read(stream: BinaryIO, size: int) -> bytes | None:
    data = stream.read(size) if size else b""
    return data if data is not None and len(data) == size else None


def pack(outcome: Outcome) -> tuple[dict[str, Any], bytes]:
    """An outcome as a header and the npy bytes of its arrays, one after the other."""
    body = io.BytesIO()
    sizes: list[int] = []
    for value in outcome.values:
        start = body.tell()
        if value.array is not None:
            np.save(body, value.array, allow_pickle=False)
        sizes.append(body.tell() - start)
    return {"outcome": outcome.to_json(), "sizes": sizes}, body.getvalue()


def unpack(header: dict[str, Any], body: bytes) -> Outcome:
    """The way back from `pack`."""
    arrays, start = [], 0
    for size in header["sizes"]:
        arrays.append(np.load(io.BytesIO(body[start : start + size]), allow_pickle=False) if size else None)
        start += size
    return Outcome.from_json(header["outcome"], iter(arrays))
