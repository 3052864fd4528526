"""公開の例と、そこでの誤答の見本の指紋を、ノートブックに入れる JSON にする。"""

from exercises.grading import selfcheck, wire
from exercises.grading.check import PUBLIC_SEED, Band, Outcome, Probe, Question, tensor
from exercises.grading.compare import TOLERANCE, alike
from exercises.grading.judge import bank, plan


def cases(question: Question) -> dict:
    """selfcheck.CASES の一つ分。"""
    rows = plan(question, PUBLIC_SEED, True)
    wrong = bank(question, PUBLIC_SEED, True)
    out = []
    for i, (check, probe, want) in enumerate(rows):
        if want is None and not probe.repeat:  # 法則だけの検査は、ノートブックでは確かめない
            continue
        prints = {}
        for number, told in enumerate(wrong.values()):
            if not _right(probe, want, told[i]):
                prints[str(number)] = _fingerprint(told[i])
        out.append(_case(check.name, probe, want) | {"wrong": prints})
    # 採点のときだけの検査の手がかりは入れない
    told = {number for case in out for number in case["wrong"]}
    hints = [w.hint if str(i) in told else "" for i, w in enumerate(question.wrong)]
    return {"hints": hints, "cases": out}


def _right(probe: Probe, want: Outcome | Band | None, got: Outcome) -> bool:
    if isinstance(want, Band):
        value = Outcome(wire.Item("float", want.value))
        return alike(probe, want, value, got)
    if want is None:
        return got.again and not got.changed and not got.error
    return alike(probe, want, want, got)


def _fingerprint(got: Outcome) -> tuple[str, float]:
    if got.error:
        return got.error, 0.0
    if got.changed:
        return "changed", 0.0
    return selfcheck.fingerprint(wire.restore(got.value)) if got.again else ("again", 0.0)


def _case(name: str, probe: Probe, want: Outcome | Band | None) -> dict:
    error, value, width = "", None, None
    tolerance = probe.tolerance
    if isinstance(want, Band):
        value, width, tolerance = want.value, selfcheck.rounded(want.width, 3), (0, want.width)
    elif want is not None:
        error, value = want.error, wire.restore(want.value) if want.value else None
    packed = None if value is None else selfcheck.pack(value)
    if tolerance is None:
        tolerance = TOLERANCE["<f4" if "float32" in str(packed) else "<f8"]
    floor = (1e-6, 1e-8) if tolerance[0] else (0, 0)  # 正しい値を 8 桁に丸めてある分
    return {
        "check": name,
        "label": probe.label,
        "function": probe.function,
        "args": [selfcheck.pack(tensor(a)) for a in probe.args],
        "kwargs": {k: selfcheck.pack(tensor(v)) for k, v in probe.kwargs.items()},
        "cotangent": None if probe.cotangent is None else selfcheck.pack(tensor(probe.cotangent)),
        "repeat": probe.repeat,
        "error": error,
        "want": packed,
        "tolerance": [float(f"{max(t, f):.3g}") for t, f in zip(tolerance, floor, strict=True)],
        "width": width,
    }
