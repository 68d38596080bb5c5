"""Right and wrong answers about the influence matrix, as learners write them. No trap has a name here: the keys are empty."""

from __future__ import annotations

import numpy as np

# wrong: the law that the verdict names, or "shape" where the shape says it -----------------------------------------------


def swaps_rows_and_columns(function, x):
    still, rows = function(x), []
    for j in range(len(x)):
        moved = x.copy()
        moved[j] += 1.0
        rows.append((function(moved) != still).any(axis=1))
    return np.array(rows)  # one row per input: transposed


def asks_whether_anything_changed(function, x):
    still = function(x)
    influence = np.zeros((len(still), len(x)), dtype=bool)
    for j in range(len(x)):
        moved = x.copy()
        moved[j] += 1.0
        influence[:, j] = not np.array_equal(function(moved), still)
    return influence


def looks_at_its_own_row_only(function, x):
    still = function(x)
    influence = np.zeros((len(still), len(x)), dtype=bool)
    for j in range(min(len(still), len(x))):
        moved = x.copy()
        moved[j] += 1.0
        influence[j, j] = (function(moved)[j] != still[j]).any()
    return influence


def never_puts_the_input_back(function, x):
    x, columns = x.copy(), []
    still = function(x)
    for j in range(len(x)):
        x[j] += 1.0
        columns.append((np.abs(function(x) - still) > 1e-9).any(axis=1))
    return np.stack(columns, axis=1)


def moves_the_first_feature_only(function, x):
    still, columns = function(x), []
    for j in range(len(x)):
        moved = x.copy()
        moved[j, 0] += 0.7
        columns.append((function(moved) != still).any(axis=1))
    return np.stack(columns, axis=1)


def looks_at_the_first_feature_only(function, x):
    still, columns = function(x), []
    for j in range(len(x)):
        moved = x.copy()
        moved[j] += 0.5
        columns.append(function(moved)[:, 0] != still[:, 0])
    return np.stack(columns, axis=1)


def wants_every_feature_to_change(function, x):
    still, columns = function(x), []
    for j in range(len(x)):
        moved = x.copy()
        moved[j] -= 0.5
        columns.append((function(moved) != still).all(axis=1))
    return np.stack(columns, axis=1)


def says_where_nothing_moved(function, x):
    still, columns = function(x), []
    for j in range(len(x)):
        moved = x.copy()
        moved[j] += 1.0
        columns.append((function(moved) == still).all(axis=1))
    return np.stack(columns, axis=1)


def guesses_the_lower_triangle(function, x):
    return np.tri(len(function(x)), len(x), dtype=bool)


def returns_how_far(function, x):
    still, columns = function(x), []
    for j in range(len(x)):
        moved = x.copy()
        moved[j] += 1.0
        columns.append(np.abs(function(moved) - still).max(axis=1))
    return np.stack(columns, axis=1)


LAWS = {
    asks_whether_anything_changed: "influence_whole",
    looks_at_its_own_row_only: "influence_own_row",
    never_puts_the_input_back: "influence_not_undone",
    moves_the_first_feature_only: "influence_first_in",
    looks_at_the_first_feature_only: "influence_first_out",
    wants_every_feature_to_change: "influence_all_out",
    says_where_nothing_moved: "influence_inverted",
    guesses_the_lower_triangle: "count",
}
WRONG = {"influence_matrix": [((), function) for function in (swaps_rows_and_columns, *LAWS, returns_how_far)]}
PAIRS: list = []


# right -------------------------------------------------------------------------------------------------------------------


def column_by_column(function, x):
    still = function(x)
    columns = []
    for j in range(len(x)):
        moved = x.copy()
        moved[j] += 1.0
        columns.append((function(moved) != still).any(axis=1))
    return np.stack(columns, axis=1)


def filled_in(function, x):
    still = function(x)
    influence = np.zeros((still.shape[0], x.shape[0]), dtype=bool)
    for j in range(x.shape[0]):
        moved = np.array(x)
        moved[j, :] = moved[j, :] - 0.3
        influence[:, j] = np.abs(function(moved) - still).sum(axis=1) > 1e-8
    return influence


def entry_by_entry(function, x):
    still = function(x)
    influence = []
    for i in range(len(still)):
        row = []
        for j in range(len(x)):
            moved = x.copy()
            moved[j] = moved[j] + 0.1
            row.append(bool((function(moved)[i] != still[i]).any()))
        influence.append(row)
    return np.array(influence)


def rows_then_transposed(function, x):
    still = function(x)
    return np.array([(function(x + np.eye(len(x))[:, [j]]) != still).any(axis=1) for j in range(len(x))]).T


def feature_by_feature(function, x):
    still = function(x)
    influence = np.zeros((len(still), len(x)), dtype=bool)
    for j in range(len(x)):
        for feature in range(x.shape[1]):
            moved = x.copy()
            moved[j, feature] += 0.25
            influence[:, j] |= (function(moved) != still).any(axis=-1)
    return influence


def with_random_moves(function, x):
    rng = np.random.default_rng(0)
    still = function(x)
    columns = []
    for j in range(len(x)):
        moved = x.copy()
        moved[j] = rng.normal(size=x.shape[1])
        columns.append(~np.isclose(function(moved), still, rtol=0, atol=1e-10).all(axis=1))
    return np.column_stack(columns)


def moves_and_puts_back(function, x):
    x = x.copy()
    still = function(x.copy())
    columns = []
    for j in range(len(x)):
        kept = x[j].copy()
        x[j] = kept * 1.5 + 1.0
        columns.append((function(x.copy()) - still).any(axis=1))
        x[j] = kept
    return np.stack(columns, axis=-1)


def by_small_steps(function, x):
    still = function(x)
    columns = []
    for j in range(len(x)):
        moved = x.copy()
        moved[j] += 1e-3
        columns.append(np.abs((function(moved) - still) / 1e-3).max(axis=1) > 1e-6)
    return np.stack(columns, axis=1)


def as_lists(function, x):
    still = function(x)
    moves = [x + np.where(np.arange(len(x))[:, None] == j, 2.0, 0.0) for j in range(len(x))]
    changed = [np.any(function(moved) != still, axis=1) for moved in moves]
    return [[bool(column[i]) for column in changed] for i in range(len(still))]


def twice_to_be_sure(function, x):
    still = function(x)
    columns = []
    for j in range(len(x)):
        column = np.zeros(len(still), dtype=bool)
        for step in (0.5, -0.8):
            moved = x.copy()
            moved[j] += step
            column |= (function(moved) != still).any(axis=1)
        columns.append(column)
    return np.stack(columns, axis=1)


RIGHT = {
    "influence_matrix": [
        column_by_column,
        filled_in,
        entry_by_entry,
        rows_then_transposed,
        feature_by_feature,
        with_random_moves,
        moves_and_puts_back,
        by_small_steps,
        as_lists,
        twice_to_be_sure,
    ]
}
