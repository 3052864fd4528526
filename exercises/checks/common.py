"""どの週の検査も使う、短い書き方。"""

from collections.abc import Callable, Iterator

from exercises.grading import source
from exercises.grading.check import Draw, Given, Probe, Wrong


def corrected(draw: Draw, question: str, *names: str) -> Given | None:
    """採点では、前の関数を正しいものに差しかえて、後の関数だけを見る。"""
    return None if draw.public else Given(names, source.model(question))


def small_answers(question: str) -> Callable[[Draw], Iterator[Probe]]:
    """記号や数で答える小問（answer_12_1 など）。自己確認では聞かない（答えが見えてしまうため）。"""

    def probes(draw: Draw) -> Iterator[Probe]:
        if not draw.public:
            name = f"answer_{question.replace('-', '_')}"
            yield Probe(name, label="小問の答え", repeat=True)

    return probes


def wrong(name: str, hint: str, *edits: tuple[str, str]) -> Wrong:
    """模範解答を書きかえて作る誤答の見本。"""
    return Wrong(name, edits, hint=hint)
