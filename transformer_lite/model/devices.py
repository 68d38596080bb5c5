"""Which device to compute on."""

from __future__ import annotations

import os
from typing import TypeVar

import torch
from torch import nn

Module = TypeVar("Module", bound=nn.Module)


def device() -> torch.device:
    """CUDA where there is one, else the CPU; ``TRANSFORMER_LITE_DEVICE`` (cpu, cuda, cuda:1, mps) decides otherwise.

    Apple's MPS is used only when asked for: it lacks float64 and some operations.

    Raises:
        ValueError: the device asked for is unknown or not there.
    """
    asked = os.environ.get("TRANSFORMER_LITE_DEVICE", "").strip().lower()
    if not asked:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        chosen = torch.device(asked)
    except RuntimeError:
        raise ValueError(f"TRANSFORMER_LITE_DEVICE must be cpu, cuda, cuda:N or mps; got {asked!r}.") from None
    there = {
        "cpu": lambda: True,
        "cuda": lambda: (chosen.index or 0) < torch.cuda.device_count(),
        "mps": torch.backends.mps.is_available,
    }.get(chosen.type)
    if there is None:
        raise ValueError(f"TRANSFORMER_LITE_DEVICE must be cpu, cuda, cuda:N or mps; got {asked!r}.")
    if not there():
        raise ValueError(f"TRANSFORMER_LITE_DEVICE is {asked!r}, but there is no such device here; unset it to use the CPU.")
    return chosen


def to_device(module: Module, *, compile: bool = False) -> Module:
    """Move a module to `device`, and compile it if asked: its first calls then take long, later ones less.

    Args:
        module: moved in place.
        compile: with `torch.compile`, for lengths that vary; on a CPU it needs a C++ compiler.

    Returns:
        The module, or its compiled form, which shares its parameters.

    Raises:
        ValueError: as `device`.
    """
    module = module.to(device())
    return torch.compile(module, dynamic=True) if compile else module
