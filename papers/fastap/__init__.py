"""Cakir, He, Xia, Kulis, Sclaroff: Deep Metric Learning to Rank, CVPR 2019.

Protocols of three datasets, studies of batches, and the statements about FastAP.
"""
