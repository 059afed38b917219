"""Tables of a result: for the terminal, for docs/performance.md, and as JSON."""

import re
from dataclasses import dataclass

from harness.figures import format_value, median_of
from harness.machine import sentence


@dataclass(frozen=True)
class Layout:
    """What a report consists of, and where in the docs it stands."""

    figures: list
    floors: list
    begin: str  # the lines in docs/performance.md that it stands between
    end: str
    blocks: tuple = ()  # the layouts that stand there instead of this one
    rival: str = ""     # what the figures' rivals are
    peers: tuple = ()   # or the names of their peers
    value: str = "value"

    def headings(self):
        floor = ["of the floor"] if self.has_floors() else []
        return ("figure", self.value, *self.rival_headings(), "goal", "met", *floor)

    def rival_headings(self):
        if self.peers:
            return [*self.peers, "ratio to the best"]
        return [self.rival, "ratio"] if self.has_rivals() else []

    def has_rivals(self):
        return any(figure.rival for figure in self.figures)

    def has_floors(self):
        return not self.peers


class Result:
    """The rounds of one run, and everything needed to tell of them."""

    def __init__(self, layout, rounds, machine, sizes, other_cores, command):
        self.layout = layout
        self.rounds = rounds
        self.machine = machine
        self.sizes = sizes
        self.other_cores = other_cores
        self.command = command

    def with_layout(self, layout):
        return Result(layout, self.rounds, self.machine, self.sizes, self.other_cores, self.command)

    def value(self, key):
        return median_of(self.rounds, key)

    def ratio(self, figure):
        """Of a round's two figures, then the median: what the machine does to one round it does to
        both. None: there is nothing to compare with."""
        rival = self.rival_of(figure)
        return median_of([{"ratio": values[figure.key] / values[rival]} for values in self.rounds
                          if figure.key in values and values.get(rival)], "ratio")

    def rival_of(self, figure):
        """Of peers, the one that is best by the median."""
        if not figure.peers:
            return figure.rival
        by_value = {self.value(key): key for key in figure.peers if self.value(key) is not None}
        return by_value[figure.best(by_value)] if by_value else None

    def title(self, figure):
        return figure.title.format(**self.sizes)

    def measured(self):
        """Also those that only peers have."""
        return [figure for figure in self.layout.figures
                if any(self.value(key) is not None for key in (figure.key, *figure.peers))]

    def missed(self):
        return [figure for figure in self.measured() if self._met(figure) is False]

    def _judged(self, figure):
        """(the value that a goal speaks of, its unit)"""
        if (figure.rival or figure.peers) and not figure.absolute:
            return self.ratio(figure), "x"
        return self.value(figure.key), figure.unit

    def _goal(self, figure):
        goal = figure.goal[1]
        return self.value(goal) if isinstance(goal, str) else goal

    def _met(self, figure):
        judged = self._judged(figure)[0]
        if figure.goal is None or judged is None:
            return None
        return figure.met(judged, self._goal(figure), self.sizes)

    def goal_text(self, figure):
        if figure.goal is None:
            return ""
        return f"{figure.goal[0]} {format_value(self._goal(figure), self._judged(figure)[1])}"

    def rows(self):
        return [self._row(figure) for figure in self.measured()]

    def _row(self, figure):
        told = ", ".join(self._cell(key, figure) for key in (figure.key, *figure.beside))
        unknown = "" if figure.goal is None else "?"
        met = {None: unknown, True: "yes", False: "NO"}[self._met(figure)]
        return (self.title(figure), told, *self._rival_cells(figure), self.goal_text(figure), met,
                *self._floor_cells(figure))

    def _cell(self, key, figure):
        value = self.value(key)
        return "" if value is None else format_value(value, figure.unit)

    def _floor_cells(self, figure):
        if not self.layout.has_floors():
            return ()
        floor = self.value(figure.floor) if figure.floor else None
        return (f"{self.value(figure.key) / floor:.0%}" if floor else "",)

    def _rival_cells(self, figure):
        if self.layout.peers:
            ratio = self.ratio(figure)
            return (*(self._cell(key, figure) for key in figure.peers),
                    "" if ratio is None else format_value(ratio, "x"))
        if not self.layout.has_rivals():
            return ()
        if not figure.rival:
            return ("", "")
        return (format_value(self.value(figure.rival), figure.unit),
                format_value(self.ratio(figure), "x"))

    def by_block(self):
        """What was measured, a result for each block."""
        parts = [self.with_layout(block) for block in self.layout.blocks or [self.layout]]
        return [part for part in parts if part.rows() or part.floor_rows()]

    def floor_rows(self):
        return [(f.title, format_value(self.value(f.key), f.unit))
                for f in self.layout.floors if self.value(f.key) is not None]

    def notes(self):
        count = sum(any(key in values for f in self.measured() for key in (f.key, *f.peers))
                    for values in self.rounds)
        notes = [f"{'median of ' if count > 1 else ''}{count} round{'s' if count > 1 else ''} on "
                 f"{sentence(self.machine)}; {self.command}"]
        if self.other_cores >= 0.1:
            notes.append(f"other processes took up to {self.other_cores:.1f} cores meanwhile, so these "
                         "figures, the floors too, say more about them than about the server: "
                         "repeat on a quiet machine")
        return notes

    def judgements(self):
        """One line for each missed goal."""
        for figure in self.missed():
            value, unit = self._judged(figure)
            yield (f"goal missed: {self.title(figure).strip()}: {format_value(value, unit)}, "
                   f"goal {self.goal_text(figure)}")

    def as_json(self):
        keys = dict.fromkeys(key for values in self.rounds for key in values)
        return {"machine": self.machine, "command": self.command, "sizes": self.sizes,
                "other_cores": round(self.other_cores, 2),
                "figures": {key: self.value(key) for key in keys},
                "ratios": {f.key: self.ratio(f) for f in self.measured() if self.rival_of(f)},
                "rounds": self.rounds,
                "goals_missed": [figure.key for figure in self.missed()]}


def _columns(rows):
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        first, *others = (cell.ljust(w) if i == 0 else cell.rjust(w)
                          for i, (cell, w) in enumerate(zip(row, widths)))
        yield "  ".join([first, *others]).rstrip()


def terminal_text(result):
    lines = []
    for part in result.by_block():
        if part.rows():
            lines += [*_columns([part.layout.headings(), *part.rows()]), ""]
        if part.floor_rows():
            lines += [*_columns([("floor", "value"), *part.floor_rows()]), ""]
    lines += [*result.notes(), *result.judgements()]
    return "\n".join(lines)


def _markdown_table(headings, rows):
    yield "| " + " | ".join(headings) + " |"
    yield "| --- |" + " ---: |" * (len(headings) - 1)
    for row in rows:
        first = re.sub(r"^ +", "&nbsp;&nbsp;", row[0])
        yield "| " + " | ".join([first, *row[1:]]) + " |"


def markdown_block(result):
    layout = result.layout
    lines = [layout.begin, "", *_markdown_table(layout.headings(), result.rows()), ""]
    if result.floor_rows():
        lines += [*_markdown_table(("floor", "value"), result.floor_rows()), ""]
    lines += [note[0].upper() + note[1:] + "." for note in result.notes()]
    return "\n".join([*lines, "", layout.end])


def rewrite_docs(path, result):
    """Every block that something was measured of."""
    for part in result.by_block():
        if part.rows():
            _rewrite_block(path, part)


def _rewrite_block(path, result):
    begin, end = result.layout.begin, result.layout.end
    before, found_begin, rest = path.read_text().partition(begin)
    _, found_end, after = rest.partition(end)
    if not found_begin or not found_end:
        raise ValueError(f"{path} has no block between '{begin}' and '{end}'")
    path.write_text(before + markdown_block(result) + after)
