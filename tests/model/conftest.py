"""One thread: at these sizes more only wait for each other, and several test processes share the machine."""

import torch

torch.set_num_threads(1)
