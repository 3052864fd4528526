"""採点：学生のコードは別のプロセスで動き、配列だけが行き来し、合否はこちら側で決まる。

check（検査の部品）compare（比べ方）judge（判定）
wire（配列の往復）worker（学生の側）callers（呼び出し口）
sandbox（箱）notebook・canonical・intake・collect（受け取り）core（一人分）batch（全員分）
remarks・page（言葉とページ）gradebook（成績簿）magics（学生の側）
source（weekNN.md を読む）selfcheck（ノートブックの自己確認）nbgrader_plugin（nbgrader へ戻す）
"""
