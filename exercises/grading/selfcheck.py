"""公開の例で答えを確かめる。torch だけを使い、ノートブックの最初のセルにそのまま入る。"""

import math

import torch

CASES = {}  # 問い → {"hints": 言葉の並び, "cases": 呼び出しの並び}
VISIBLE = {}  # 問い → {名前: 検査の関数}


def visible(question, name):
    """読める検査を登録する。"""

    def register(function):
        VISIBLE.setdefault(question, {})[name] = function
        return function

    return register


def pack(value):
    """値を JSON にできる形にする。桁を丸めて、どの計算機でも同じ文字になるようにする。"""
    if isinstance(value, torch.Tensor):
        flat = value.detach().reshape(-1).tolist()
        flat = [rounded(x, 8) for x in flat] if value.is_floating_point() else flat
        return {"t": str(value.dtype)[6:], "s": list(value.shape), "v": flat}
    if isinstance(value, tuple | list):
        return {"tuple": [pack(x) for x in value]}
    return rounded(value, 8) if isinstance(value, float) else value


def unpack(tree):
    """pack の逆。"""
    if isinstance(tree, dict) and "tuple" in tree:
        return tuple(unpack(x) for x in tree["tuple"])
    if isinstance(tree, dict):
        return torch.tensor(tree["v"], dtype=getattr(torch, tree["t"])).reshape(tree["s"])
    return tree


def rounded(x, digits):
    """有効数字を切りつめる。ごく小さい数は 0 とする。"""
    if isinstance(x, bool) or not math.isfinite(x):
        return x
    return 0.0 if abs(x) < 1e-9 else float(f"{x:.{digits}g}")


def fingerprint(value):
    """答えの指紋：型と形の名前と、要素に決まった重みを掛けた和。"""
    if isinstance(value, torch.Tensor):
        flat = value.detach().reshape(-1).double()
        total = float((flat * torch.cos(torch.arange(1.0, len(flat) + 1.0).double())).sum())
        return f"{tuple(value.shape)} {value.dtype}", rounded(total, 5)
    if isinstance(value, tuple | list):
        parts = [fingerprint(x) for x in value]
        total = sum(math.cos(i) * part[1] for i, part in enumerate(parts, 1))
        return " / ".join(part[0] for part in parts), rounded(total, 5)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return "float", rounded(float(value), 5)
    return type(value).__name__, 0.0


def run(case, functions):
    """公開の例を一つ呼ぶ。返り値は (値, 指紋の名前, 指紋の数, 例外)。"""
    args, kwargs = (
        unpack({"tuple": case["args"]}),
        {k: unpack(v) for k, v in case["kwargs"].items()},
    )
    before = [a.clone() for a in (*args, *kwargs.values()) if isinstance(a, torch.Tensor)]
    try:
        function = functions[case["function"]]
        if case["cotangent"] is not None:
            leaves = [a.requires_grad_() for a in args if isinstance(a, torch.Tensor)]
            first = function(*args, **kwargs)
            first = first[0] if isinstance(first, tuple) else first
            value = torch.autograd.grad((first * unpack(case["cotangent"])).sum(), leaves)
            return value, *fingerprint(value), None
        value = function(*args, **kwargs)
        again = function(*args, **kwargs) if case["repeat"] else value
    except Exception as error:
        return None, type(error).__name__, 0.0, error
    after = [a for a in (*args, *kwargs.values()) if isinstance(a, torch.Tensor)]
    if not all(torch.equal(a, b) for a, b in zip(before, after, strict=True)):
        return value, "changed", 0.0, None
    if str(pack(again)) != str(pack(value)):
        return value, "again", 0.0, None
    return value, *fingerprint(value), None


def problem(case, value, name, error):
    """違いの説明。合っていれば空文字列。"""
    wanted = case["error"]
    if isinstance(error, NotImplementedError):
        return "まだ書かれていません"
    if isinstance(error, KeyError) and error.args == (case["function"],):
        return f"関数 {case['function']} が見つかりません"
    if error is not None:
        expected = f"。ここでは {wanted} を出すはずです" if wanted else ""
        return "" if name == wanted else f"{name} が出ました：{error}{expected}"
    if wanted:
        return f"{wanted} を出すはずの入力です"
    if name == "changed":
        return "渡した引数が書きかわりました"
    if name == "again":
        return "同じ引数で二度呼ぶと、違う値が返りました"
    return "" if case["want"] is None else differs(unpack(case["want"]), value, case["tolerance"])


def differs(want, got, tolerance):
    """値の違いの説明。"""
    if isinstance(want, tuple):
        if not isinstance(got, tuple | list) or len(got) != len(want):
            return f"返り値は {len(want)} 個の組のはずですが、{type(got).__name__} が返りました"
        texts = [differs(w, g, tolerance) for w, g in zip(want, got, strict=True)]
        return next((f"{i + 1} 番目の返り値：{t}" for i, t in enumerate(texts) if t), "")
    if isinstance(want, float):
        if isinstance(got, torch.Tensor) and got.numel() == 1:
            got = got.item()
        if isinstance(got, bool) or not isinstance(got, int | float):
            return f"一つの数（float）のはずですが、{type(got).__name__} が返りました"
        finite = abs(want) < float("inf")
        near = finite and abs(got - want) <= tolerance[1] + tolerance[0] * abs(want)
        return (
            ""
            if near or got == want
            else f"値が違います。あなたの値 {got:.4g}、正しい値 {want:.4g}"
        )
    if not isinstance(got, torch.Tensor):
        return f"torch.Tensor のはずですが、{type(got).__name__} が返りました"
    if got.shape != want.shape:
        return f"形は {tuple(want.shape)} のはずですが、{tuple(got.shape)} でした"
    if got.dtype != want.dtype:
        return f"dtype は {want.dtype} のはずですが、{got.dtype} でした"
    if torch.allclose(got, want, *tolerance):
        return ""
    lines = [
        f"値が違います\n        あなたの値 {_short(got)}",
        f"        正しい値   {_short(want)}",
    ]
    return "\n".join(lines)


def _short(x):
    flat = ", ".join(f"{v:.3g}" for v in x.detach().reshape(-1)[:6].tolist())
    return f"[{flat}{', …' if x.numel() > 6 else ''}]"


def matches(case, hint, name, number):
    """この答えが、見本 hint の指紋と同じか。見本が正しい値を返す例では None。"""
    told = case["wrong"].get(str(hint))
    if told is None:
        return None
    if told[0] != name:
        return False
    if told[1] != told[1] or number != number:
        return told[1] != told[1] and number != number
    if float("inf") in (abs(told[1]), abs(number)):
        return told[1] == number
    width = max(1e-3 * abs(told[1]), 1e-6) if case["width"] is None else case["width"]
    return abs(told[1] - number) <= width


def guess(cases, results, failing, texts):
    """不合格の例をいちばんよく説明する見本の番号。なければ None。"""

    def score(hint):
        hits = [matches(c, hint, r[1], r[2]) for c, r in zip(cases, results, strict=True)]
        here = sum(hits[i] is True for i in failing)
        alike = [h is True if text else h is None for h, text in zip(hits, texts, strict=True)]
        return here, sum(alike)

    hints = sorted({int(h) for c in cases for h in c["wrong"]})
    best = max(hints, key=score, default=None)
    return best if best is not None and score(best)[0] * 2 > len(failing) else None


def findings(question, functions):
    """(検査の名前, 説明, 原因) の並び。説明が空なら合格。"""
    out = []
    for name, function in VISIBLE.get(question, {}).items():
        try:
            function()
            out.append((name, "", ""))
        except NotImplementedError:
            out.append((name, "まだ書かれていません", ""))
        except AssertionError as error:
            out.append((name, str(error), ""))
        except Exception as error:
            out.append((name, f"{type(error).__name__} が出ました：{error}", ""))
    cases, hints = CASES[question]["cases"], CASES[question]["hints"]
    results = [run(case, functions) for case in cases]
    texts = [problem(c, r[0], r[1], r[3]) for c, r in zip(cases, results, strict=True)]
    for name in dict.fromkeys(case["check"] for case in cases):
        mine = [i for i, case in enumerate(cases) if case["check"] == name]
        failing = {i for i in mine if texts[i]}
        if not failing:
            out.append((name, "", ""))
            continue
        best = guess(cases, results, failing, texts)
        first = cases[min(failing)]
        text = f"{first['function']}（{first['label']}）\n      {texts[min(failing)]}"
        out.append((name, text, "" if best is None else hints[best]))
    return out


def check(question):
    """公開の例で答えを確かめ、結果を書く。"""
    rows, told = findings(question, globals()), set()
    todo = "まだ書かれていません"
    if all(text.endswith(todo) for _, text, _ in rows):
        print(f"{question}：{todo}")
        return
    for name, text, cause in rows:
        print(f"{'×' if text else '○'} {name}" + (f"\n      {text}" if text else ""))
        if cause and cause not in told:
            print(f"      考えられる原因：{cause}")
            told.add(cause)
    passed = sum(not text for _, text, _ in rows)
    print(f"{question}：{len(rows)} 個のうち {passed} 個の検査に合格しました。")


def ready(question):
    """合格していれば True。まだなら、そう書いて False を返す。"""
    passed = not any(text for _, text, _ in findings(question, globals()))
    if not passed:
        print(
            f'{question} がまだ合格していないので飛ばします。check("{question}") を見てください。'
        )
    return passed
