"""プロセスの境を渡る形。許した型の値だけを JSON に写す（pickle は使わない）。"""

import base64
import binascii
import dataclasses
import hashlib
import json
import math
import os
import select
import struct
import time
from typing import Any

import numpy as np

DTYPES = frozenset(
    ["|b1", "|i1", "|u1", "<i2", "<i4", "<i8", "<u2", "<u4", "<u8", "<f2", "<f4", "<f8"]
)
MAX_FRAME = 16 << 20
MAX_ARRAY = 4 << 20
MAX_DEPTH = 5
MAX_ITEMS = 64
MAX_TEXT = 2000


class WireError(Exception):
    """届いたものが約束の形をしていない。"""


@dataclasses.dataclass(frozen=True)
class Item:
    """境を渡ってきた値。kind は型の名前、data は配列・数・文字列・Item の組。"""

    kind: str
    data: Any = None


def encode(value: Any, depth: int = 0) -> dict:
    """値を JSON にできる形にする。許していない型は名前だけを送る。"""
    kind = type(value).__name__
    if value is None or type(value) in (bool, str):
        return {"k": kind, "v": value[:MAX_TEXT] if kind == "str" else value}
    if type(value) in (int, float):
        return {"k": kind, "v": repr(value)[:MAX_TEXT]}
    if type(value) in (tuple, list) and depth < MAX_DEPTH and len(value) <= MAX_ITEMS:
        return {"k": kind, "v": [encode(x, depth + 1) for x in value]}
    if hasattr(value, "detach") and hasattr(value, "cpu"):
        return _encode_array(value.detach().cpu().numpy(), "Tensor")
    if isinstance(value, np.ndarray | np.generic):
        return _encode_array(np.asarray(value), "ndarray")
    return {"k": "other", "v": kind[:80]}


def _encode_array(array: np.ndarray, kind: str) -> dict:
    dtype = array.dtype.str.replace(">", "<")
    if dtype not in DTYPES or array.nbytes > MAX_ARRAY:
        return {"k": "other", "v": f"{kind}（{array.dtype}, {array.shape}）"}
    data = base64.b64encode(np.ascontiguousarray(array, dtype).tobytes()).decode()
    return {"k": kind, "dtype": dtype, "shape": list(array.shape), "v": data}


def mark(value: Any) -> str:
    """値の指紋。型、形、中身が同じなら同じ。"""
    digest, kind = hashlib.blake2b(digest_size=16), type(value).__name__
    if hasattr(value, "detach") and hasattr(value, "cpu"):
        kind, value = "Tensor", value.detach().cpu().numpy()
    if isinstance(value, np.ndarray):
        digest.update(f"{kind}{value.dtype.str}{value.shape}".encode())
        digest.update(np.ascontiguousarray(value))
    else:
        digest.update(json.dumps(encode(value)).encode())
    return digest.hexdigest()


def decode(tree: Any, depth: int = 0) -> Item:
    """encode の逆。信用できない側から届いた JSON を調べながら読む。"""
    try:
        return _decode(tree, depth)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise WireError(f"読めない値：{type(error).__name__}") from error


def _decode(tree: Any, depth: int) -> Item:
    kind, value = tree["k"], tree["v"]
    if depth > MAX_DEPTH:
        raise WireError("深すぎる値")
    if kind == "NoneType":
        return Item(kind)
    if kind == "bool":
        return Item(kind, bool(value))
    if kind == "int":
        return Item(kind, int(value))
    if kind == "float":
        return Item(kind, float(value))
    if kind in ("str", "other"):
        return Item(kind, str(value)[:MAX_TEXT])
    if kind in ("tuple", "list"):
        return Item(kind, tuple(_decode(x, depth + 1) for x in value[:MAX_ITEMS]))
    if kind in ("Tensor", "ndarray"):
        return Item(kind, _decode_array(tree))
    raise WireError("知らない型")


def _decode_array(tree: dict) -> np.ndarray:
    shape = tuple(map(int, tree["shape"]))
    if tree["dtype"] not in DTYPES or len(shape) > 8 or min(shape, default=0) < 0:
        raise WireError("許していない配列")
    data = binascii.a2b_base64(tree["v"], strict_mode=True)
    dtype = np.dtype(tree["dtype"])
    if math.prod(shape) * dtype.itemsize != len(data) or len(data) > MAX_ARRAY:
        raise WireError("配列の大きさが合わない")
    return np.frombuffer(data, dtype).reshape(shape).copy()


def restore(item: Item) -> Any:
    """学生の側で使う値に戻す。配列は Tensor になる。"""
    if item.kind in ("tuple", "list"):
        return tuple(restore(x) for x in item.data)
    if item.kind == "Tensor":
        import torch

        return torch.from_numpy(item.data.copy())
    return item.data


def same(a: Item, b: Item) -> bool:
    """型も形も値も同じか（NaN どうしは同じとみなす）。"""
    if a.kind != b.kind:
        return False
    if isinstance(a.data, np.ndarray):
        return a.data.dtype == b.data.dtype and np.array_equal(
            a.data, b.data, equal_nan=a.data.dtype.kind == "f"
        )
    if isinstance(a.data, tuple):
        return len(a.data) == len(b.data) and all(map(same, a.data, b.data))
    return a.data == b.data or (a.data != a.data and b.data != b.data)


def frame(message: dict) -> bytes:
    """長さを前に付けた JSON。"""
    data = json.dumps(message).encode()
    return struct.pack(">I", len(data)) + data


def send(fd: int, message: dict) -> None:
    """JSON を一つ書く。"""
    write(fd, frame(message))


def write(fd: int, data: bytes, deadline: float | None = None) -> None:
    """すべて書く。期限があるなら、fd は待たない口。TimeoutError：期限までに受け取られない。"""
    while data:
        if deadline is not None:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([], [fd], [], left)[1]:
                raise TimeoutError
        data = data[os.write(fd, data) :]


def receive(fd: int, deadline: float | None = None) -> dict:
    """JSON を一つ読む。TimeoutError：期限切れ、EOFError：相手が終わった、WireError：形が違う。"""
    size = struct.unpack(">I", _read(fd, 4, deadline))[0]
    if size > MAX_FRAME:
        raise WireError("長すぎる知らせ")
    try:
        message = json.loads(_read(fd, size, deadline))
    except (ValueError, RecursionError) as error:
        raise WireError("JSON ではない") from error
    if not isinstance(message, dict):
        raise WireError("知らせの形が違う")
    return message


def _read(fd: int, size: int, deadline: float | None) -> bytes:
    data = bytearray()
    while len(data) < size:
        if deadline is not None:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([fd], [], [], left)[0]:
                raise TimeoutError
        chunk = os.read(fd, min(1 << 20, size - len(data)))
        if not chunk:
            raise EOFError
        data += chunk
    return bytes(data)
