"""本書の章が動かす小さな部品。話の順に読む。

text → grammar → corpus → ngram → metrics → neural_lm → train → decode → attention → positional
→ transformer。どのモジュールも、自分より後のものを import しない。
plots・explore・checks は図と確認のための道具で、モデルを import しない。
"""

__version__ = "0.1.0"
