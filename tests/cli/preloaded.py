"""Imported once by the server of tests.cli.processes, slow libraries too that a verb loads only where it needs them.

No threads may start here: forked children would lose them.
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"

import openTSNE
import PIL.Image
import pydantic.fields
import rich.console
import sklearn.utils
import torch
import torch._dynamo

import lookalike.cli
import lookalike.evaluation
import lookalike.fit
import lookalike.search.scan.kernel
import lookalike.search.serve.server

torch.set_num_threads(1)
PIL.Image.init()
lookalike.evaluation.evaluate(torch.eye(4), [0, 0, 1, 1])  # loads what is compiled
LOADED = (openTSNE, pydantic.fields, rich.console, sklearn.utils, torch._dynamo, lookalike)
