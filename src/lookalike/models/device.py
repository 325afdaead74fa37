"""Where a model computes."""

import torch

from lookalike.errors import UserError, check


def checked_device(name: str) -> torch.device:
    """A device that exists on this machine.

    >>> checked_device("cpu")
    device(type='cpu')
    """
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise UserError(f"there is no device '{name}': possible are cpu, cuda, cuda:0, mps, …") from error
    absent = {"cuda": not torch.cuda.is_available(), "mps": not torch.backends.mps.is_available()}
    check(
        not absent.get(device.type, False),
        f"there is no {device.type} device on this machine: use cpu instead of '{name}'",
    )
    return device
