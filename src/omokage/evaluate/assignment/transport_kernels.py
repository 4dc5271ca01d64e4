"""Compiled kernels of the transport solver: bids, and shortest augmenting paths.

A row keeps a list of its best columns, sorted by their values (cost plus price) when the list was made. Prices only rise, so such
a stale value is a lower bound of the present one, and a scan may stop at the first stale value above what it already has. What
travels together is a named tuple: :class:`~.candidates.Lists`, :class:`Auction`, :class:`Members`, :class:`Tree`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...base.compiling import MINIMA, kernel

UNSEEN, DONE = -1, -2  # where a column is that is not in the heap
CHUNK = 128  # values looked at together by the dense bids

_entry, _inner, _inner_min = kernel(), kernel(cached=False), kernel(cached=False, reorder=MINIMA)


class Auction(NamedTuple):
    """Bids: column ``g`` keeps the highest, as a heap, in ``[start[g], start[g] + count[g])``. Written, but for ``start``."""

    start: NDArray[np.int64]  # (G + 1,)
    count: NDArray[np.int64]  # (G,)
    bids: NDArray[np.float64]  # (n,)
    who: NDArray[np.int64]  # (n,): the row that bids


class Queue(NamedTuple):
    """A ring of rows that have to bid; ``state`` is where it begins and how many there are. Written."""

    rows: NDArray[np.int64]  # (n + 1,)
    state: NDArray[np.int64]  # (2,)


class Members(NamedTuple):
    """Who is where: column ``g`` holds the rows ``who[start[g] : start[g] + count[g]]``. Written, but for ``start``."""

    start: NDArray[np.int64]  # (G + 1,): there is room for start[g + 1] − start[g]
    count: NDArray[np.int64]  # (G,)
    who: NDArray[np.int64]  # (n,)
    column: NDArray[np.int64]  # (n,): a row's column, or −1
    own: NDArray[np.float64]  # (n,): its cost there


class Tree(NamedTuple):
    """A search for a shortest path, over columns. Written."""

    key: NDArray[np.float64]  # (G,): length of the shortest path so far
    via: NDArray[np.int64]  # (G,): the last row on it
    heap: NDArray[np.int64]  # (G,): columns reached, the nearest first
    place: NDArray[np.int64]  # (G,): where a column is in the heap, or UNSEEN, or DONE
    done: NDArray[np.int64]  # (G,): columns scanned, in order


@_inner
def _best_two(lists, i, price):
    """The best column of row ``i``, its place in the list, its value, and the second best value."""
    candidates, cost, stale = lists.column[i], lists.cost[i], lists.stale[i]
    best, second, place = np.inf, np.inf, np.int64(-1)
    for t in range(candidates.shape[0]):
        if stale[t] >= second:
            break
        value = cost[t] + price[candidates[t]]
        if value < best:
            second, best, place = best, value, t
        elif value < second:
            second = value
    return place, best, second


@_inner
def _sift_down(bids, who, begin, size):
    t = 0
    while True:
        child = 2 * t + 1
        if child >= size:
            return
        if child + 1 < size and bids[begin + child + 1] < bids[begin + child]:
            child += 1
        if bids[begin + child] >= bids[begin + t]:
            return
        a, b = begin + t, begin + child
        bids[a], bids[b] = bids[b], bids[a]
        who[a], who[b] = who[b], who[a]
        t = child


@_inner
def _sift_up(bids, who, begin, t):
    while t > 0:
        parent = (t - 1) >> 1
        a, b = begin + parent, begin + t
        if bids[a] <= bids[b]:
            return
        bids[a], bids[b] = bids[b], bids[a]
        who[a], who[b] = who[b], who[a]
        t = parent


@_inner
def _offer(i, g, amount, price, auction, ring, head, size):
    """Column ``g`` takes the bid of row ``i``; its lowest bidder, if it is full, goes back to the queue."""
    start, count, bids, who = auction
    begin, capacity = start[g], start[g + 1] - start[g]
    if count[g] < capacity:
        t = count[g]
        count[g] += 1
        bids[begin + t], who[begin + t] = amount, i
        _sift_up(bids, who, begin, t)
    else:
        ring[(head + size) % ring.shape[0]] = who[begin]
        size += 1
        bids[begin], who[begin] = amount, i
        _sift_down(bids, who, begin, capacity)
    if count[g] == capacity:
        price[g] = max(price[g], bids[begin])
    return size


@_entry
def bid(lists, price, auction, epsilon, queue, need, most_need):
    """Let the rows in the queue bid until it is empty or ``most_need`` rows have outlived their lists.

    A column keeps its highest bids, as many as its capacity; once full its price is the lowest of them (auction with
    similar objects). ``price``, ``auction``, ``queue`` and ``need`` are written.
    """
    ring, state, threshold = queue.rows, queue.state, lists.threshold
    head, size = state[0], state[1]
    needed = 0
    while size > 0 and needed < most_need:
        i = ring[head]
        head = (head + 1) % ring.shape[0]
        size -= 1
        place, best, second = _best_two(lists, i, price)
        if best > threshold[i]:
            need[needed] = i
            needed += 1
            continue
        g = np.int64(lists.column[i, place])
        second = min(second, threshold[i])
        if second == np.inf:
            second = best  # the only column there is
        size = _offer(i, g, price[g] + (second - best) + epsilon, price, auction, ring, head, size)
    state[0], state[1] = head, size
    return needed


@_inner_min
def _least_sum(cost, price, begin, end):
    least = np.float32(np.inf)
    for j in range(begin, end):
        value = cost[j] + price[j]
        least = value if value < least else least
    return least


@_entry
def bid_dense(cost, price, rounded, auction, epsilon, queue, most_bids):
    """The same auction over whole rows of float32 costs; ``rounded`` is the price in float32, and written too."""
    ring, state = queue.rows, queue.state
    head, size = state[0], state[1]
    columns = cost.shape[1]
    made = 0
    while size > 0 and made < most_bids:
        i = ring[head]
        head = (head + 1) % ring.shape[0]
        size -= 1
        made += 1
        row = cost[i]
        g, best, second = np.int64(0), np.float32(np.inf), np.float32(np.inf)
        for begin in range(0, columns, CHUNK):
            end = min(begin + CHUNK, columns)
            if _least_sum(row, rounded, begin, end) >= second:
                continue
            for j in range(begin, end):
                value = row[j] + rounded[j]
                if value < best:
                    second, best, g = best, value, j
                elif value < second:
                    second = value
        if columns == 1:
            second = best
        size = _offer(i, g, price[g] + np.float64(second - best) + epsilon, price, auction, ring, head, size)
        rounded[g] = price[g]
    state[0], state[1] = head, size


@_entry
def outlived(lists, price, need):
    """Rows whose best listed value is above their threshold, so that a column left out may be better, into ``need``."""
    threshold = lists.threshold
    needed = 0
    for i in range(threshold.shape[0]):
        _, best, _ = _best_two(lists, i, price)
        if best > threshold[i]:
            need[needed] = i
            needed += 1
    return needed


@_entry
def keep_tight(lists, price, members, free):
    """Free every row that is not at its best column; give free rows their best column while it has room.

    ``members`` and ``free`` are written. Returns the number of rows left free.
    """
    start, count, _, column, own = members
    n = column.shape[0]
    count[:] = 0
    for i in range(n):
        place, best, _ = _best_two(lists, i, price)
        g = column[i]
        column[i] = -1
        if g >= 0 and own[i] + price[g] <= best:
            _join(i, g, own[i], members)
    left = 0
    for i in range(n):
        if column[i] >= 0:
            continue
        place, best, _ = _best_two(lists, i, price)
        g = np.int64(lists.column[i, place])
        if count[g] < start[g + 1] - start[g]:
            _join(i, g, lists.cost[i, place], members)
        else:
            free[left] = i
            left += 1
    return left


@_inner
def _join(i, g, its_cost, members):
    start, count, who, column, own = members
    who[start[g] + count[g]] = i
    count[g] += 1
    column[i] = g
    own[i] = its_cost


@_inner
def _lift(heap, place, key, t):
    """Move the node at ``t`` of a heap of columns up to where its key belongs."""
    node = heap[t]
    while t > 0:
        parent = (t - 1) >> 1
        if key[heap[parent]] <= key[node]:
            break
        heap[t] = heap[parent]
        place[heap[t]] = t
        t = parent
    heap[t] = node
    place[node] = t


@_inner
def _pop(heap, place, key, size):
    """Take the node of least key from a heap of ``size`` columns and mark it as done."""
    node = heap[0]
    place[node] = DONE
    last = heap[size - 1]
    t = 0
    while True:
        child = 2 * t + 1
        if child >= size - 1:
            break
        if child + 1 < size - 1 and key[heap[child + 1]] < key[heap[child]]:
            child += 1
        if key[heap[child]] >= key[last]:
            break
        heap[t] = heap[child]
        place[heap[t]] = t
        t = child
    if size > 1:
        heap[t] = last
        place[last] = t
    return node


@_inner
def _relax(i, base, lists, price, members, tree, size, limit):
    """Reach columns through row ``i``; ``limit`` is the least key of a reached column with room."""
    start, count = members.start, members.count
    key, via, heap, place, _ = tree
    for t in range(lists.column.shape[1]):
        if base + lists.stale[i, t] >= limit:
            break
        h = np.int64(lists.column[i, t])
        reached = base + lists.cost[i, t] + price[h]
        if place[h] == DONE or reached >= limit or (place[h] != UNSEEN and reached >= key[h]):
            continue
        if place[h] == UNSEEN:
            heap[size] = h
            place[h] = size
            size += 1
        key[h] = reached
        via[h] = i
        _lift(heap, place, key, place[h])
        if count[h] < start[h + 1] - start[h]:
            limit = reached
    return size, limit


@_inner
def _shift(end, i, lists, members, via):
    """Move every row of the shortest path one column on; the last one takes the room in ``end``."""
    start, count, who, column, own = members
    h = end
    slot = start[h] + count[h]
    count[h] += 1
    while True:
        r = via[h]
        g = column[r]
        who[slot] = r
        column[r] = h
        t = 0
        while lists.column[r, t] != h:
            t += 1
        own[r] = lists.cost[r, t]
        if r == i:
            return
        slot = start[g]
        while who[slot] != r:
            slot += 1
        h = g


@_inner
def _search(i, lists, price, members, tree):
    """Shortest paths from row ``i`` until a column with room, or until a column left out of a list could be nearer.

    Returns the column with room or -1, the number of columns scanned, the heap's size, and the final distance.
    """
    threshold = lists.threshold
    start, count, who, _, own = members
    key, _, heap, place, done = tree
    horizon = threshold[i]  # no path over a column left out is shorter than this
    size, limit = _relax(i, 0.0, lists, price, members, tree, np.int64(0), horizon)
    finished = np.int64(0)
    while size > 0 and key[heap[0]] < horizon:
        g = _pop(heap, place, key, size)
        size -= 1
        if count[g] < start[g + 1] - start[g]:
            place[g] = UNSEEN
            return g, finished, size, key[g]
        done[finished] = g
        finished += 1
        for s in range(start[g], start[g + 1]):
            r = who[s]
            base = key[g] - (own[r] + price[g])
            horizon = min(horizon, base + threshold[r])
            size, limit = _relax(r, base, lists, price, members, tree, size, min(limit, horizon))
    return np.int64(-1), finished, size, horizon


@_inner
def _mark_used_up(i, finished, lists, price, members, done, need, needed, marked):
    """Note the scanned rows whose lists are nearly used up, so that they are made anew together."""
    stale, threshold = lists.stale, lists.threshold
    start, who, own = members.start, members.who, members.own
    if not marked[i]:
        need[needed], marked[i] = i, True
        needed += 1
    for s in range(finished):
        g = done[s]
        for t in range(start[g], start[g + 1]):
            r = who[t]
            room = threshold[r] - (own[r] + price[g])
            if not marked[r] and room <= 0.25 * (threshold[r] - stale[r, 0]):
                need[needed], marked[r] = r, True
                needed += 1
    return needed


@_entry
def augment(free, left, lists, price, members, need, most_scans):
    """Give free rows columns by shortest augmenting paths; prices stay feasible and every taken pair stays tight.

    A search that comes as far as a threshold raises the prices up to there, leaves its row free, and notes the rows
    whose lists have to be made anew. Returns the numbers of rows still free (at the front of ``free``), of rows noted
    in ``need``, and of columns scanned; it stops early after ``most_scans``. All but ``lists`` is written.
    """
    columns = price.shape[0]
    key, via = np.empty(columns), np.empty(columns, np.int64)
    heap, done = np.empty(columns, np.int64), np.empty(columns, np.int64)
    place = np.full(columns, UNSEEN, np.int64)
    tree = Tree(key, via, heap, place, done)
    marked = np.zeros(free.shape[0], np.bool_)
    still, needed, scanned = np.int64(0), np.int64(0), np.int64(0)
    for f in range(left):
        i = free[f]
        if scanned > most_scans:
            free[still] = i
            still += 1
            continue
        end, finished, size, distance = _search(i, lists, price, members, tree)
        scanned += finished
        for s in range(finished):
            price[done[s]] += distance - key[done[s]]
            place[done[s]] = UNSEEN
        for s in range(size):
            place[heap[s]] = UNSEEN
        if end >= 0:
            _shift(end, i, lists, members, via)
        else:
            free[still] = i
            still += 1
            needed = _mark_used_up(i, finished, lists, price, members, done, need, needed, marked)
    return still, needed, scanned
