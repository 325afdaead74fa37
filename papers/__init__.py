"""What reproduces the five papers: `python -m papers`, in a clone.

A folder for each paper has its protocols, its studies and the statements that can be tried without training; `beds` has
the recipes that studies of several papers share, `reproduction` all claims, results and verdicts.
"""
