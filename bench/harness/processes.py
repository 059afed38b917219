"""Child processes of the benchmark: none outlives it, and it ends no others."""

import ctypes
import os
import signal
import subprocess

PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None, use_errno=True)
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


class BenchError(Exception):
    """Why there is no figure; the message is for people."""


def _die_with_parent():
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def clean_environment():
    """This environment without settings of the user that would reach the server."""
    return {k: v for k, v in os.environ.items() if not k.startswith("REPRISE_")}


def spawn(command, **options):
    return subprocess.Popen([str(part) for part in command], stdin=subprocess.DEVNULL,
                            env=clean_environment(), preexec_fn=_die_with_parent, **options)


def end(process):
    if process.poll() is None:
        process.kill()
    process.wait()


def _stat_fields(pid):
    """Of /proc/PID/stat, from the state on: the parent is 1, times are 11 to 14."""
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()


def cpu_seconds(pid):
    """User and system time of all threads of a process so far."""
    fields = _stat_fields(pid)
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_SECOND


def family_cpu_seconds(pid):
    """The same of a process and of all its descendants, those that have ended too."""
    ticks, children = {}, {}
    for folder in os.listdir("/proc"):
        try:
            fields = _stat_fields(int(folder))
        except (ValueError, OSError):
            continue  # not a process, or not one any more
        ticks[int(folder)] = sum(map(int, fields[11:15]))
        children.setdefault(int(fields[1]), []).append(int(folder))
    family = [pid]
    for member in family:
        family += children.get(member, [])
    return sum(ticks.get(member, 0) for member in family) / TICKS_PER_SECOND


def machine_cpu_seconds():
    """Time that all processors together have spent on work since the machine started."""
    with open("/proc/stat") as file:
        user, nice, system, _idle, _wait, irq, softirq, *_ = map(int, file.readline().split()[1:])
    return (user + nice + system + irq + softirq) / TICKS_PER_SECOND


def _status_bytes(pid, name):
    with open(f"/proc/{pid}/status") as file:
        for line in file:
            if line.startswith(f"{name}:"):
                return int(line.split()[1]) * 1024
    raise BenchError(f"no {name} of process {pid}")


def resident_bytes(pid):
    return _status_bytes(pid, "VmRSS")


def peak_resident_bytes(pid):
    return _status_bytes(pid, "VmHWM")


def reset_peak_resident_bytes(pid):
    """The peak is counted from now on."""
    with open(f"/proc/{pid}/clear_refs", "w") as file:
        file.write("5")
