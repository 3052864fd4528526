"""確かめるための道具: 引数の前提を確かめ、破れていれば日本語で伝える。"""


def require(condition: object, expected: str, *got: object) -> None:
    """引数の前提 condition が成り立たなければ ValueError。必要なことと、受け取った値を伝える。"""
    if not condition:
        raise ValueError(f"{expected}。受け取った値: {', '.join(map(repr, got))}")
