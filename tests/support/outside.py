"""A queue that lives outside: a directory whose files are items, as shell commands see it."""

import json
import os

from projects import Project, pipeline, worker
from waiting import eventually

# Items move: from inbox to taken, then to done or failed. A move succeeds once.
LIST = """\
echo x >> listed
separator= text=
for file in inbox/*; do
  if body=$(cat "$file" 2>/dev/null); then text="$text$separator$body"; separator=,; fi
done
printf '[%s]' "$text"
"""
TAKE = "mv inbox/${item.id} taken/"
DONE = "mv taken/${item.id} done/"
FAILED = "printf %s \"$REPRISE_ERROR\" > why-${item.id}; mv taken/${item.id} failed/"
PLACES = ("inbox", "taken", "done", "failed")


def external(**fields):
    return {"type": "external", "list": LIST, "take": TAKE, "done": DONE, "failed": FAILED,
            "poll": "200ms", **{name: value for name, value in fields.items()}}


class Outside:
    """A project with such a queue, `bugs`, and a worker `fixer` for it."""

    def __init__(self, project: Project):
        self.project = project
        for place in PLACES:
            project.path(place).mkdir()

    def declare(self, *steps, workers=("fixer",), concurrency=1, **fields):
        queue = {name: value for name, value in external(**fields).items() if value is not None}
        self.project.declare(
            queue={"bugs": queue}, pipeline={"fix": pipeline(*steps)},
            worker={name: worker("bugs", "fix", concurrency=concurrency) for name in workers})
        return self

    def put(self, *ids, **fields):
        """New items, whole from one moment to the next."""
        for item_id in ids:
            fresh = self.project.path(f"fresh-{item_id}")
            fresh.write_text(json.dumps({"id": item_id, **fields}))
            os.replace(fresh, self.project.path("inbox") / str(item_id))
        return self

    def ids(self, place):
        return sorted(entry.name for entry in self.project.path(place).iterdir())

    def wait(self, place, *ids, timeout=15):
        wanted = sorted(map(str, ids))
        eventually(lambda: self.ids(place) == wanted, f"{wanted} in {place}", timeout)

    def polls(self):
        return len(self.project.lines("listed"))

    def shown(self):
        """What the API says of the queue."""
        return self.project.queue("bugs").show()

    def refresh(self):
        return self.project.ok("queue", "push", "bugs").out
