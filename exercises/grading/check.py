"""検査の部品。判定は judge.py、比べ方は compare.py。

一つの問い（Question）は、点の付くまとまり（Part）に分かれ、まとまりは検査（Check）からなる。
検査は「この引数で、この関数を呼ぶ」という呼び出し（Probe）を種から作り、返ってきた配列だけを見て、
正解（oracle）や法則（law）と比べる。学生の関数に触れる道は calls(probes) の一本だけで、
向こう側が同じプロセスでも、別のプロセスでも、砂場の中でも、判定は変わらない。

書き方の例：

    def probes(draw):                            # 種ごとに違う大きさと数
        n, m = draw.sizes(2)
        yield Probe("mean", (draw.normal(n, m),), label="ふつうの入力")

    def oracle(x):                               # 引数は Tensor
        return x.sum(-1) / x.shape[-1]

    Check("平均", probes, oracle, outputs=("平均",))
    Wrong("sum", "足しただけで、個数で割っていません。", edits=((" / x.shape[-1]", ""),))

不合格になった答えは、誤答の見本（Wrong）と同じ値かどうかで原因を言い当てる。
学生に見せるのは、聞いたこと、返ってきた形、原因、公開の例でも違うかどうか、読み直す所だけで、
採点に使った入力と期待した値は見せない。
"""

import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from exercises.grading import wire
from exercises.grading.wire import Item

PUBLIC_SEED = 15
PUBLIC_PRIMES = (2, 3, 5, 7)
PRIMES = (3, 5, 7, 11, 13, 17)


# ── 呼び出しと、その結果 ──


@dataclass(frozen=True, eq=False)
class Probe:
    """学生の関数を一度呼ぶこと。配列の引数は Tensor として渡る。

    label は学生に見せる説明（値は書かない）。repeat は二度呼んで同じ値かを見る。
    cotangent があれば、最初の返り値にこれを掛けた和を、すべての Tensor の引数で微分した勾配を見る。
    tolerance は (相対, 絶対)。なければ dtype から決まる。memo は law のための控えで、渡さない。
    given は、呼ぶ間だけ模範解答のものに差しかえる、ほかの関数。前の関数の誤りを引きずらせない。
    """

    function: str
    args: tuple = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    label: str = ""
    repeat: bool = False
    cotangent: np.ndarray | None = None
    tolerance: tuple[float, float] | None = None
    memo: Any = None
    given: "Given | None" = None


@dataclass(frozen=True)
class Given:
    """差しかえる関数の名前と、それを定義するコード。"""

    names: tuple[str, ...]
    source: str


@dataclass(frozen=True)
class Outcome:
    """呼び出しの結果。value か error のどちらかが入る。

    error は例外の型の名前。ほかに Missing（関数がない）、Timeout、Died、Unreadable。
    """

    value: Item | None = None
    error: str = ""
    message: str = ""
    line: int | None = None
    changed: tuple[str, ...] = ()
    again: bool = True


class Caller(Protocol):
    """学生の関数への口。"""

    def calls(self, probes: list[Probe]) -> list[Outcome]: ...


@dataclass(frozen=True)
class Band:
    """統計の正解：期待する値と、許す幅（標準誤差の 5 倍など）。"""

    value: float
    width: float


class Draw:
    """検査の入力を引く。公開の例では小さな大きさと、小数 2 桁に丸めた数になる。"""

    def __init__(self, seed: int, name: str, *, public: bool = False):
        self.rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
        self.public = public
        self.primes = PUBLIC_PRIMES if public else PRIMES

    def sizes(self, count: int) -> tuple[int, ...]:
        """すべて異なる素数。最初の一つ（系列の長さに使う）は 3 以上。"""
        while True:
            picked = tuple(int(n) for n in self.rng.permutation(self.primes)[:count])
            if picked[0] >= 3:
                return picked

    def normal(self, *shape: int, dtype: str = "float64", scale: float = 1.0) -> np.ndarray:
        """標準正規分布（の scale 倍）。"""
        values = self.rng.standard_normal(shape) * scale
        return (values.round(2) if self.public else values).astype(dtype)

    def permutation(self, n: int) -> np.ndarray:
        """逆の並べ替えと同じにならない並べ替え（n ≥ 3）。"""
        while True:
            order = self.rng.permutation(n)
            if (order[order] != np.arange(n)).any():
                return order

    def mask(self, *shape: int) -> np.ndarray:
        """どの行にも True と False がある真偽値。"""
        while True:
            mask = self.rng.random(shape) < 0.6
            if mask.any(-1).all() and not mask.all(-1).any():
                return mask

    def integer(self, low: int, high: int) -> int:
        return int(self.rng.integers(low, high))


# ── 検査、誤答の見本、問い ──


def tensor(value: Any) -> Any:
    """配列なら Tensor にする。"""
    return wire.restore(Item("Tensor", value)) if isinstance(value, np.ndarray) else value


def _gradients(oracle: Callable, args: list, kwargs: dict, cotangent: np.ndarray) -> tuple:
    import torch

    leaves = [a.requires_grad_() for a in args if isinstance(a, torch.Tensor)]
    first = oracle(*args, **kwargs)
    first = first[0] if isinstance(first, tuple) else first
    return torch.autograd.grad((first * tensor(cotangent)).sum(), leaves)


@dataclass(frozen=True)
class Check:
    """一つのことを確かめる検査。

    probes(draw) が呼び出しを作る。oracle は同じ引数を Tensor で受けて正しい値を返す
    （Band を返せば統計、ValueError を出せば「ValueError を出すべき」）。
    law は全部の結果を見て、破れていれば説明を返す。outputs は返り値の呼び名。section は読み直す所。
    """

    name: str
    probes: Callable[[Draw], Iterable[Probe]]
    oracle: Callable[..., Any] | None = None
    law: Callable[[list[Probe], list[Outcome]], str] | None = None
    outputs: tuple[str, ...] = ("返り値",)
    section: str = ""

    def calls(self, seed: int, *, public: bool = False) -> list[Probe]:
        return list(self.probes(Draw(seed, self.name, public=public)))

    def expected(self, probe: Probe) -> Outcome | Band | None:
        """信用できる側で正解を計算する。"""
        if self.oracle is None:
            return None
        args = [tensor(a) for a in probe.args]
        kwargs = {k: tensor(v) for k, v in probe.kwargs.items()}
        try:
            if probe.cotangent is not None:
                value = _gradients(self.oracle, args, kwargs, probe.cotangent)
            else:
                value = self.oracle(*args, **kwargs)
        except ValueError:
            return Outcome(error="ValueError")
        return value if isinstance(value, Band) else Outcome(wire.decode(wire.encode(value)))


@dataclass(frozen=True)
class Part:
    """点の付くまとまり。検査のすべてに通れば points 点。"""

    name: str
    points: int
    checks: tuple[Check, ...]


@dataclass(frozen=True)
class Variant:
    """模範解答の一部を書きかえた答え。edits がなければ code が答えの全体。"""

    id: str
    edits: tuple[tuple[str, str], ...] = ()
    code: str = ""

    def source(self, model: str) -> str:
        """答えのコード。書きかえる所が模範解答にちょうど一つなければ ValueError。"""
        text = self.code or model
        for old, new in self.edits:
            if text.count(old) != 1:
                raise ValueError(f"{self.id}：書きかえる所が {text.count(old)} 個あります：{old!r}")
            text = text.replace(old, new)
        return text


@dataclass(frozen=True)
class Right(Variant):
    """書き方の違う正答。"""


@dataclass(frozen=True)
class Wrong(Variant):
    """誤答の見本。同じ値を返す答えに hint を言う。"""

    hint: str = ""


@dataclass(frozen=True, eq=False)
class Question:
    """一つの問いの、コードの部分。model は模範解答を返す関数、shortcuts は出来合いの名前。"""

    id: str
    parts: tuple[Part, ...]
    model: Callable[[], str]
    wrong: tuple[Wrong, ...] = ()
    right: tuple[Right, ...] = ()
    shortcuts: tuple[str, ...] = ()

    @property
    def points(self) -> int:
        return sum(part.points for part in self.parts)

    @property
    def checks(self) -> list[Check]:
        return [check for part in self.parts for check in part.checks]
