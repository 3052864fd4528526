"""Measured time of every page against the time that it states at its top, after make book."""

import re
import sys
from pathlib import Path

from jupyter_cache import get_cache

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "_ext"))

import bookext  # noqa: E402

from tools import build  # noqa: E402

STATED = re.compile(r"実行：約 (\d+) (秒|分)")


def rows() -> list[dict]:
    cache = get_cache(ROOT / "_build" / "cache" / bookext.cache_key(ROOT))
    took = {Path(r.uri): r.data.get("execution_seconds") for r in cache.list_cache_records()}
    found = []
    for path in build.page_paths(ROOT, ROOT / "_toc.yml"):
        measured, stated = took.get(path), STATED.search(path.read_text(encoding="utf-8"))
        if measured and stated:
            seconds = int(stated[1]) * (60 if stated[2] == "分" else 1)
            row = {"name": f"page {path.parent.name}/{path.stem}, measured and stated"}
            row |= {"ours": measured, "peer": seconds, "ratio": seconds / measured, "unit": "s"}
            found.append(row)
    return found
