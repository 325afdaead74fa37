"""Gürbüz, Can, Alatan: Deep Metric Learning with Chance Constraints, WACV 2024.

Protocols of four datasets, studies of chance constraints, the statements of its section 4, and figures 1 and 2.
"""
