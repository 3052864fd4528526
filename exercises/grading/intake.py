"""受け取り：一人分のファイルから、この課題のノートブックを選び、清書を作る。

中身を見て選び、名前では選ばない。読めないもの、ノートブックでないもの、記号リンクは、理由を付けて断る。
"""

import re

from exercises.grading.canonical import Intake, Release, canonical, recognised, release
from exercises.grading.notebook import Cell, Unreadable, cells, document

OTHER_NAMES = "ファイル名が {name} ではありません（{got}）。中身を見て採点しました。"


def read(
    files: list[tuple[str, bytes | None, str]], assignment: str, ours: Release | None = None
) -> Intake:
    """一人分の (名前, 中身, 困った点) の並びから、清書を作る。中身が None なら読まなかったもの。"""
    ours = ours or release(assignment)
    links = [name for name, _, problem in files if problem == "link"]
    if links:
        return Intake(
            refused=f"記号リンク（{shown(links[0])}）は受け取れません。ファイルそのものを提出してください。"
        )
    if not files:
        return Intake(refused="提出されたファイルがありません。")
    best, person, problems = _choose(files, ours)
    if best is None:
        return Intake(refused=problems[0])
    name, theirs = best
    out = canonical(ours, theirs)
    expected = re.compile(rf"{re.escape(assignment)}(-\d+)?\.ipynb$")
    if not expected.fullmatch(name.rsplit("/", 1)[-1]):
        person.append(OTHER_NAMES.format(name=f"{assignment}.ipynb", got=shown(name)))
    others = [n for n, _, _ in files if n != name and not n.endswith("timestamp.txt")]
    if others:
        names = "、".join(map(shown, others[:3])) + ("など" if len(others) > 3 else "")
        out.remarks.append(f"ほかのファイル（{names}）は使いませんでした。")
    out.person = person + out.person
    return out


def shown(name: str) -> str:
    """名前を、見せてよい長さの一行にする。"""
    return re.sub(r"[^\w .()\-/]", "？", name)[:80]


def _choose(
    files: list, ours: Release
) -> tuple[tuple[str, list[Cell]] | None, list[str], list[str]]:
    """この課題の答えがいちばん多いノートブック。"""
    ranked, person, problems = [], [], []
    for name, data, problem in files:
        if data is None:
            problems.append(problem)
            continue
        notebook = name.lower().endswith(".ipynb")
        if not notebook and data.lstrip(b"\xef\xbb\xbf \r\n\t")[:1] != b"{":
            continue
        try:
            found, guessed = document(data)
            theirs = cells(found)
        except Unreadable as error:
            problems.append(str(error))
            continue
        ranked.append((*recognised(ours, theirs), notebook, name, theirs, guessed))
    ranked = [r for r in ranked if r[1]]
    if not ranked:
        return (
            None,
            person,
            [
                *problems,
                "この課題のノートブックがありません。配布した .ipynb に書いてください。",
            ],
        )
    best = max(ranked, key=lambda r: r[:4])
    if len(ranked) > 1:
        person.append(
            f"この課題のノートブックが {len(ranked)} 個あります。答えの多いものを採点しました。"
        )
    if best[5]:
        person.append(
            "ファイルの文字コードが UTF-8 ではありません。読めるように直して採点しました。"
        )
    return (best[3], best[4]), person, problems
