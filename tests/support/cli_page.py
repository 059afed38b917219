"""docs/cli.md as data: the commands it documents."""

import re
from functools import cache
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "cli.md"


@cache
def commands():
    """["queue create", …, "status"], from the page's first table."""
    found = []
    for line in PAGE.read_text().splitlines():
        if not line.startswith("| [`"):
            continue
        parent = None
        for name in re.findall(r"`([a-z ]+)`", line.split(" | ")[0]):
            parent = name.split(" ")[0] if " " in name else parent
            found.append(name if " " in name or parent is None else f"{parent} {name}")
    assert len(found) > 10, found
    return found
