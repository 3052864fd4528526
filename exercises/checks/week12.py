"""第 12 週の検査：RNN と系列変換（12-1〜12-4）、Attention（12-5〜12-8）。"""

from exercises.checks import week12_attention, week12_rnn

QUESTIONS = (*week12_rnn.QUESTIONS, *week12_attention.QUESTIONS)
