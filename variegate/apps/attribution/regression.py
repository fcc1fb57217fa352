"""Least squares with effects of images and epochs: what each column adds to the loss of a draw, with standard errors.

Image effects are removed by centering within images, epoch effects by regressing on one column for each epoch, which is
exact for any pattern of missing draws. Standard errors are robust to heteroscedasticity and to correlation within
images (Liang and Zeger 1986).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.integer]

# Draws in memory at once, a number for each column; shares of the largest value that count as 0.
_BLOCK, _CONSTANT, _NULL = 8192, 1e-6, 1e-9


class Panel(NamedTuple):
    """M draws: image int[M], epoch int[M], loss float64[M]; ``draw``, ``column``: int[L], the columns that each has."""

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
    """Effects of P columns: ``added`` [P], NaN where a column is the same in all draws of an image or of an epoch, and
    ``error`` [P], their standard errors.

    ``is_relative``: bool [P], True where every draw has one of several columns, so that effects are differences from
    the mean draw. ``counts``: draws of each. ``excess`` [M]: losses above the mean of the image and the effect of the
    epoch.
    """

    added: Floats
    error: Floats
    is_relative: npt.NDArray[np.bool_]
    counts: Floats
    excess: Floats


def fit(panel: Panel, columns: int) -> Fit:
    """Regress losses on ``columns`` columns."""
    _, image, sizes = np.unique(panel.image, return_inverse=True, return_counts=True)
    _, epoch = np.unique(panel.epoch, return_inverse=True)
    number, width = len(panel.loss), columns + int(epoch.max()) + 1
    draw = np.append(panel.draw, np.arange(number))
    order = np.argsort(draw, kind="stable")
    draw, column = draw[order], np.append(panel.column, columns + epoch)[order]
    cell = image[draw] * width + column

    def by_image(weights: Floats | None = None) -> Floats:
        """Sums of each column, [images, width]."""
        return np.bincount(cell, weights, len(sizes) * width).reshape(-1, width).astype(np.float64)

    def centered(values: Floats) -> Floats:
        return np.asarray(values - (np.bincount(image, values) / sizes)[image])

    sums, loss = by_image(), centered(panel.loss)
    gram, moment = -(sums / sizes[:, None]).T @ sums, np.bincount(column, loss[draw], width)
    for first in range(0, number, _BLOCK):
        block = slice(*np.searchsorted(draw, [first, first + _BLOCK]).tolist())
        X = np.zeros((_BLOCK, width))
        X[draw[block] - first, column[block]] = 1
        gram += X.T @ X

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

    effects = np.zeros(width)
    effects[known] = solve @ target[known]
    excess = loss - centered(loss_by_epoch[epoch])
    effects[other] = -by_epoch @ effects[own]
    residual = excess - centered(np.bincount(draw, effects[column], number).astype(np.float64))
    # Residuals have a mean of 0 in each image, so that columns need no centering.
    scores = by_image(residual[draw])
    scores = (scores[:, own] - scores[:, other] @ by_epoch)[:, known]
    variances = np.diag(solve @ (scores.T @ scores) @ solve.T) * (len(sizes) / max(len(sizes) - 1, 1))
    added, error, is_relative = np.full(columns, np.nan), np.full(columns, np.nan), np.zeros(columns, np.bool_)
    added[known], error[known] = effects[known], np.sqrt(variances)
    is_relative[known] = (null**2).sum(1) > _CONSTANT
    return Fit(added, error, is_relative, counts, excess)
