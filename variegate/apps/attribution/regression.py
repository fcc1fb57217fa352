"""Least squares with effects of images and epochs: what each column adds to the loss of a draw, with standard errors.

Image effects are removed by centering within images, epoch effects by regressing on one column for each epoch, which is
exact for any pattern of missing draws. Standard errors are robust to heteroscedasticity and to correlation within
images (Liang and Zeger 1986).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.integer]

# Draws in memory at once, a number for each column; shares of the largest value that count as 0.
_BLOCK, _CONSTANT, _NULL = 8192, 1e-6, 1e-9


class Panel(NamedTuple):
    """M draws, those of an image one after another: image int[M], epoch int[M] from 0 on, loss float64[M].

    ``draw``, ``column``: int[L], the columns that hold 1 for each draw, in the order of the draws.
    """

    image: Ints
    epoch: Ints
    loss: Floats
    draw: Ints
    column: Ints

    def of(self, keep: npt.NDArray[np.bool_]) -> Panel:
        """The draws that are True in ``keep``, bool[M]."""
        place, held = np.cumsum(keep) - 1, keep[self.draw]
        rows = self.image[keep], self.epoch[keep], self.loss[keep]
        return Panel(*rows, place[self.draw[held]], self.column[held])


class Fit(NamedTuple):
    """Effects of P columns: ``added`` [P], NaN where a column is the same in all draws of an image or of an epoch.

    ``covariance``: [P, P], of ``added``. ``is_relative``: bool [P], True where every draw has one of several columns,
    so that effects are differences from the mean draw. ``counts``: draws of each. ``predicted``, ``residual``: [M], the
    part of a centered loss that the columns explain, and the rest.
    """

    added: Floats
    covariance: Floats
    is_relative: npt.NDArray[np.bool_]
    counts: Floats
    predicted: Floats
    residual: Floats

    def mean(self, columns: Ints) -> tuple[float, float]:
        """Effect and standard error of these columns together, each weighted by its draws; NaN where it is unknown."""
        known = columns[np.isfinite(self.added[columns])]
        share = self.counts[known] / max(self.counts[known].sum(), 1.0)
        variance = float(share @ self.covariance[np.ix_(known, known)] @ share)
        is_known = len(known) > 0 and variance > 1e-18
        return (float(share @ self.added[known]), variance**0.5) if is_known else (np.nan, np.nan)


def fit(panel: Panel, columns: int) -> Fit:
    """Regress losses on ``columns`` columns."""
    epochs = int(panel.epoch.max()) + 1
    gram, moment = np.zeros((columns + epochs,) * 2), np.zeros(columns + epochs)
    for _, _, X, y in _centered(panel, columns, epochs):
        gram += X.T @ X
        moment += X.T @ y
    own, other = slice(columns), slice(columns, None)
    inverse_epochs = np.linalg.pinv(gram[other, other], rcond=_NULL, hermitian=True)
    by_epoch = inverse_epochs @ gram[other, own]  # what epochs say of each column
    loss_by_epoch = inverse_epochs @ moment[other]
    partial = gram[own, own] - gram[own, other] @ by_epoch
    target = moment[own] - by_epoch.T @ moment[other]
    counts = np.bincount(panel.column, minlength=columns).astype(np.float64)
    known = np.flatnonzero(np.diag(partial) > _CONSTANT * np.maximum(counts, 1))
    values, vectors = np.linalg.eigh(partial[np.ix_(known, known)])
    is_null = values <= _NULL * values.max(initial=1.0)
    null, good = vectors[:, is_null], vectors[:, ~is_null]
    # Of all solutions, the one in which effects of columns that no draw lacks have a mean of 0 over the draws.
    weighted = null.T * counts[known]
    to_mean = np.eye(len(known)) - null @ np.linalg.solve(weighted @ null, weighted)
    solve = to_mean @ (good / values[~is_null]) @ good.T
    effects = solve @ target[known]

    images, meat = 0, np.zeros((len(known),) * 2)
    predicted, residual = np.empty(len(panel.loss)), np.empty(len(panel.loss))
    for rows, starts, X, y in _centered(panel, columns, epochs):
        mine = (X[:, own] - X[:, other] @ by_epoch)[:, known]
        predicted[rows] = mine @ effects
        residual[rows] = y - X[:, other] @ loss_by_epoch - predicted[rows]
        scores = np.add.reduceat(mine * residual[rows][:, None], starts)
        meat += scores.T @ scores
        images += len(starts)
    added, covariance = np.full(columns, np.nan), np.full((columns, columns), np.nan)
    added[known] = effects
    covariance[np.ix_(known, known)] = solve @ meat @ solve.T * (images / max(images - 1, 1))
    is_relative = np.zeros(columns, np.bool_)
    is_relative[known] = (null**2).sum(1) > _CONSTANT
    return Fit(added, covariance, is_relative, counts, predicted, residual)


def _centered(panel: Panel, columns: int, epochs: int) -> Iterator[tuple[slice, Ints, Floats, Floats]]:
    """Blocks of whole images: rows, where images begin among them, columns and epochs [n, P + E], losses [n]."""
    begins = np.flatnonzero(np.diff(panel.image, prepend=-1))
    ends = np.append(begins[1:], len(panel.image))
    first = 0
    while first < len(begins):
        last = max(first + 1, int(np.searchsorted(ends, begins[first] + _BLOCK, side="right")))
        low, high = int(begins[first]), int(ends[last - 1])
        held = slice(*np.searchsorted(panel.draw, [low, high]).tolist())
        X = np.zeros((high - low, columns + epochs))
        X[panel.draw[held] - low, panel.column[held]] = 1
        X[np.arange(high - low), columns + panel.epoch[low:high]] = 1
        starts, sizes = begins[first:last] - low, (ends - begins)[first:last]
        y = panel.loss[low:high]
        X -= np.repeat(np.add.reduceat(X, starts) / sizes[:, None], sizes, axis=0)
        yield slice(low, high), starts, X, y - np.repeat(np.add.reduceat(y, starts) / sizes, sizes)
        first = last
