"""The most memory that a process has had. Not by wait4(): its figure begins with that of the process
which was forked, here a large Python."""

import time


def peak_kib(pid):
    """So far; 0 when it has ended."""
    try:
        with open(f"/proc/{pid}/status") as status:
            peaks = [line.split()[1] for line in status if line.startswith("VmHWM:")]
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return int(peaks[0]) if peaks else 0


def peak_until_end_kib(process):
    """Looks at it, closely, until it ends."""
    peak = 0
    while process.poll() is None:
        peak = max(peak, peak_kib(process.pid))
        time.sleep(0.002)
    return peak
