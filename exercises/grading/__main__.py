"""提出物のフォルダ（か zip）を採点する。

make grade ASSIGNMENT=week13 SUBMISSIONS=フォルダ OUT=フォルダ
python -m exercises.grading week13 フォルダ フォルダ --jobs 4
（exercises/ の中なら python -m grading でも同じ）
"""

import argparse
import os
import pathlib
import sys
import time

if __package__ == "grading":
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))

from exercises.grading import batch as batches
from exercises.grading import sandbox, source


def options(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m grading", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("assignment", help="課題の名前（week13 など）")
    parser.add_argument("submissions", type=pathlib.Path, help="提出物のフォルダか zip")
    parser.add_argument("out", type=pathlib.Path, help="結果を書くフォルダ")
    parser.add_argument("--jobs", type=int, default=0, help="同時に採点する数（既定：CPU の数）")
    parser.add_argument("--scheduler", default="", help="dask の番地（tcp://… か tls://…）")
    parser.add_argument(
        "--seed", default="", help="採点の種（既定：OUT の前の回の種、なければ引く）"
    )
    parser.add_argument("--db-url", default="", help="成績簿（既定：sqlite:///OUT/gradebook.db）")
    parser.add_argument("--no-gradebook", action="store_true", help="成績簿を書かない")
    parser.add_argument("--regrade", action="store_true", help="前の結果があっても採点し直す")
    parser.add_argument("--quiet", action="store_true", help="進みぐあいを表示しない")
    parser.add_argument(
        "--trust-submissions",
        action="store_true",
        help="箱なしで動かす。提出されたコードが、あなたの権限で、あなたのファイルを読み書きできる",
    )
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    asked = options(arguments)
    if asked.assignment not in source.weeks():
        return _stop(
            f"課題 {asked.assignment} はありません（あるもの：{'、'.join(source.weeks())}）"
        )
    if not asked.submissions.exists():
        return _stop(f"{asked.submissions} がありません")
    try:
        level = sandbox.choose(trust=asked.trust_submissions)
    except sandbox.Refused as refusal:
        return _stop(str(refusal))
    if level == "none":
        print(
            "注意：箱なしで動かします。提出されたコードは、あなたの権限で動きます。",
            file=sys.stderr,
        )
    start = time.monotonic()
    batch = batches.Batch(asked.assignment, asked.out, level, asked.seed)
    batch.read(asked.submissions)
    troubles = _grade(batch, asked)
    seconds = time.monotonic() - start
    facts = {
        "課題": asked.assignment,
        "提出物": len(batch.jobs),
        "前の結果を使ったもの": batch.reused,
        "箱": level,
        "かかった時間": f"{seconds:.1f} 秒",
    }
    table = batches.finish(batch, facts)
    _say(table, asked.out, facts)
    for trouble in troubles:
        print(f"成績簿に書けませんでした：{trouble}", file=sys.stderr)
    return int(bool(troubles))


def _grade(batch: batches.Batch, asked: argparse.Namespace) -> list[str]:
    """採点する。返り値は、成績簿に書けなかった人とその理由。"""
    troubles: list[str] = []
    left = batch.todo(asked.regrade)
    book = None
    if not asked.no_gradebook:
        from exercises.grading.gradebook import Book

        book = Book(asked.out, asked.assignment, asked.db_url)

    def enter(job: batches.Job, result: dict) -> None:
        if book is None:
            return
        try:
            book.write(job.folder, result, job.submission.timestamp)
        except Exception as error:  # 一人分が書けなくても、ほかの人を続ける
            book.book.db.rollback()
            troubles.append(f"{job.folder}（{type(error).__name__}：{str(error)[:200]}）")

    fresh = {job.key for job in left}
    for job in batch.jobs:
        if job.key not in fresh:
            enter(job, batch.result(job))
    with batches.progress(len(left), asked.quiet) as bar:

        def done(job: batches.Job, result: dict) -> None:
            batch.save(job, result)
            enter(job, result)
            bar.update()

        if asked.scheduler and left:
            batches.run_dask(batch, left, asked.scheduler, done)
        elif left:
            lanes = asked.jobs or min(os.cpu_count() or 1, 8)
            # 一つのプロセスの用意に数秒かかるので、少なければ増やさない
            batches.run_local(batch, left, max(1, min(lanes, 1 + len(left) // 10)), done)
    if book is not None:
        book.close()
    return troubles


def _say(table: list[dict], out: pathlib.Path, facts: dict) -> None:
    """まとめの表と、人が見る提出物。"""
    print("  ".join(f"{k}：{v}" for k, v in facts.items()))
    for name in dict.fromkeys(row["question"] for row in table):
        mine = [row for row in table if row["question"] == name]
        full = sum(row["points"] == row["max_points"] for row in mine)
        mean = sum(row["points"] for row in mine) / len(mine)
        print(f"  {name}：平均 {mean:.2f} / {mine[0]['max_points']}、満点 {full} / {len(mine)} 件")
    waiting: dict[str, str] = {}
    for row in table:
        if row["needs_person"]:
            waiting.setdefault(row["student"], row["reason"])
    print(f"人が見る提出物：{len(waiting)} 件")
    for student, why in list(waiting.items())[:30]:
        print(f"  {student}：{why}")
    if len(waiting) > 30:
        print(f"  ほか {len(waiting) - 30} 件（report.html にあります）")
    print(f"{out / 'grades.csv'}、{out / 'report.html'}、{out / 'feedback'}/ に書きました")


def _stop(message: str) -> int:
    print(message, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
