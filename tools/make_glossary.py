"""Writes chapters/appendix/glossary.md from chapters/terms.yml and the chapters in _toc.yml.

--check changes nothing and exits 1 when the committed glossary differs from what they give.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tools import myst  # noqa: E402
from tools.lint_text import pieces  # noqa: E402

TARGET = "chapters/appendix/glossary.md"
CHAPTER = re.compile(r"chapters/week(\d+)/\d\d_\w+")
WEEKS = {11: "言語モデル", 12: "系列モデリングと Attention", 13: "Transformer"}
KATAKANA = "ァ-ヶー"
OTHERS = {  # what other books write: what this one writes
    "アテンション": "Attention", "注意機構": "Attention", "自己注意": "Self-Attention",
    "交差注意": "Cross-Attention", "アライメント": "アラインメント", "ドット積": "内積スコア",
    "コンテキストベクトル": "文脈ベクトル", "エンコーダー": "エンコーダ", "符号化器": "エンコーダ",
    "デコーダー": "デコーダ", "復号器": "デコーダ", "クロスエントロピー": "交差エントロピー",
    "困惑度": "パープレキシティ", "スムージング": "平滑化", "最尤法": "最尤推定",
    "未登録語": "未知語", "訓練": "学習", "教師データ": "学習データ", "検証データ": "開発データ",
    "評価データ": "テストデータ", "分散表現": "埋め込み", "ソフトマックス": "softmax",
    "隠れベクトル": "隠れ状態", "バックプロパゲーション": "誤差逆伝播",
    "通時的逆伝播": "時間方向の逆伝播", "系列対系列": "系列変換", "グリーディ": "貪欲法",
    "ビーム探索": "ビームサーチ", "ビームサイズ": "ビーム幅", "全探索": "総当たり",
    "ティーチャーフォーシング": "教師強制", "トランスフォーマー": "Transformer",
    "位置符号化": "位置エンコーディング", "回転位置埋め込み": "RoPE", "経路長": "道の長さ",
    "多頭注意": "Multi-Head Attention", "スキップ接続": "残差接続", "残差結合": "残差接続",
    "レイヤー正規化": "層正規化", "レイヤー": "層", "フィードフォワード": "FFN",
    "ドロップアウト": "dropout", "ラベルスムージング": "ラベル平滑化", "補外": "外挿",
}  # fmt: skip
HEAD = """\
(ch-glossary)=
# 用語集

この本で使う語と、英語での呼び方です。同じものには、いつも同じ語を使います。並びは、本で出会う順です。右の列は、その語を初めて説明する節です。ほかの本や論文で別の書き方に慣れている人は、{ref}`ほかの書き方から引く <sec-glossary-other>` を見てください。
"""  # noqa: E501
OTHER = """
(sec-glossary-other)=
## ほかの書き方から引く

左は、ほかの本や論文でよく見かける書き方です。この本では、右の語だけを使います。

| よく見る書き方 | この本では |
|:--|:--|
"""


@dataclass(frozen=True)
class Section:
    """A heading with the prose under it, up to the next heading."""

    week: int
    label: str
    title: str
    opening: bool  # between the title of the chapter and its first section
    raw: str
    prose: str

    def link(self) -> str:
        return f"{{ref}}`{re.sub(r'[`$<>]', '', self.title)} <{self.label}>`"


def sections(path: Path, week: int) -> list[Section]:
    blocks = myst.read(path).blocks
    found, label, start = [], "", None
    heads = [i for i, block in enumerate(blocks) if block.kind == "heading"]
    for start, end in zip(heads, [*heads[1:], len(blocks)], strict=True):
        label = next((b.name for b in reversed(blocks[:start]) if b.kind == "label"), "")
        texts = list(pieces(blocks[start:end]))
        raw = "\n".join(text.raw for text in texts)
        prose = "\n".join(text.bare() for text in texts)
        title, opening = blocks[start].argument, blocks[start].level == 1
        found.append(Section(week, label, title, opening, raw, prose))
    return found


def chapters(root: Path) -> list[Section]:
    """The sections of the chapters that _toc.yml names, in its order."""
    names = re.findall(r"file:\s*([\w/]+)", (root / "_toc.yml").read_text(encoding="utf-8"))
    matches = [match for name in names if (match := CHAPTER.fullmatch(name))]
    return [s for m in matches for s in sections(root / f"{m[0]}.md", int(m[1]))]


def word(term: str, longer: list[str]) -> re.Pattern:
    """The term by itself: not inside a longer term or a longer katakana or Latin word."""
    others = "".join(f"(?!{re.escape(x)})" for x in longer if x.startswith(term))
    before = [x.removesuffix(term) for x in longer if x.endswith(term)]
    others = "".join(f"(?<!{re.escape(x)})" for x in before) + others
    sides = r"A-Za-z-" if term.isascii() else KATAKANA if re.match(f"[{KATAKANA}]", term) else "々"
    return re.compile(f"(?<![{sides}]){others}{re.escape(term)}(?![{sides}])")


def explained(term: dict, terms: list[dict], book: list[Section]) -> int | None:
    """The first section with an {index} entry for the term, else the first that uses it."""
    longer = [x["ja"] for x in terms if term["ja"] in x["ja"] and x is not term]
    pattern = word(term["ja"], longer)
    indexed = [i for i, s in enumerate(book) if f"{{index}}`{term['ja']}`" in s.raw]
    used = [i for i, s in enumerate(book) if s.week >= term["week"] and pattern.search(s.prose)]
    body = [i for i in used if not book[i].opening]
    return next(iter(indexed or body or used), None)


def glossary(root: Path) -> str:
    terms = yaml.safe_load((root / "chapters" / "terms.yml").read_text(encoding="utf-8"))
    book = chapters(root)
    places = [(place, t) for t in terms if (place := explained(t, terms, book)) is not None]
    places.sort(key=lambda pair: pair[0])
    text = HEAD
    for week, name in WEEKS.items():
        rows = [(p, t) for p, t in places if book[p].week == week]
        text += f"\n(sec-glossary-week{week})=\n## 第 {week} 週：{name}\n\n"
        text += "| 用語 | 英語 | 初めて説明する節 |\n|:--|:--|:--|\n"
        text += "".join(f"| {t['ja']} | {t['en']} | {book[p].link()} |\n" for p, t in rows)
    used = {t["ja"] for _, t in places}
    other = sorted((x, ja) for x, ja in OTHERS.items() if ja in used)
    mark = "<!-- term: ほかの書き方 -->"
    return text + OTHER + "".join(f"| {x} | {ja} {mark} |\n" for x, ja in other)


def main(check: bool) -> int:
    path, text = ROOT / TARGET, glossary(ROOT)
    if path.exists() and path.read_text(encoding="utf-8") == text:
        return 0
    print(f"{TARGET}: " + ("differs from its sources; run make glossary" if check else "written"))
    if not check:
        path.write_text(text, encoding="utf-8")
    return int(check)


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv[1:]))
