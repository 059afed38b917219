"""docs/configuration.md as data: the table of settings."""

import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

PAGE = Path(__file__).resolve().parents[2] / "docs" / "configuration.md"


class Setting(NamedTuple):
    name: str
    flag: str
    variable: str
    default: str


@cache
def settings():
    found = []
    for line in PAGE.read_text().splitlines():
        cells = [cell.strip().strip("`") for cell in line.strip("|").split(" | ")]
        if re.match(r"\| `[a-z_]+` \| `--", line):
            found.append(Setting(*cells[:4]))
    assert found, "no table of settings"
    return found
