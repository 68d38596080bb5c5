"""Writing token by token: with and without cache, in batches and alone, greedily, by beam and by chance."""

import itertools
import math

import pytest
import torch

from transformer_lite.model import Transformer, TransformerConfig
from transformer_lite.model.baselines import (
    ConvolutionalConfig,
    ConvolutionalTranslator,
    RecurrentConfig,
    RecurrentTranslator,
)
from transformer_lite.model.families import DecoderOnly, DecoderOnlyConfig
from transformer_lite.model.generation import beam_search, next_token, penalty

SOURCE = torch.tensor([[3, 4, 5, 6, 7], [8, 9, 10, 0, 0], [3, 0, 0, 0, 0]])


def transformer(seed=0, **changes):
    torch.manual_seed(seed)
    settings = {"source_vocab": 13, "target_vocab": 9, "d_model": 16, "n_heads": 2, "d_ff": 32, "n_layers": 2, "dropout": 0.1}
    model = Transformer(TransformerConfig(**settings | changes))
    with torch.no_grad():  # sharper than at the start, so that hypotheses differ
        model.output.weight.mul_(3)
    return model


def baselines():
    sizes = {"source_vocab": 13, "target_vocab": 9, "d_model": 16}
    for cell, attention, layers in (("rnn", "none", 1), ("lstm", "none", 2), ("lstm", "bahdanau", 1), ("lstm", "gnmt", 3)):
        yield (
            f"{cell}-{attention}",
            lambda c=cell, a=attention, n=layers: RecurrentTranslator(RecurrentConfig(**sizes, n_layers=n, cell=c, attention=a)),
        )
    for dilated in (False, True):
        yield f"convolution-{dilated}", lambda d=dilated: ConvolutionalTranslator(ConvolutionalConfig(**sizes, dilated=d))


MODELS = {
    "transformer": transformer,
    "pre": lambda: transformer(norm="pre"),
    "learned": lambda: transformer(positions="learned"),
    "other d_k": lambda: transformer(d_k=5, bias=False),
    "shared": lambda: transformer(target_vocab=None),
    "untied": lambda: transformer(tied=False),
} | dict(baselines())


@pytest.fixture(params=MODELS)
def model(request):
    torch.manual_seed(1)
    return MODELS[request.param]()


@pytest.mark.parametrize("beam", [1, 2, 4])
def test_with_and_without_cache_the_tokens_are_the_same(model, beam):
    cached = model.generate(SOURCE, 12, beam=beam)
    assert torch.equal(cached, model.generate(SOURCE, 12, beam=beam, cache=False))
    assert cached.shape[0] == 3 and cached.shape[1] <= 12
    assert model.training  # as it was before


@pytest.mark.parametrize("beam", [1, 3])
def test_a_sentence_is_translated_alike_in_a_batch_and_alone(model, beam):
    together = model.generate(SOURCE, 10, beam=beam)
    for row, n in enumerate((5, 3, 1)):
        alone = model.generate(SOURCE[row : row + 1, :n], 10, beam=beam)[0]
        assert torch.equal(together[row, : len(alone)], alone)
        assert (together[row, len(alone) :] == 0).all()


def test_greedy_takes_the_best_token_given_all_before(model):
    model.eval()
    written = model.generate(SOURCE, 8)
    fed = torch.cat([torch.full((3, 1), 1), written[:, :-1]], dim=1)
    best = model(SOURCE, fed)[..., 1:].argmax(dim=-1) + 1  # never PAD
    for row in range(3):
        ends = (written[row] == 2).nonzero()
        n = int(ends[0]) + 1 if len(ends) else written.shape[1]
        assert torch.equal(written[row, :n], best[row, :n])
        assert (written[row, n:] == 0).all()


def test_everything_stops_at_eos():
    model = transformer()
    with torch.no_grad():  # make EOS the most probable token at once
        model.decoder.layers[-1].around_feed_forward.norm.bias.copy_(model.output.weight[2] * 5)
    for beam in (1, 4):
        assert model.generate(SOURCE, 20, beam=beam).tolist() == [[2]] * 3


def score(model, source, tokens, alpha):
    fed = torch.tensor([[1, *tokens[:-1]]])
    log_p = model(source, fed).log_softmax(dim=-1)[0]
    return float(sum(log_p[i, token] for i, token in enumerate(tokens))) / penalty(len(tokens), alpha)


@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.5])
@pytest.mark.parametrize("seed", range(4))
def test_a_beam_as_wide_as_all_sentences_finds_the_best_one(alpha, seed):
    """Against the enumeration of every sentence of up to three tokens."""
    model = transformer(seed, target_vocab=6).eval()
    source, limit, vocab = SOURCE[:1], 3, 6
    with torch.inference_mode():
        finished = {
            (*start, 2): score(model, source, (*start, 2), alpha)
            for n in range(limit)
            for start in itertools.product([t for t in range(vocab) if t not in (0, 2)], repeat=n)
        }
    best = max(finished, key=finished.get)
    written = model.generate(source, limit, beam=vocab**limit, length_penalty=alpha)[0].tolist()
    assert tuple(written) == best


def test_a_wider_beam_scores_no_worse_here_and_the_penalty_lengthens():
    model = transformer(3).eval()
    lengths = [model.generate(SOURCE[:1], 12, beam=6, length_penalty=alpha).shape[1] for alpha in (0.0, 3.0)]
    assert lengths[0] <= lengths[1]
    assert penalty(1, 0.6) == 1.0 and penalty(13, 1.0) == 3.0 and penalty(7, 0.0) == 1.0


def test_a_beam_without_any_end_gives_its_best_open_hypothesis():
    class Never:
        """Never ends; 4 is always more probable than 3."""

        def step(self, tokens):
            logits = torch.full((len(tokens), 5), -math.inf)
            logits[:, 3], logits[:, 4] = 0.0, 1.0
            return logits

        def reorder(self, rows):
            pass

    first = torch.tensor([1, 1])
    assert beam_search(Never(), first, 4, 2, 2, 0, 0.6).tolist() == [[4, 4, 4, 4]] * 2


def test_by_default_it_writes_as_far_as_the_paper_allows():
    model = transformer()
    with torch.no_grad():
        model.output.weight[2] = 0
        model.decoder.layers[-1].around_feed_forward.norm.bias.copy_(model.output.weight[5] * 5)
    assert model.generate(SOURCE).shape[1] == 5 + 50


def in_plain_words(model, source, limit, beam, alpha):
    """Beam search for one sentence, with lists and whole forward passes."""
    hypotheses, finished = [((), 0.0)], {}
    for _ in range(limit):
        candidates = []
        for tokens, total in hypotheses:
            log_p = model(source, torch.tensor([[1, *tokens]]))[0, -1].log_softmax(dim=-1).tolist()
            candidates += [((*tokens, token), total + log_p[token]) for token in range(1, len(log_p))]
        candidates = sorted(candidates, key=lambda candidate: -candidate[1])[: 2 * beam]
        finished |= {tokens: total / penalty(len(tokens), alpha) for tokens, total in candidates[:beam] if tokens[-1] == 2}
        hypotheses = [candidate for candidate in candidates if candidate[0][-1] != 2][:beam]
    return list(max(finished, key=finished.get) if finished else hypotheses[0][0])


@pytest.mark.parametrize(
    ("vocab", "beam", "limit", "alpha"), [(7, 2, 5, 0.6), (7, 3, 6, 0.0), (5, 8, 4, 1.5), (9, 4, 1, 0.6), (4, 9, 5, 2.0)]
)
@pytest.mark.parametrize("seed", range(3))
def test_beam_search_is_what_plain_words_say(seed, vocab, beam, limit, alpha):
    """Also with a beam wider than the vocabulary, a limit of one token, and a source of padding only."""
    model = transformer(seed, target_vocab=vocab, norm="pre" if seed == 1 else "post").eval()
    source = torch.tensor([[3, 4, 5, 6], [7, 8, 0, 0], [0, 0, 0, 0]])
    written = model.generate(source, limit, beam=beam, length_penalty=alpha)
    with torch.inference_mode():
        for row in range(3):
            expected = in_plain_words(model, source[row : row + 1], limit, beam, alpha)
            assert [token for token in written[row].tolist() if token] == expected


@pytest.mark.parametrize("beam", [1, 3])
def test_no_sentence_gives_no_sentence(model, beam):
    assert len(model.generate(SOURCE[:0], 5, beam=beam)) == 0


def test_what_was_written_can_be_changed_and_trained_on():
    model, prompt = transformer(target_vocab=None), torch.tensor([[1, 4, 5]])
    for beam in (1, 2):
        written = model.generate(SOURCE, 5, beam=beam)
        written[:, 0] = 1
        model(SOURCE, written).sum().backward()
    language_model = gpt()
    language_model.loss(language_model.generate(prompt, 5)).backward()


@pytest.mark.parametrize("fails", [False, True])
def test_every_part_is_afterwards_in_the_mode_in_which_it_was(fails):
    settings = {"positions": "learned", "max_positions": 5 if fails else 60}
    model = transformer(**settings).train()
    model.encoder.eval()  # frozen, as for fine-tuning
    modes = [part.training for part in model.modules()]
    with torch.no_grad():
        model.output.weight[2] = 0
        model.decoder.layers[-1].around_feed_forward.norm.bias.copy_(model.output.weight[5] * 5)  # never EOS
    if fails:
        with pytest.raises(ValueError, match="5 learned positions"):
            model.generate(SOURCE)
    else:
        model.generate(SOURCE)
    assert [part.training for part in model.modules()] == modes


@pytest.mark.parametrize("alpha", [-0.5, math.nan])
def test_a_penalty_that_falls_with_the_length_is_refused(alpha):
    with pytest.raises(ValueError, match="length_penalty"):
        transformer().generate(SOURCE, 5, beam=2, length_penalty=alpha)


@pytest.mark.parametrize(("arguments", "words"), [({"max_new_tokens": 0}, "max_new_tokens"), ({"beam": 0}, "beam")])
def test_numbers_below_one_are_refused(arguments, words):
    with pytest.raises(ValueError, match=words):
        transformer().generate(SOURCE, **arguments)


def test_a_single_sentence_without_batch_is_refused():
    with pytest.raises(ValueError, match="batch"):
        transformer().generate(SOURCE[0])


# --- by chance


def gpt(seed=0):
    torch.manual_seed(seed)
    return DecoderOnly(DecoderOnlyConfig(vocab=11, d_model=16, n_heads=2, d_ff=32)).eval()


@pytest.mark.parametrize("choices", [{"temperature": 0}, {"temperature": 0.7}, {"top_k": 3}, {"top_p": 0.8}])
def test_sampling_is_the_same_with_and_without_cache_and_repeatable(choices):
    model, prompt = gpt(), torch.tensor([[1, 4, 5], [1, 6, 7]])
    draws = [
        model.generate(prompt, 12, **choices, cache=cache, generator=torch.Generator().manual_seed(5))
        for cache in (True, False, True)
    ]
    assert torch.equal(draws[0], draws[1]) and torch.equal(draws[0], draws[2])


def test_next_token_draws_by_probability_and_only_where_it_may():
    logits = torch.tensor([[2.0, 1.0, 0.0, -1.0]]).repeat(20_000, 1)
    p = logits[0].softmax(dim=-1)
    generator = torch.Generator().manual_seed(0)

    def shares(**choices):
        return torch.bincount(next_token(logits, generator=generator, **choices), minlength=4) / 20_000

    torch.testing.assert_close(shares(), p, atol=0.015, rtol=0)
    torch.testing.assert_close(shares(temperature=0.5), (2 * logits[0]).softmax(dim=-1), atol=0.015, rtol=0)
    torch.testing.assert_close(shares(top_k=2), torch.tensor([*p[:2] / p[:2].sum(), 0, 0]), atol=0.015, rtol=0)
    assert p[0] < 0.7 < p[:2].sum() < 0.9 < p[:3].sum()
    torch.testing.assert_close(shares(top_p=0.7), torch.tensor([*p[:2] / p[:2].sum(), 0, 0]), atol=0.015, rtol=0)
    torch.testing.assert_close(shares(top_p=0.9), torch.tensor([*p[:3] / p[:3].sum(), 0]), atol=0.015, rtol=0)
    assert shares(top_p=1e-6).tolist() == [1, 0, 0, 0]  # the most probable one always may
    assert shares(temperature=0).tolist() == [1, 0, 0, 0]
    assert shares(top_k=99).gt(0).all()


def test_next_token_draws_among_k_also_where_all_are_alike_and_near_temperature_0():
    generator = torch.Generator().manual_seed(0)
    assert len(next_token(torch.zeros(1000, 7), top_k=3, generator=generator).unique()) == 3
    logits = torch.tensor([[10.0, 30.0, 20.0]]).repeat(50, 1)
    assert next_token(logits, temperature=1e-40, generator=generator).tolist() == [1] * 50


@pytest.mark.parametrize("choice", [{"temperature": -1}, {"top_k": 0}, {"top_p": 0}, {"top_p": 1.5}])
def test_impossible_choices_are_refused(choice):
    with pytest.raises(ValueError, match=next(iter(choice))):
        next_token(torch.zeros(1, 3), **choice)
