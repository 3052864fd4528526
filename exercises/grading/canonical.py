"""清書：こちらの配布物に、提出された答えを入れたノートブックを作る。

答えのセルは、grade_id、目印の行、関数の名前の順で探す。ほかのセルは、ふつうのセルとして残す。
採点の欄、鍵のかかったセル、配点は、いつも配布物のものになる。学生のコードは動かさない。
"""

import copy
import functools
import json
import pathlib
import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from exercises.grading.notebook import Cell
from exercises.grading.source import MARKER

COURSE = pathlib.Path(__file__).resolve().parents[1]
SCHEMAS = (1, 2, 3)
SETUP = "#@title 準備："
SELF_CHECK = ("check(", "visible(", "ready(")
WRITTEN = re.compile(r"\*\*(\d+-\d+) 文章の答え\*\*")
DEFINED = re.compile(r"^(?:async )?(?:def|class) +(\w+)", re.MULTILINE)


@dataclass
class Intake:
    """受け取りの結果。code は実行するセルの (名前, コード, 問い)。refused は断った理由。"""

    notebook: dict | None = None
    code: list[tuple[str, str, str]] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    person: list[str] = field(default_factory=list)
    refused: str = ""
    extra: int = 0


# ── 配布物 ──


@dataclass(frozen=True)
class Release:
    """配布したノートブックと、答えの欄。"""

    notebook: dict
    tasks: dict[str, int]  # 問い → 答えのセルの番号
    written: dict[str, int]
    functions: dict[str, frozenset[str]]


@functools.cache
def release(assignment: str, path: pathlib.Path | None = None) -> Release:
    """配布物を読む。"""
    path = path or COURSE / "release" / assignment / f"{assignment}.ipynb"
    nb = json.loads(path.read_text(encoding="utf-8"))
    for cell in nb["cells"]:
        if isinstance(cell["source"], list):
            cell["source"] = "".join(cell["source"])
    tasks, written, functions = {}, {}, {}
    for i, cell in enumerate(nb["cells"]):
        mark = cell["metadata"].get("nbgrader", {})
        if not mark.get("solution"):
            continue
        if cell["cell_type"] == "code":
            tasks[mark["grade_id"]] = i
            functions[mark["grade_id"]] = frozenset(DEFINED.findall(cell["source"]))
        else:
            written[mark["grade_id"]] = i
    return Release(nb, tasks, written, functions)


def _squeezed(text: str) -> str:
    return "".join(text.split())


def _same(a: str, b: str) -> bool:
    return _squeezed(a) == _squeezed(b)


# ── 探して、入れる ──


def _place(ours: Release, theirs: list[Cell]) -> tuple[list[int], list[str]]:
    """提出されたセルのそれぞれが、配布物の何番目か（あたらなければ -1）と、どう見つけたか。"""
    by_id, by_text, setup = {}, {}, -1
    for i, cell in enumerate(ours.notebook["cells"]):
        by_id[cell["metadata"].get("nbgrader", {}).get("grade_id", "")] = i
        by_text[_squeezed(cell["source"])] = i
        setup = i if cell["source"].startswith(SETUP) else setup
    by_id.pop("")
    places, how = [], []
    for cell in theirs:
        place, way = by_text.get(_squeezed(cell.source), -1), "same"
        if cell.source.startswith(SETUP):
            place = setup
        elif cell.grade_id in by_id:
            place, way = by_id[cell.grade_id], "id"
        elif place < 0:
            place, way = _by_text(ours, cell)
        places.append(place)
        how.append(way)
    _by_name(ours, theirs, places, how)
    return places, how


def _by_text(ours: Release, cell: Cell) -> tuple[int, str]:
    marker, written = MARKER.search(cell.source), WRITTEN.search(cell.source)
    if cell.kind == "code" and marker and marker[1] in ours.tasks:
        return ours.tasks[marker[1]], "marker"
    if cell.kind != "code" and written and f"{written[1]}-text" in ours.written:
        return ours.written[f"{written[1]}-text"], "marker"
    return -1, ""


def _by_name(ours: Release, theirs: list[Cell], places: list[int], how: list[str]) -> None:
    for question, place in ours.tasks.items():
        if place in places:
            continue
        for i, cell in enumerate(theirs):
            defined = set(DEFINED.findall(cell.source))
            if places[i] < 0 and cell.kind == "code" and defined & ours.functions[question]:
                places[i], how[i] = place, "name"


def recognised(ours: Release, theirs: list[Cell]) -> tuple[int, int]:
    """(手の付いた答えの数, 見つかった答えの欄の数)。どのファイルが提出物かを決める。"""
    places, _ = _place(ours, theirs)
    slots = {*ours.tasks.values(), *ours.written.values()}
    hit = {p for p in places if p in slots}
    touched = {
        p
        for p, c in zip(places, theirs, strict=True)
        if p in slots and not _same(c.source, ours.notebook["cells"][p]["source"])
    }
    return len(touched), len(hit)


def canonical(ours: Release, theirs: list[Cell]) -> Intake:
    """清書を作る。"""
    (places, how), out = _place(ours, theirs), Intake()
    release_cells = ours.notebook["cells"]
    tasks = {i: q for q, i in ours.tasks.items()}
    slots: dict[int, list[Cell]] = {i: [] for i in (*tasks, *ours.written.values())}
    extras: dict[int, list[Cell]] = {}
    anchor = -1
    for cell, place in zip(theirs, places, strict=True):
        anchor = place if place >= 0 else anchor
        if place in slots:
            slots[place].append(cell)
        elif place < 0 and cell.source.strip():
            extras.setdefault(anchor, []).append(cell)
    _tell(ours, theirs, places, how, out)
    made = _extra_cells(extras.get(-1, []), out)
    for i, cell in enumerate(release_cells):
        fresh = copy.deepcopy(cell)
        if i in tasks:
            made += _answer(fresh, slots[i], ours, tasks[i], out)
        else:
            if i in slots:
                _write(fresh, slots[i], out)
            elif fresh["cell_type"] == "code" and not _skipped(fresh):
                out.code.append((fresh["id"], fresh["source"], ""))
            made.append(fresh)
        made += _extra_cells(extras.get(i, []), out)
    theirs_only = [row for row in out.code if not row[1].startswith(SETUP)]
    if not any(use in code for _, code, _ in theirs_only for use in SELF_CHECK):
        out.code = theirs_only  # 自己確認を使わないなら、その部品は要らない
    out.notebook = {
        **copy.deepcopy({k: v for k, v in ours.notebook.items() if k != "cells"}),
        "cells": made,
    }
    return out


def _skipped(cell: dict) -> bool:
    """採点の欄と、公開の検査のセルは動かさない。"""
    return (
        bool({"check", "try"} & set(cell["metadata"].get("tags", [])))
        or "nbgrader" in cell["metadata"]
    )


def _new(cell: Cell, out: Intake, question: str = "") -> dict:
    name, out.extra = f"extra-{out.extra}", out.extra + 1
    fresh: dict = {"cell_type": cell.kind, "id": name, "metadata": {}, "source": cell.source}
    if cell.kind == "code":
        fresh |= {"outputs": [], "execution_count": None}
        out.code.append((name, cell.source, question))
    else:
        fresh["source"] = harmless(cell.source)
    return fresh


def _extra_cells(extra: Iterable[Cell], out: Intake) -> list[dict]:
    return [_new(cell, out) for cell in extra]


def harmless(markdown: str) -> str:
    """文章に書かれた HTML のタグを、文字として見えるようにする。"""
    return re.sub(r"<(?=[A-Za-z/!?])", "&lt;", markdown)


def _answer(
    fresh: dict, candidates: list[Cell], ours: Release, question: str, out: Intake
) -> list[dict]:
    """答えのセル。二つ以上あれば、手の付いていないものを除き、関数を定義する最後のものを答えとする。"""
    stub = fresh["source"]
    worked = [c for c in candidates if not _same(c.source, stub)]
    worked = worked or candidates[-1:]
    defining = [c for c in worked if set(DEFINED.findall(c.source)) & ours.functions[question]]
    main = (defining or worked or [Cell("code", stub)])[-1]
    made = []
    for cell in worked or [main]:
        if cell is main:
            fresh["source"] = cell.source
            out.code.append((fresh["id"], cell.source, question))
            made.append(fresh)
        else:
            made.append(_new(Cell("code", cell.source), out, question))
    if len({_squeezed(c.source) for c in worked}) > 1:
        out.person.append(
            f"{question} の答えのセルが {len(worked)} 個あります。上から順にすべて実行しました。"
        )
    if any(c.kind != "code" for c in worked):
        out.person.append(
            f"{question} の答えのセルが、コードのセルではありません。コードとして実行しました。"
        )
    return made


def _write(fresh: dict, candidates: list[Cell], out: Intake) -> None:
    """文章の答え。二つ以上あれば、手の付いたものをつなぐ。"""
    worked = [c for c in candidates if not _same(c.source, fresh["source"])]
    if not worked:
        return
    fresh["source"] = harmless("\n\n".join(dict.fromkeys(c.source for c in worked)))
    pictures = {k: v for c in worked for k, v in c.attachments.items()}
    if pictures:
        fresh["attachments"] = pictures
    if any(c.kind == "code" for c in worked):
        out.person.append(f"{fresh['id']} が、コードのセルになっています。文章として扱いました。")


def _tell(ours: Release, theirs: list[Cell], places: list, how: list, out: Intake) -> None:
    """学生と、成績を付ける人に言うこと。"""
    for question, place in ours.tasks.items():
        ways = [w for w, p in zip(how, places, strict=True) if p == place]
        if not ways:
            out.remarks.append(
                f"{question} の答えのセルが見つかりません。配布した答えのセルに書いてください。"
            )
        elif "id" not in ways and set(ways) != {"same"}:
            clue = "目印の行" if "marker" in ways else "関数の名前"
            out.person.append(
                f"{question} の答えのセルから nbgrader の情報が消えています。{clue}で見つけました。"
            )
    odd = {c.schema for c in theirs if c.grade_id} - set(SCHEMAS)
    if odd:
        out.person.append(
            "nbgrader の情報の版が、知らないものです。配布物のものに戻して採点しました。"
        )
