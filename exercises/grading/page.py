"""学生に返すページと、成績を付ける人のための一覧。書き込まれた文字はすべて HTML から守る。"""

import collections
import html

POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
STYLE = """
:root { color-scheme: light dark; --line: #8884; --good: #0a7d55; --bad: #b3410e; --soft: #8881 }
@media (prefers-color-scheme: dark) { :root { --good: #4cc79a; --bad: #f0935f } }
body { font: 16px/1.9 "Hiragino Sans", "Noto Sans JP", "Yu Gothic", system-ui, sans-serif;
  max-width: 46rem; margin: 2rem auto; padding: 0 1rem; background: Canvas; color: CanvasText }
h1 { font-size: 1.5rem }
h2 { font-size: 1.2rem; border-top: 1px solid var(--line); padding-top: 1rem }
table { border-collapse: collapse; width: 100% }
th, td { text-align: left; vertical-align: top; border-bottom: 1px solid var(--line);
  padding: .3rem .6rem } td.n { font-variant-numeric: tabular-nums }
li { margin: .5rem 0 } .good::marker { content: "○ " } .bad::marker { content: "× " }
.good { color: var(--good) } .bad strong { color: var(--bad) }
dl { margin: .2rem 0 .8rem; color: CanvasText; display: grid; grid-template-columns: 8rem 1fr }
dt { opacity: .75 } dd { margin: 0; overflow-wrap: anywhere }
.note { background: var(--soft); border-left: 4px solid var(--bad); padding: .5rem 1rem }
pre { background: var(--soft); padding: .6rem; white-space: pre-wrap; overflow-wrap: anywhere }
"""
HEADS = (
    ("asked", "聞いたこと"),
    ("came", "起きたこと"),
    ("cause", "考えられる原因"),
    ("example", "公開の例"),
    ("section", "読み直す所"),
)
MAX_LOG = 4000


def safe(value: object) -> str:
    """文字として見せる。制御文字は除く。"""
    text = "".join(c for c in str(value) if c in "\n\t" or ord(c) >= 32)
    return html.escape(text.encode("utf-8", "replace").decode("utf-8"))


def document(title: str, body: str) -> str:
    """一枚のページ。スクリプトも外部の読み込みもない。"""
    return (
        f'<!doctype html>\n<html lang="ja">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta name="referrer" content="no-referrer">\n'
        f"<title>{safe(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n"
    )


def _check(result: dict, told: set[str]) -> str:
    if result["passed"]:
        return f'<li class="good">{safe(result["name"])}</li>'
    rows = ""
    for key, head in HEADS:
        text = "" if key == "cause" and result[key] in told else result[key]
        rows += f"<dt>{head}</dt><dd>{safe(text)}</dd>" if text else ""
    told.add(result["cause"])
    return f'<li class="bad"><strong>{safe(result["name"])}</strong><dl>{rows}</dl></li>'


def _question(row: dict, log: list) -> str:
    told: set[str] = set()
    out = [f"<h2>{safe(row['question'])}：{row['max_points']} 点のうち {row['points']} 点</h2>"]
    out += [f'<p class="note">{safe(remark)}</p>' for remark in row["remarks"]]
    for part in row["parts"]:
        out.append(
            f"<p>{safe(part['name'])}（{part['max_points']} 点のうち {part['points']} 点）</p>"
        )
        out.append("<ul>" + "".join(_check(r, told) for r in part["results"]) + "</ul>")
    printed = next((text for name, text, _ in log if name == row["question"] and text.strip()), "")
    if printed:
        cut = "\n……（長いので切りました）" if len(printed) > MAX_LOG else ""
        shown = f"<pre>{safe(printed[:MAX_LOG])}{cut}</pre>"
        out.append(f"<details><summary>答えのセルが表示したもの</summary>{shown}</details>")
    return "\n".join(out)


def feedback(student: str, result: dict, remarks: list[str]) -> str:
    """学生に返すページ。"""
    points = sum(q["points"] for q in result["questions"])
    most = sum(q["max_points"] for q in result["questions"])
    out = [f"<h1>{safe(result['assignment'])} の採点：{safe(student)}</h1>"]
    out.append(
        f"<p>コードの部分は、{most} 点のうち {points} 点でした。文章の答えは人が採点します。</p>"
    )
    if result["refused"]:
        out.append(f'<p class="note">採点できませんでした。{safe(result["refused"])}</p>')
    told = [*remarks, *result["remarks"], *result["person"]]
    out += [f'<p class="note">{safe(remark)}</p>' for remark in told]
    if not result["refused"]:
        out += [_question(row, result["log"]) for row in result["questions"]]
    return document(f"{result['assignment']} の採点", "\n".join(out))


def report(assignment: str, rows: list[dict], facts: dict, links: dict[str, str]) -> str:
    """成績を付ける人のための一覧。rows は成績表の行。"""
    people: dict[str, list[dict]] = collections.defaultdict(list)
    for row in rows:
        people[row["student"]].append(row)
    waiting = {s: rs for s, rs in people.items() if any(r["needs_person"] for r in rs)}
    out = [f"<h1>{safe(assignment)} の採点の一覧</h1>", _table(facts)]
    out.append(f"<h2>人が見る提出物（{len(waiting)} 件）</h2>")
    for student, theirs in waiting.items():
        why = dict.fromkeys(r["reason"] for r in theirs if r["needs_person"])
        out.append(f"<p>{_link(student, links)}：{safe(' / '.join(why))}</p>")
    out.append("<h2>問いごと</h2>" + _questions(rows))
    out.append(f"<h2>全員（{len(people)} 件）</h2>" + _everyone(people, links))
    return document(f"{assignment} の採点の一覧", "\n".join(out))


def _table(facts: dict) -> str:
    rows = "".join(f"<tr><th>{safe(k)}</th><td>{safe(v)}</td></tr>" for k, v in facts.items())
    return f"<table>{rows}</table>"


def _link(student: str, links: dict[str, str]) -> str:
    return f'<a href="{safe(links.get(student, ""))}">{safe(student)}</a>'


def _questions(rows: list[dict]) -> str:
    names = dict.fromkeys(row["question"] for row in rows)
    out = "<tr><th>問い</th><th>満点の人</th><th>0 点の人</th><th>平均</th></tr>"
    for name in names:
        mine = [row for row in rows if row["question"] == name]
        full = sum(row["points"] == row["max_points"] for row in mine)
        none = sum(row["points"] == 0 for row in mine)
        mean = sum(row["points"] for row in mine) / len(mine)
        out += f'<tr><td>{safe(name)}</td><td class="n">{full}</td><td class="n">{none}</td>'
        out += f'<td class="n">{mean:.2f} / {mine[0]["max_points"]}</td></tr>'
    return f"<table>{out}</table>"


def _everyone(people: dict[str, list[dict]], links: dict[str, str]) -> str:
    out = "<tr><th>提出者</th><th>点</th><th>人が見る</th></tr>"
    for student, theirs in people.items():
        points, most = (sum(r[k] for r in theirs) for k in ("points", "max_points"))
        mark = "要" if any(r["needs_person"] for r in theirs) else ""
        out += f'<tr><td>{_link(student, links)}</td><td class="n">{points} / {most}</td>'
        out += f"<td>{mark}</td></tr>"
    return f"<table>{out}</table>"
