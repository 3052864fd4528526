"""本書の章が動かす小さな部品。話の順に読む。

checks → text → grammar → corpus → ngram → metrics → neural_lm → rnn → train → seq2seq → decode
→ attention → positional → layers → transformer → variants。どのモジュールも、自分より後のものを
import しない。plots・explore・checks は図と確認のための道具で、モデルを import しない。
hakoniwa.toml は箱庭コーパスの語と割合、colors.toml と book.mplstyle は図の色と見た目。
"""

__version__ = "0.1.0"
