"""Imported once by the server of tests.cli.processes. No threads may start here: forked children would lose them."""

import os

os.environ["OMP_NUM_THREADS"] = "1"

import rich.console
import torch
import torch._dynamo

import lookalike.cli
import lookalike.fit

torch.set_num_threads(1)
LOADED = (rich.console, torch._dynamo, lookalike.cli, lookalike.fit)
