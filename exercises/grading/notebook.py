"""届いたバイト列を、セルの並びとして読む。文字コード、nbformat の版、道具の違いはここで消える。"""

import json
from dataclasses import dataclass, field
from typing import Any

MAX_BYTES = 20 << 20
MAX_CELLS = 10_000
MAX_SOURCE = 1 << 20
PICTURES = ("image/png", "image/jpeg")


class Unreadable(ValueError):
    """ノートブックとして読めない。言葉は学生に見せる。"""


@dataclass
class Cell:
    """提出されたセル。"""

    kind: str
    source: str
    grade_id: str = ""
    schema: int = 3
    attachments: dict = field(default_factory=dict)


def text(data: bytes) -> tuple[str, bool]:
    """文字列と、文字コードを推測したか。"""
    if len(data) > MAX_BYTES:
        raise Unreadable(f"ファイルが大きすぎます（上限は {MAX_BYTES >> 20} MB）。")
    if not data.strip():
        raise Unreadable("ファイルが空です。")
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return data.decode("utf-16", "replace"), False
    for codec, guessed in (("utf-8-sig", False), ("cp932", True), ("utf-16-le", True)):
        if codec == "utf-16-le" or b"\0" not in data[:4]:
            try:
                return data.decode(codec), guessed
            except UnicodeDecodeError:
                continue
    return data.decode("utf-8", "replace"), True


def document(data: bytes) -> tuple[dict, bool]:
    """JSON の辞書として読む。"""
    string, guessed = text(data)
    try:
        found = json.loads(string)
    except (ValueError, RecursionError, MemoryError) as error:
        page = string.lstrip()[:1] == "<"
        why = (
            "HTML のページです（ログインの画面などが保存されています）"
            if page
            else "途中で切れているか、壊れています"
        )
        raise Unreadable(f"ノートブックとして読めません。{why}。") from error
    if not isinstance(found, dict):
        raise Unreadable(
            "ノートブックとして読めません。JSON ですが、ノートブックの形ではありません。"
        )
    return found, guessed


def cells(found: dict) -> list[Cell]:
    """nbformat 3 と 4 のセルを、同じ形にする。"""
    raw = found.get("cells")
    if raw is None and isinstance(found.get("worksheets"), list):
        sheets = [s for s in found["worksheets"] if isinstance(s, dict)]
        raw = [
            c for s in sheets for c in (s.get("cells") if isinstance(s.get("cells"), list) else [])
        ]
    if not isinstance(raw, list):
        raise Unreadable("ノートブックにセルがありません。")
    if len(raw) > MAX_CELLS:
        raise Unreadable(f"セルが多すぎます（上限は {MAX_CELLS} 個）。")
    return [_cell(c) for c in raw if isinstance(c, dict)]


def _cell(raw: dict) -> Cell:
    kind = raw.get("cell_type")
    source = raw.get("input" if "source" not in raw else "source")
    if isinstance(source, list):
        source = "".join(s for s in source if isinstance(s, str))
    source = _clean(source) if isinstance(source, str) else ""
    meta = raw.get("metadata")
    mark = meta.get("nbgrader") if isinstance(meta, dict) else None
    mark = mark if isinstance(mark, dict) else {}
    name, schema = mark.get("grade_id"), mark.get("schema_version", 3)
    kind = "markdown" if kind == "heading" else kind
    return Cell(
        kind if kind in ("code", "markdown") else "raw",
        source[:MAX_SOURCE],
        name if isinstance(name, str) else "",
        schema if isinstance(schema, int) else 0,
        _pictures(raw.get("attachments")),
    )


def _clean(source: str) -> str:
    """改行をそろえ、対になっていないサロゲートを除く。"""
    source = source.encode("utf-8", "replace").decode("utf-8")
    return source.replace("\r\n", "\n").replace("\r", "\n")


def _pictures(raw: Any) -> dict:
    found = {}
    for name, forms in raw.items() if isinstance(raw, dict) else ():
        kept = (
            {k: v for k, v in forms.items() if k in PICTURES and isinstance(v, str)}
            if isinstance(forms, dict)
            else {}
        )
        if kept:
            found[str(name)] = kept
    return found
