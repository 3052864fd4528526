"""採点：学生のコードは別のプロセスで動き、配列だけが行き来し、合否はこちら側で決まる。

check（検査の部品）compare（比べ方）judge（判定）
wire（配列の往復）worker（学生の側）callers（呼び出し口）
source（weekNN.md を読む）selfcheck（ノートブックの自己確認）nbgrader_plugin（nbgrader へ戻す）
"""
