"""Which device to compute on."""

from __future__ import annotations

import os

import torch


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
