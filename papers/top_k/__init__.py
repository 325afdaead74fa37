"""Sampling Wisely: Deep Image Embedding by Top-k Precision Optimization, ICCV 2019.

Protocols of three datasets, a study of the loss, and theorems 1 to 4.
"""
