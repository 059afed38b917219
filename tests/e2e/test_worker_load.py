"""Many workers at once, and a step that prints without end: the server stays small."""

import os

from projects import pipeline, simple, stored, worker
from waiting import eventually

MIB = 1 << 20
MANY = 500


def let_go(fifo):
    """Lets those through that wait to read from it."""
    try:
        os.close(os.open(fifo, os.O_WRONLY | os.O_NONBLOCK))
    except OSError:  # nobody waits
        pass


def test_five_hundred_workers(server, new_project):
    project = new_project(server)
    project.path("took").mkdir()
    os.mkfifo(project.path("gate"))
    names = [f"w{number:03}" for number in range(MANY)]
    project.declare(
        queue={f"q-{name}": stored() for name in names},
        pipeline={"work": pipeline("echo $REPRISE_QUEUE > took/$REPRISE_WORKER; cat gate")},
        worker={name: worker(f"q-{name}", "work") for name in names})
    project.start()
    assert {one["status"] for one in project.workers().values()} == {"running"}
    ids = {name: project.push(queue=f"q-{name}") for name in names}
    took = project.path("took")
    eventually(lambda: len(list(took.iterdir())) == MANY, "all to be at work at once", 60, 0.2)
    assert sum(one["active"] for one in project.workers().values()) == MANY
    assert {name: (took / name).read_text().strip() for name in names} == {
        name: f"q-{name}" for name in names}

    def all_done():
        let_go(project.path("gate"))
        return sum(one["active"] for one in project.workers().values()) == 0

    eventually(all_done, "all to be done", 60, 0.2)
    assert all(one["succeeded"] == 1 for one in project.workers().values())
    assert all(project.queue(f"q-{name}").status_of(job_id) is None
               for name, job_id in ids.items())
    assert server.resident_bytes() < 500 * MIB


def test_a_gibibyte_of_output(start_server, new_project):
    server = start_server("--run-log-bytes", "1MiB")
    project = new_project(server).declare(simple(
        "echo begun >> ran; (yes || true) | head -c 1073741824; "
        "head -c 16777216 /dev/zero >&2; echo the end"))
    project.start()
    before = server.resident_bytes()
    job_id = project.push()
    project.has_lines("ran", 1)
    most = 0

    def ended():
        nonlocal most
        most = max(most, server.resident_bytes())
        return project.queue().status_of(job_id) is None

    eventually(ended, "the step to end", 90, 0.05)
    assert most < before + 64 * MIB
    run = project.run_of(job_id)
    assert run["status"] == "succeeded"
    assert run["log_bytes"] <= 1 * MIB + 1000
    assert run["log_left_out"] + run["log_bytes"] >= 1024 * MIB
    stored_bytes = sum(path.stat().st_size for path in server.data.rglob("*")
                       if path.is_file() and "run" in str(path.relative_to(server.data)))
    assert stored_bytes < 64 * MIB
    assert len(project.ok("worker", "logs", "w").out) <= 70_000
