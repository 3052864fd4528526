"""ノートブックだけの書き方（%pip、!ls、%%time、x?）を、何もしない Python に直す（学生の側）。"""

import re
import sys
import types
from typing import Any

LINE = re.compile(r"^(\s*)(?:[%!].*|\?{1,2}[\w.]+|[\w.]+\?{1,2})$")
ASSIGN = re.compile(r"^(\s*[\w, ]+=\s*)[%!].*$")
KEPT_CELLS = ("%%time", "%%timeit", "%%capture", "%%prun")
DROPPED_MODULES = ("google.colab",)


def plain(source: str) -> str:
    """Python として読めるコードはそのまま返す。読めなければ、マジックの行を pass にする。"""
    lines = source.split("\n")
    first = next((i for i, line in enumerate(lines) if line.strip()), 0)
    if lines[first].startswith("%%"):
        kept = lines[first].startswith(KEPT_CELLS)
        lines = ["", *lines[first + 1 :]] if kept else ["pass"]
        source = "\n".join(lines)
    try:
        compile(source, "<cell>", "exec", dont_inherit=True)
    except SyntaxError:
        return "\n".join(ASSIGN.sub(r"\1None", LINE.sub(r"\1pass", line)) for line in lines)
    return source


class Nothing(types.ModuleType):
    """どの属性も、呼び出しも、自分を返すだけのもの。"""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self

    def __iter__(self) -> Any:
        return iter(())


def install(namespace: dict) -> None:
    """Colab と IPython にしかない名前を、何もしないものにする。"""
    nothing = Nothing("google.colab")
    namespace["get_ipython"] = namespace["display"] = nothing
    google = sys.modules.setdefault("google", types.ModuleType("google"))
    google.colab = nothing
    sys.modules.update({f"google.colab{s}": nothing for s in ("", ".drive", ".files", ".output")})
