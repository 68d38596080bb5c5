"""What went wrong, as a claim about numbers: the trap whose numbers these are, or else the law that is broken.

A trap is named only if one way of writing it gives what the learner's function gave on every input. Two at once are tried after
the single ones. If nothing fits, that is said, with what can be seen for certain.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from transformer_lite import equations, traps
from transformer_lite.practice import properties
from transformer_lite.practice.comparing import largest_difference, right, same_mistake
from transformer_lite.practice.fixtures import EXTREME, MORE, PLAIN
from transformer_lite.traps import attention as attention_traps
from transformer_lite.traps.knobs import Setting

if TYPE_CHECKING:
    from transformer_lite.practice.judging import Problem, Seen, _Judgement

PROBE_LIMIT = 0.5  # seconds for the extra calls that show a property


@dataclass
class Finding:
    """Which traps, how surely, and the numbers that say so."""

    traps: tuple[str, ...] = ()
    certainty: str = "none"
    evidence: dict[str, Any] = field(default_factory=dict)


_computed: dict[tuple[str, str, int], Any] = {}  # what each trap gives on each fixed input, computed when first needed


class _Search:
    """The search for the setting of the knobs that gives what the learner's function gave."""

    def __init__(self, judgement: _Judgement, problem: Problem) -> None:
        self.judgement = judgement
        self.exercise = judgement.exercise
        self.family = traps.family(self.exercise.id)
        phase = problem.fixture.phase if problem.fixture is not None else PLAIN
        self.phase = phase
        usable = [seen for seen in judgement.seen if seen.fixture.phase <= phase]
        self.decisive = [seen for seen in usable if not (seen.fixture.may_raise and seen.outcome.error is not None)]
        if all(seen.outcome.error is not None for seen in self.decisive):
            self.decisive = []  # it raises whatever it is given: no numbers, so nothing that they could be equal to
        # Where the numbers are wrong is where a candidate fails soonest.
        self.decisive.sort(key=lambda seen: (seen.right, seen.fixture.phase))

    def arrays(self, seen: Seen) -> tuple[NDArray, ...] | None:
        if self.exercise.boolean:
            truth, _ = self.judgement.mask(seen)
            return None if truth is None else (truth,)
        return seen.arrays

    def gives(self, setting: Setting, seen: Seen, cached: tuple[str, int] | None = None) -> tuple[NDArray, ...] | None:
        if cached is None or seen.fixture.seed is not None:
            return self.family.outputs(setting, seen.fixture.arguments)
        key = (f"{self.exercise.id} {cached[0]}", seen.fixture.name, cached[1])
        if key not in _computed:
            _computed[key] = self.family.outputs(setting, seen.fixture.arguments)
        return _computed[key]

    def fits(self, setting: Setting, seen: Seen, cached: tuple[str, int] | None = None) -> bool:
        mistaken, actual = self.gives(setting, seen, cached), self.arrays(seen)
        if mistaken is None:
            return seen.outcome.error is not None
        if actual is None or len(actual) != len(mistaken):
            return False
        return all(same_mistake(one, other) for one, other in zip(actual, mistaken, strict=True))

    def fits_all(self, setting: Setting, cached: tuple[str, int] | None = None) -> bool:
        return bool(self.decisive) and all(self.fits(setting, seen, cached) for seen in self.decisive)

    def exact(self) -> list[tuple[tuple[str, ...], Setting]]:
        """The single mistakes that fit everywhere; if there are none, mistakes with a number of their own; then pairs."""
        found = [
            one
            for number, one in enumerate(self.family.singles)
            if self.fits_all(one[1], ("single", number)) and self.is_mistake(one[1]) and self.overflows(one[0])
        ]
        if not found and "AT13" in self.family.traps:
            found = self.own_constant(({},), ())
        if not found and "AT17" in self.family.traps:
            found = self.own_temperature()
        if not found:
            found = [
                one
                for number, one in enumerate(self.family.pairs)
                if self.fits_all(one[1], ("pair", number)) and self.is_mistake(one[1])
            ]
        if not found and "AT13" in self.family.traps:
            for key in ("AT1", "AT2", "AT3", "AT4", "AT5"):
                found = found or self.own_constant(self.family.traps[key].settings, (key,))
        return found

    def is_mistake(self, setting: Setting) -> bool:
        """A setting that gives the right answer on all these inputs explains nothing."""
        for seen in self.decisive:
            mistaken = self.gives(setting, seen)
            if mistaken is None or not all(right(one, other) for one, other in zip(mistaken, seen.expected, strict=True)):
                return True
        return False

    def overflows(self, keys: tuple[str, ...]) -> bool:
        """NaN from −∞ and from a maximum that was not subtracted look alike: the second one also overflows without a mask."""
        extreme = [
            seen for seen in self.judgement.seen if seen.fixture.phase == EXTREME and "masked" not in seen.fixture.name
        ]
        return "SM1" not in keys or not extreme or not all(seen.right for seen in extreme)

    def own_constant(self, scales: tuple[Setting, ...], keys: tuple[str, ...]) -> list[tuple[tuple[str, ...], Setting]]:
        """Hidden scores filled with, or lowered by, a constant not listed: read off the weights, then tried everywhere."""
        for scale in scales:
            for hide in ("add", "fill"):
                constants = []
                for seen in self.decisive:
                    if len(seen.fixture.arguments) < 4:
                        if not self.fits(scale, seen):
                            break
                        continue
                    constant = _constant(seen, scale, hide)
                    if constant is None or not self.fits({**scale, "hide": hide, "constant": constant}, seen):
                        break
                    constants.append(constant)
                else:
                    # A constant of either sign is this mistake; one next to zero is another.
                    if constants and min(abs(constant) for constant in constants) > 1e-5:
                        return [(("AT13", *keys), {**scale, "hide": hide, "constant": constants[0]})]
        return []

    def own_temperature(self) -> list[tuple[tuple[str, ...], Setting]]:
        """Cosines or distances times a number that nobody listed."""
        for key, kinds in (("AT17", ("cosine",)), ("AT19", ("distance²", "distance"))):
            for kind in kinds:
                settings = []
                for seen in self.decisive:
                    scale = self._temperature(seen, kind)
                    setting = {"similarity": kind, "scale": scale}
                    # Close to 0, anything would fit equal weights; a negative cosine is another thought.
                    if scale is None or abs(scale) < 1e-3 or (kind == "cosine" and scale < 0) or not self.fits(setting, seen):
                        break
                    settings.append(setting)
                else:
                    if settings:
                        return [((key,), settings[0])]
        return []

    def _temperature(self, seen: Seen, kind: str) -> float | None:
        actual = self.arrays(seen)
        if actual is None or seen.outcome.error is not None:
            return None
        queries, keys = seen.fixture.arguments[:2]
        (compared,) = attention_traps.scores(queries, keys, similarity=kind, scale=1.0)
        yours = actual[-1]
        if yours.shape != compared.shape:
            return None
        if self.exercise.id != "attention_scores":
            visible = seen.fixture.arguments[3] if len(seen.fixture.arguments) > 3 else np.ones(yours.shape, dtype=bool)
            with np.errstate(all="ignore"):
                logs = np.log(yours.astype(np.float64))
            compared = np.where(visible, compared, np.nan)
            compared = compared - np.nanmean(compared, axis=-1, keepdims=True)
            logs = np.where(visible, logs, np.nan)
            yours = logs - np.nanmean(logs, axis=-1, keepdims=True)
            compared, yours = np.nan_to_num(compared), np.nan_to_num(yours, posinf=0.0, neginf=0.0)
        size = float((compared**2).sum())
        return float((compared * yours).sum()) / size if size > 1e-12 else 1.0

    def closest(self) -> tuple[tuple[str, ...], Setting] | None:
        """A single mistake that fits all of the inputs but one."""
        if len(self.decisive) < 4:
            return None
        for number, (keys, setting) in enumerate(self.family.singles):
            misses = [seen for seen in self.decisive if not self.fits(setting, seen, ("single", number))]
            hits = [seen for seen in self.decisive if seen not in misses and not seen.right]
            if len(misses) == 1 and len(hits) >= 3:
                return keys, setting
        return None


def _constant(seen: Seen, scale: Setting, hide: str) -> float | None:
    """The constant that hidden scores were raised by or filled with, if weights like these come from one."""
    if seen.arrays is None or seen.arrays[-1].shape != seen.expected[-1].shape:
        return None
    queries, keys, values, mask = seen.fixture.arguments
    (scores,) = attention_traps.scores(queries, keys, values, **scale)
    weights = seen.arrays[-1].astype(np.float64)
    mask = np.broadcast_to(mask, weights.shape)
    if not (weights > 0).all():
        return None
    logs = np.log(weights)
    level = (logs - scores).mean(axis=-1, where=mask, keepdims=True)  # the row's normalisation, from what is visible
    read = (logs - level)[~mask] - (scores[~mask] if hide == "add" else 0.0)
    return float(np.median(read))


def diagnose(judgement: _Judgement, problem: Problem) -> Finding:
    """Name the trap, or say what can be said without one."""
    search = _Search(judgement, problem)
    if search.phase == EXTREME:
        finding = _in_the_extreme(search, problem)
        if finding is not None:
            return finding
    found = search.exact()
    if found:
        keys, setting = _best(search, found)
        keys = tuple(sorted(_by_its_bits(search, keys), key=list(search.family.traps).index))
        return Finding(keys, "exact", _evidence(search, keys, setting, judgement))
    named = _by_property(search)
    if named is not None:
        return named
    nearest = search.closest()
    if nearest is not None and not judgement._unsteady():
        keys, setting = nearest
        return Finding(keys, "closest", _evidence(search, keys, setting, judgement))
    return Finding(evidence=_laws(search, problem))


def _by_property(search: _Search) -> Finding | None:
    """A trap that has no numbers of its own, known by the property that shows it."""
    from transformer_lite.practice import topics

    recognise = topics.by_property().get(search.exercise.id)
    key = recognise(search.judgement) if recognise is not None else None
    if key is None:
        return None
    shown = properties.show(key, search.judgement, PROBE_LIMIT)
    return Finding((key,), "exact", {"property": {"key": key, **shown}} if shown else {})


def _best(search: _Search, found: list[tuple[tuple[str, ...], Setting]]) -> tuple[tuple[str, ...], Setting]:
    """Of several that fit, the one that fits most of the inputs judged later, too (batches), and then the first."""
    later = [seen for seen in search.judgement.seen if seen.fixture.phase == MORE and seen.fixture.phase > search.phase]
    return max(found, key=lambda one: sum(search.fits(one[1], seen) for seen in later))


def _in_the_extreme(search: _Search, problem: Problem) -> Finding | None:
    """Right everywhere but where exp overflows."""
    if "SM1" not in search.family.traps:
        return None
    wrong = [seen for seen in search.judgement.seen if not seen.right and seen.fixture.name in ("large", "very negative", "huge")]
    values = [seen.arrays[-1] for seen in wrong if seen.arrays is not None]
    if not wrong or len(values) < len(wrong):
        return None
    if all(not np.isfinite(one).all() or (np.abs(one.sum(axis=-1)) < 1e-9).any() for one in values):
        evidence = {"matched": len(wrong), "what": search.exercise.returns[-1], "only_extreme": True}
        shown = properties.show("SM1", search.judgement, PROBE_LIMIT)
        return Finding(("SM1",), "exact", evidence | ({"property": {"key": "SM1", **shown}} if shown else {}))
    return None


def _by_its_bits(search: _Search, keys: tuple[str, ...]) -> tuple[str, ...]:
    """Masks that (almost) do nothing: ignored, or 1e-9 where -1e9 was meant? The numbers agree to 1e-10; the bits tell."""
    if not {"AT14", "AT20", "AT12"} & set(keys) or "AT14" not in search.family.traps:
        return keys
    by_name = {seen.fixture.name: seen for seen in search.judgement.seen}
    masked, plain = by_name.get("rectangular, masked"), by_name.get("rectangular")
    if masked is None or plain is None or masked.arrays is None or plain.arrays is None:
        return keys
    if "AT12" in keys:
        constant = _constant(masked, {}, "fill") if keys == ("AT12",) and masked.arrays[-1].dtype == np.float64 else None
        tiny = constant is not None and 1e-12 < abs(constant) < 1e-5
        return ("AT14",) if tiny else keys
    difference = largest_difference(masked.arrays[-1], plain.arrays[-1]) or 0.0
    name = "AT14" if difference > 1e-13 else "AT20"
    return tuple(name if key in ("AT14", "AT20") else key for key in keys)


def _evidence(search: _Search, keys: tuple[str, ...], setting: Setting, judgement: _Judgement) -> dict[str, Any]:
    to_trap: list[float] = []
    to_right: dict[str, list[float]] = {name: [] for name in search.exercise.returns}
    matched = compared = 0
    for seen in search.decisive:
        mistaken, actual = search.gives(setting, seen), search.arrays(seen)
        if mistaken is None or actual is None:
            continue
        if all(right(one, other) for one, other in zip(mistaken, seen.expected, strict=True)):
            continue  # here the mistake does not show, so this says nothing
        compared += 1
        matched += all(same_mistake(one, other) for one, other in zip(actual, mistaken, strict=True))
        for name, one, wrong, expected in zip(search.exercise.returns, actual, mistaken, seen.expected, strict=True):
            to_trap.append(largest_difference(one, wrong) or 0.0)
            to_right[name].append(largest_difference(one, expected) or 0.0)
    # The weights say most; where they are right (a mistake in the mixing), what comes out of them does.
    names = [name for name in reversed(search.exercise.returns) if max(to_right[name], default=0.0) > 1e-6]
    what = names[0] if names else search.exercise.returns[0]
    evidence = {
        "fixtures": compared,
        "matched": matched,
        "what": what,
        "max_diff_trap": max(to_trap, default=0.0),
        "max_diff_correct": max(to_right[what], default=0.0),
        "setting": {name: value if isinstance(value, str) else float(value) for name, value in setting.items()},
    }
    for key in keys:
        shown = properties.show(key, judgement, PROBE_LIMIT)
        if shown is not None:
            evidence["property"] = {"key": key, **shown}
            break
    later = [
        seen for seen in judgement.seen if seen.fixture.phase == MORE and search.phase == PLAIN and "batch" in seen.fixture.name
    ]
    if any(seen.outcome.error is None and not search.fits(setting, seen) for seen in later):
        evidence["batch_differs_too"] = True
    return evidence


# When no trap fits ----------------------------------------------------------------------------------------------------


def _laws(search: _Search, problem: Problem) -> dict[str, Any]:
    """Which laws hold and which are broken, in codes with numbers."""
    judgement, exercise = search.judgement, search.exercise
    if judgement._unsteady():
        return {"laws": [{"law": "unsteady"}]}
    if problem.fixture is None or problem.stage != "value":
        return {}
    seen = next(one for one in judgement.seen if one.fixture is problem.fixture)
    if seen.arrays is None:
        return {}
    laws_of = {
        "softmax": _laws_of_softmax,
        "attention_scores": _laws_of_scores,
        "causal_mask": _laws_of_mask,
        "attention": _laws_of_attention,
        "scaled_dot_product_attention": _laws_of_attention,
        "label_smoothing": lambda _, seen: _sums((seen.arrays or ())[0]),
    }
    from transformer_lite.practice import topics

    own = topics.laws().get(exercise.id)
    laws = own(judgement) if own is not None else laws_of.get(exercise.id, _laws_of_numbers)(search, seen)
    if seen.fixture.phase == MORE and "batch" in seen.fixture.name:
        laws.insert(0, {"law": "only_batch"})
    return {"laws": laws}


def _sums(weights: NDArray, axis: int = -1) -> list[dict[str, Any]]:
    sums = weights.sum(axis=axis)
    laws: list[dict[str, Any]] = []
    if np.abs(sums - 1).max() > 1e-4:
        low, high = float(sums.min()), float(sums.max())
        laws.append({"law": "sums", "low": low, "high": high} if high - low > 1e-3 else {"law": "sums_all", "sum": low})
    else:
        laws.append({"law": "sums_hold"})
    if weights.min() < 0:
        laws.append({"law": "negative", "low": float(weights.min())})
    return laws


def _laws_of_softmax(_: _Search, seen: Seen) -> list[dict[str, Any]]:
    (actual,), x = seen.arrays or (), np.asarray(seen.fixture.arguments[0])
    axis = seen.fixture.arguments[1] if len(seen.fixture.arguments) > 1 else -1
    if axis != -1 and right(actual, equations.softmax(x)):
        return [{"law": "axis_ignored", "axis": axis}]
    with np.errstate(all="ignore"):
        if right(np.exp(actual), seen.expected[0]):
            return [{"law": "logarithm"}]
        if same_mistake(actual, np.exp(x)) or same_mistake(actual, np.exp(x - x.max(axis=axis, keepdims=True))):
            return [{"law": "not_divided"}]
    return _sums(actual, axis)


def _laws_of_scores(_: _Search, seen: Seen) -> list[dict[str, Any]]:
    (actual,), (expected,) = seen.arrays or (), seen.expected
    if right(actual, equations.softmax(expected)):
        return [{"law": "softmax_already"}]
    ratio = float((actual * expected).sum() / (expected**2).sum())
    if same_mistake(actual, ratio * expected):
        return [{"law": "proportional", "ratio": ratio}]
    return []


def _laws_of_numbers(search: _Search, seen: Seen) -> list[dict[str, Any]]:
    """What can be said of any numbers: which parts are right, and whether one factor or one summand is all that is wrong."""
    if search.exercise.boolean:
        return _laws_of_mask(search, seen)
    laws: list[dict[str, Any]] = []
    for name, actual, expected in zip(search.exercise.returns, seen.arrays or (), seen.expected, strict=True):
        if right(actual, expected):
            laws.append({"law": "part_right", "name": name})
            continue
        if expected.size == 1:  # one number is a multiple of any other: only what holds on every input says something
            laws += _law_of_a_number(search, name)
            continue
        actual, size = actual.astype(np.float64), float((expected.astype(np.float64) ** 2).sum())
        ratio = float((actual * expected).sum()) / size if size > 1e-12 else 0.0
        if size > 1e-12 and same_mistake(actual, ratio * expected):
            laws.append({"law": "times", "name": name, "ratio": ratio})
        elif same_mistake(actual - expected, np.full(expected.shape, float((actual - expected).flat[0]))):
            laws.append({"law": "plus", "name": name, "difference": float((actual - expected).flat[0])})
    return laws


def _law_of_a_number(search: _Search, name: str) -> list[dict[str, Any]]:
    part = search.exercise.returns.index(name)
    pairs = [(seen.arrays[part], seen.expected[part]) for seen in search.decisive if seen.arrays is not None]
    yours, wanted = (np.array([one.item() for one in some], dtype=np.float64) for some in zip(*pairs, strict=True))
    if len(yours) < 3:
        return []
    ratio, difference = float(yours[0] / wanted[0]) if wanted[0] else 0.0, float(yours[0] - wanted[0])
    if same_mistake(yours, ratio * wanted):
        return [{"law": "times", "name": name, "ratio": ratio}]
    same = np.abs((yours - wanted) - difference).max() <= 1e-6 * abs(difference)
    return [{"law": "plus", "name": name, "difference": difference}] if same else []


def _laws_of_mask(search: _Search, seen: Seen) -> list[dict[str, Any]]:
    truth = search.arrays(seen)
    if truth is None:
        return []
    return [{"law": "count", "yours": int(truth[0].sum()), "right": int(seen.expected[0].sum())}]


def _laws_of_attention(_: _Search, seen: Seen) -> list[dict[str, Any]]:
    output, weights = seen.arrays or ()
    queries, keys, values = seen.fixture.arguments[:3]
    mask = seen.fixture.arguments[3] if len(seen.fixture.arguments) > 3 else None
    scores = equations.attention_scores(queries, keys)
    if right(weights, seen.expected[1]):
        return [{"law": "weights_right"}]
    if right(output, seen.expected[0]):
        return [{"law": "output_right"}]
    if np.allclose(weights, 1 / weights.shape[-1], atol=1e-6):
        return [{"law": "uniform"}]
    laws = [{"law": "raw_scores"}] if same_mistake(weights, scores) else _sums(weights)
    if mask is not None and np.abs(weights[~np.broadcast_to(mask, weights.shape)]).max() > 1e-6:
        laws.append({"law": "hidden_seen", "high": float(np.abs(weights[~np.broadcast_to(mask, weights.shape)]).max())})
    if not same_mistake(output, weights @ values):
        laws.append({"law": "not_mixed"})
    if mask is None and (weights > 0).all() and (ratio := _scale(weights, scores)) is not None:
        laws.append({"law": "scale", "ratio": ratio})
    return laws


def _scale(weights: NDArray, scores: NDArray) -> float | None:
    """If these weights are a softmax of the right scores times one number, that number."""
    logs = np.log(weights.astype(np.float64))
    logs, centred = logs - logs.mean(axis=-1, keepdims=True), scores - scores.mean(axis=-1, keepdims=True)
    size = float((centred**2).sum())
    if size < 1e-9:
        return None
    ratio = float((logs * centred).sum()) / size
    return ratio if np.allclose(logs, ratio * centred, rtol=1e-4, atol=1e-6) and abs(ratio - 1) > 1e-4 else None
