"""Roth, Milbich, Sinha, Gupta, Ommer, Cohen: Revisiting Training Strategies and Generalization Performance in Deep
Metric Learning, ICML 2020.

Protocols of three datasets, studies of losses, samplers, switched triplets and mixup, and the toy of section G.
"""
