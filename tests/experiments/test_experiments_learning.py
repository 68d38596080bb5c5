"""What the experiments that train a model share: the same numbers every time, and nothing left behind."""

import itertools

import pytest
import torch

from transformer_lite.experiments.learning import alone, batches, learn
from transformer_lite.model import Transformer, TransformerConfig
from transformer_lite.translation.training import loss_of

PAIRS = [([4 + i % 5, 5 + i % 3], [4 + (i + 1) % 5, 6, 7 + i % 2]) for i in range(40)]


def small():
    return Transformer(TransformerConfig(source_vocab=10, d_model=16, n_heads=2, d_ff=32, n_layers=1, dropout=0.0))


def test_alone_gives_threads_and_random_numbers_back():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    with pytest.raises(KeyError), alone(1):
        inside = torch.rand(3)
        assert torch.get_num_threads() == 1
        raise KeyError
    assert torch.get_num_threads() == 2
    assert torch.equal(torch.rand(3), expected) and not torch.equal(inside, expected)
    torch.set_num_threads(before)


def test_batches_go_on_after_an_epoch_with_another_order():
    one_epoch = sum(batch.labels.shape[0] for batch in itertools.islice(batches(PAIRS, 80, 0), 4))
    assert one_epoch == 40
    first, second = (list(itertools.islice(batches(PAIRS, 80, 0), start, start + 4)) for start in (0, 4))
    assert sum(batch.labels.shape[0] for batch in second) == 40
    assert any(a.labels.shape != b.labels.shape or (a.labels != b.labels).any() for a, b in zip(first, second, strict=True))


def test_learning_lowers_the_loss_and_is_the_same_every_time():
    runs = []
    for _ in range(2):
        with alone(3):
            model = small()
            batch = next(batches(PAIRS, 80, 0))
            start = float(loss_of(model, batch).detach()) / batch.tokens
            runs.append(learn(model, batches(PAIRS, 80, 0), lambda step: 0.003, 30))
    assert runs[0] == runs[1] and len(runs[0]) == 30
    assert runs[0][0] == pytest.approx(start)
    assert runs[0][-1] < 0.5 * runs[0][0]


def test_a_rate_of_zero_changes_nothing_and_the_rate_is_asked_for_every_step():
    asked = []

    def rate(step):
        asked.append(step)
        return 0.0

    with alone(0):
        model = small()
        before = [parameter.clone() for parameter in model.parameters()]
        learn(model, batches(PAIRS, 80, 0), rate, 5)
    assert asked == [1, 2, 3, 4, 5]
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))


def test_clipping_bounds_the_gradient():
    norms = {}
    for clip in (None, 0.01):
        with alone(0):
            model = small()
            learn(model, batches(PAIRS, 80, 0), lambda step: 0.0, 1, clip=clip)
            norms[clip] = float(torch.stack([p.grad.norm() for p in model.parameters()]).norm())
    assert norms[None] > 0.1 and norms[0.01] == pytest.approx(0.01, rel=1e-3)
