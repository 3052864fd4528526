"""練習問題：問題の文（weekNN.md）、検査（checks/）、採点（grading/）。"""
