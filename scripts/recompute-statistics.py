#!/usr/bin/env python3
"""Recomputes the intervals and possible ranks of a leaderboard from its CSV files, with numpy.

    scripts/recompute-statistics.py matches.csv statistics.csv

docs/statistics.md explains the method. Tables that meet once, games with episodes, and editions
without an interval are not covered."""
import csv, math, sys
from collections import defaultdict
import numpy as np


def quantile(degrees, probability):
    """Student's quantile: the upper end of an integral, by the midpoint rule."""
    scale = math.exp(math.lgamma((degrees + 1) / 2) - math.lgamma(degrees / 2)) / math.sqrt(degrees * math.pi)
    step = 1e-4
    x = (np.arange(4_000_000) + 0.5) * step
    area = np.cumsum(scale * (1 + x * x / degrees) ** (-(degrees + 1) / 2) * step)
    return x[np.searchsorted(area, probability - 0.5)]


matches, statistics = [list(csv.DictReader(open(path, newline=""))) for path in sys.argv[1:3]]
column = list(matches[0])[list(matches[0]).index("owner") + 1]
bots = sorted(row["bot"] for row in statistics)
index = {bot: number for number, bot in enumerate(bots)}
n = len(bots)
games = defaultdict(list)  # The seats of each match.
for row in matches:
    games[row["match"]].append(row)
blocks = defaultdict(list)  # The matches of each seed.
for seats in games.values():
    blocks[seats[0]["seed_key"]].append(seats)
cells = defaultdict(list)  # The blocks of the same bots: points and matches of each bot.
units, sums = np.zeros(n), np.zeros(n)
for played in blocks.values():
    points, count = defaultdict(float), defaultdict(int)
    for seat in (seat for seats in played for seat in seats):
        points[index[seat["bot"]]] += float(seat[column])
        count[index[seat["bot"]]] += 1
    members = tuple(sorted(points))
    order = tuple(sorted(tuple(seat["bot"] for seat in seats) for seats in played))
    transcripts = tuple(sorted((tuple(s["bot"] for s in seats), seats[0]["transcript"]) for seats in played))
    cells[members].append((order, transcripts, [points[m] for m in members], [count[m] for m in members]))
    for m in members:
        sums[m], units[m] = sums[m] + points[m], units[m] + count[m]
means = sums / units
strata, pools = [], defaultdict(lambda: [0.0, 0.0, 0, []])
for members, cell in cells.items():
    assert len(cell) > 1, "a pair or table has one seed: no interval"
    orders = defaultdict(list)
    for block in cell:
        orders[block[0]].append(block)
    for part in orders.values() if min(map(len, orders.values())) > 1 else [cell]:
        values, counts = (np.array([block[k] for block in part], float) for k in (2, 3))
        deviations = values - values.sum(0) / counts.sum(0) * counts
        scatter, k = deviations.T @ deviations, len(members)
        pool = pools[k]
        pool[0], pool[1] = pool[0] + np.trace(scatter), pool[1] + scatter.sum() - np.trace(scatter)
        pool[2] += len(part) - 1
        pool[3].append(members)
        strata.append((members, scatter, len(part)))


def degrees_of(size, total, cells):
    """The degrees of freedom of a stratum whose average scatter is shared with others."""
    bots_in = len({member for members in cells for member in members})
    together = min(2 * sum(map(len, cells)) / bots_in, len(cells))
    mean, weight = 1 + total / len(cells), together / total
    own = together * (mean - 1)
    spread = own * (1 + weight) ** 2 + max(0, total - own) * weight**2
    return size * min(1, together * mean / spread)


covariance, terms = np.zeros((n, n)), []
for members, scatter, size in strata:  # One more block of average scatter for each stratum.
    k, (own, other, degrees, sharing) = len(members), pools[len(members)]
    average = np.full((k, k), other / max(1, degrees * k * (k - 1)))
    np.fill_diagonal(average, own / max(1, degrees * k))
    full = np.zeros((n, n))
    full[np.ix_(members, members)] = (scatter + average) / np.outer(units[list(members)], units[list(members)])
    covariance += full
    terms.append((full, degrees_of(size, degrees, sharing)))
difference = lambda matrix: np.add.outer(np.diag(matrix), np.diag(matrix)) - 2 * matrix
error = np.sqrt(difference(covariance))
spread = sum(difference(full) ** 2 / size for full, size in terms)
own = sum(np.diag(full) ** 2 / size for full, size in terms)
normal = np.random.default_rng(1).multivariate_normal(np.zeros(n), covariance, 20_000)
gaps, upper = means[:, None] - means[None, :], np.triu_indices(n, 1)
scaled = np.abs(normal[:, upper[0]] - normal[:, upper[1]]) / error[upper]
open_pairs, margins = np.full(len(upper[0]), True), np.zeros(len(upper[0]))
while True:  # Pairs that are told apart need no more protection against chance.
    critical = max(np.quantile(scaled[:, open_pairs].max(1), 0.95), 1.96) if open_pairs.any() else 1.96
    tail = 0.5 * math.erfc(critical / math.sqrt(2))
    margins = [error[i, j] * quantile(max(1, math.floor(error[i, j] ** 4 / spread[i, j])), 1 - tail) for i, j in zip(*upper)]
    still_open = np.abs(gaps[upper]) <= margins
    if (still_open == open_pairs).all():
        break
    open_pairs = still_open
surely = np.zeros((n, n), bool)
for i, j, is_open in zip(*upper, open_pairs):
    surely[i, j], surely[j, i] = (not is_open and gaps[i, j] > 0), (not is_open and gaps[i, j] < 0)
# House bots may have no rank: the ranks of the others do not count them.
ranked = np.isin(bots, [row["bot"] for row in statistics if row["rank"]])
for row in statistics:
    i = index[row["bot"]]
    margin = math.sqrt(covariance[i, i]) * quantile(covariance[i, i] ** 2 / own[i], 0.975)
    ranks = [1 + (surely[:, i] & ranked).sum(), ranked.sum() - (surely[i] & ranked).sum()]
    print(f"{row['bot']}: {means[i]:.3f} ± {margin:.3f}, possible ranks {ranks[0]} to {ranks[1]}")
    assert abs(means[i] - float(row["mean"])) < 1e-9, row
    assert abs(margin / float(row["interval95"]) - 1) < 1e-3, (margin, row)
    assert not ranked[i] or ranks == [int(row["best_rank"]), int(row["worst_rank"])], (ranks, row)
