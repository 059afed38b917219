"""docs/api.md as data: its tables of routes, errors and metrics. Tests hold the server to them."""

import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

PAGE = Path(__file__).resolve().parents[2] / "docs" / "api.md"


class Route(NamedTuple):
    method: str
    path: str  # with {queue}, {id} and {key}


class ErrorLine(NamedTuple):
    code: str
    status: int


@cache
def rows(first_column):
    """The rows of the table whose header begins with this column, as tuples of cells."""
    lines = iter(PAGE.read_text().splitlines())
    for line in lines:
        if re.match(rf"\| {re.escape(first_column)} \|", line):
            next(lines)
            break
    else:
        raise AssertionError(f"no table with the column {first_column} in {PAGE.name}")
    found = []
    for line in lines:
        if not line.startswith("|"):
            break
        found.append(tuple(cell.strip() for cell in line[1:-1].split("|")))
    assert found, f"the table with the column {first_column} is empty"
    return found


@cache
def routes():
    return [Route(*cell.strip("`").split(" ", 1)) for cell, *_ in rows("route")]


@cache
def errors():
    return [ErrorLine(code.strip("`"), int(status)) for code, status, *_ in rows("code")]


@cache
def metrics():
    """{metric: set of its labels}."""
    found = {}
    for names, labels, *_ in rows("metric"):
        for name in re.findall(r"`([a-z_]+)`", names):
            assert name not in found, f"{name} is documented twice"
            found[name] = {label.strip() for label in labels.split(",") if label.strip()}
    return found


def methods_by_path():
    found = {}
    for route in routes():
        found.setdefault(route.path, set()).add(route.method)
    return found
