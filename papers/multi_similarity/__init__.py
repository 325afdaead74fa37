"""Wang, Han, Huang, Dong, Scott: Multi-Similarity Loss with General Pair Weighting for Deep Metric Learning, CVPR 2019.

Protocols of four datasets, studies of its parts, batches and embeddings, and recall against one setting.
"""
