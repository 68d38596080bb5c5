"""One thread: several test processes share the machine. English messages, unless a test asks for others."""

import pytest
import torch

from transformer_lite import language

torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def english(same_language):
    language.use("en")
