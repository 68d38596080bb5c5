"""The sentence that the explorers of generation show where no translator is at hand. Made again, after another one ships, by

python tests/explore/looked.py
"""

import json
from pathlib import Path

import numpy as np

from transformer_lite.explore.looking import DATA, EXAMPLE, WEIGHTS

DIGITS = 3


def looked() -> dict:
    """What ``transformer_lite/explore/data/looked.json`` must hold."""
    from transformer_lite.lab.translating import shipped
    from transformer_lite.translation import grammar
    from transformer_lite.translation.translator import TextTranslator

    found = TextTranslator.load(shipped()).look(EXAMPLE, beam=1)
    likely = [[[token, round(p, 5)] for token, p in row] for row in found.likely]

    def both(tokens):
        return {lang: [grammar.gloss(token, lang) for token in tokens] for lang in ("ja", "en")}

    every = sorted({token for row in likely for token, _ in row})
    glosses = {lang: dict(zip(every, row, strict=True)) for lang, row in both(every).items()}
    return {
        "text": EXAMPLE,
        "source": found.source,
        "target": found.target,
        "source_glosses": both(found.source),
        "target_glosses": both(found.target),
        "glosses": glosses,
        "likely": likely,
        **{name: np.round(getattr(found, name).astype(float), DIGITS).tolist() for name in WEIGHTS},
    }


def made_up(text: str, n_target: int = 4, layers: int = 2, heads: int = 4, **more) -> dict:
    """What a ``look(text)`` returns, without a translator: random weights, always the same for a text."""
    source = [*text.split(), "</s>"]
    target = [*(f"語{i}" for i in range(1, n_target)), "</s>"]
    rng = np.random.default_rng(len(text))

    def softmax(n_queries, n_keys, hidden):
        scores = np.where(hidden, -np.inf, 2 * rng.standard_normal((layers, heads, n_queries, n_keys)))
        weights = np.exp(scores)
        return (weights / weights.sum(axis=-1, keepdims=True)).astype(np.float32)

    n = len(source)
    return {
        "source": source,
        "target": target,
        "source_glosses": [f"訳 {token}" for token in source],
        "target_glosses": [f"gloss of {token}" for token in target],
        "cross": softmax(n_target, n, False),
        "encoder": softmax(n, n, False),
        "decoder": softmax(n_target, n_target, ~np.tri(n_target, dtype=bool)),
        "likely": [[(token, 0.7 - i / 100), ("別", 0.2), ("他", 0.05)] for i, token in enumerate(target)],
        "doubts": None,
        "own": True,
        **more,
    }


if __name__ == "__main__":
    DATA.parent.mkdir(exist_ok=True)
    DATA.write_text(json.dumps(looked(), ensure_ascii=False) + "\n", "utf-8")
    print(f"{Path(DATA)}: {DATA.stat().st_size:,} bytes")
