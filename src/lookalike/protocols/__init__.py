"""Protocols: which images train, validate and test, and what is reported.

Throughout, `dataset` is what is divided or was embedded. `test` and `validation` are shares of all classes and of the
train classes, used where the dataset has no such splits of its own; `seed` draws them. What is judged has a `name`, a
`role` ("model" or "baseline") and `embeddings`, n × d; `geometry` ("sphere", "ball" or "none") is where they are
compared, `metrics` what is measured (empty: all ranking metrics).
"""
