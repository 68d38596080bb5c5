"""transformer_lite: the Transformer, small enough to hold in one head.

The learner's front door is ``from transformer_lite import lab``; the paper's equations in NumPy are in
``transformer_lite.equations`` (Vaswani et al. 2017, "Attention Is All You Need").
"""

__version__ = "0.1.0"
