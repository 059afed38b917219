"""Tables of a result: for the terminal, for docs/performance.md, and as JSON."""

import re

from harness.figures import FIGURES, FLOORS, format_value, median_of
from harness.machine import sentence

BEGIN = "<!-- figures: written by bench/run --write-docs -->"
END = "<!-- end of figures -->"
HEADINGS = ("figure", "value", "goal", "met", "of the floor")


class Result:
    """The rounds of one run, and everything needed to tell of them."""

    def __init__(self, rounds, machine, backlog, other_cores, command):
        self.rounds = rounds
        self.machine = machine
        self.backlog = backlog
        self.other_cores = other_cores
        self.command = command

    def value(self, key):
        return median_of(self.rounds, key)

    def title(self, figure):
        return figure.title.format(backlog=self.backlog)

    def measured(self):
        return [figure for figure in FIGURES if self.value(figure.key) is not None]

    def missed(self):
        return [f for f in self.measured() if f.met(self.value(f.key), self.backlog) is False]

    def rows(self):
        return [self._row(figure) for figure in self.measured()]

    def _row(self, figure):
        value = self.value(figure.key)
        floor = self.value(figure.floor) if figure.floor else None
        unknown = "" if figure.goal is None else "?"
        met = {None: unknown, True: "yes", False: "NO"}[figure.met(value, self.backlog)]
        return (self.title(figure), format_value(value, figure.unit), figure.goal_text(), met,
                f"{value / floor:.0%}" if floor else "")

    def floor_rows(self):
        return [(f.title, format_value(self.value(f.key), f.unit))
                for f in FLOORS if self.value(f.key) is not None]

    def notes(self):
        count = len(self.rounds)
        notes = [f"{'median of ' if count > 1 else ''}{count} round{'s' if count > 1 else ''} on "
                 f"{sentence(self.machine)}; {self.command}"]
        if self.other_cores >= 0.1:
            notes.append(f"other processes took up to {self.other_cores:.1f} cores meanwhile, so these "
                         "figures, the floors too, say more about them than about the server: "
                         "repeat on a quiet machine")
        return notes

    def as_json(self):
        keys = [f.key for f in FIGURES + FLOORS if self.value(f.key) is not None]
        return {"machine": self.machine, "command": self.command, "backlog_jobs": self.backlog,
                "other_cores": round(self.other_cores, 2),
                "figures": {key: self.value(key) for key in keys}, "rounds": self.rounds,
                "goals_missed": [figure.key for figure in self.missed()]}


def _columns(rows):
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        first, *others = (cell.ljust(w) if i == 0 else cell.rjust(w)
                          for i, (cell, w) in enumerate(zip(row, widths)))
        yield "  ".join([first, *others]).rstrip()


def terminal_text(result):
    lines = []
    if result.rows():
        lines += [*_columns([HEADINGS, *result.rows()]), ""]
    if result.floor_rows():
        lines += [*_columns([("floor", "value"), *result.floor_rows()]), ""]
    lines += result.notes()
    for figure in result.missed():
        lines.append(f"goal missed: {result.title(figure).strip()}: "
                     f"{format_value(result.value(figure.key), figure.unit)}, "
                     f"goal {figure.goal_text()}")
    return "\n".join(lines)


def _markdown_table(headings, rows):
    yield "| " + " | ".join(headings) + " |"
    yield "| --- |" + " ---: |" * (len(headings) - 1)
    for row in rows:
        first = re.sub(r"^ +", "&nbsp;&nbsp;", row[0])
        yield "| " + " | ".join([first, *row[1:]]) + " |"


def markdown_block(result):
    lines = [BEGIN, "", *_markdown_table(HEADINGS, result.rows()), "",
             *_markdown_table(("floor", "value"), result.floor_rows()), ""]
    lines += [note[0].upper() + note[1:] + "." for note in result.notes()]
    return "\n".join([*lines, "", END])


def rewrite_docs(path, result):
    text = path.read_text()
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{path} has no block between '{BEGIN}' and '{END}'")
    path.write_text(before + markdown_block(result) + after)
