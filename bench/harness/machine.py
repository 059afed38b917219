"""The machine in words: what a reader needs to judge the figures, and nothing that names it."""

import os
import platform
from pathlib import Path


def _first_value(path, name):
    for line in Path(path).read_text().splitlines():
        key, _, value = line.partition(":")
        if key.strip() == name:
            return value.strip()
    return "unknown"


def _file_system(folder):
    """The type of the file system that holds `folder`."""
    best, kind = "", "unknown"
    for line in Path("/proc/mounts").read_text().splitlines():
        _, mount, mount_kind, *_ = line.split()
        inside = os.path.commonpath([mount, str(folder)]) == mount
        if inside and len(mount) >= len(best):
            best, kind = mount, mount_kind
    return kind


def describe(folder):
    memory_kib = int(_first_value("/proc/meminfo", "MemTotal").split()[0])
    return {"cores": os.cpu_count(), "cpu": _first_value("/proc/cpuinfo", "model name"),
            "memory_gib": round(memory_kib / (1 << 20)), "kernel": platform.release(),
            "file_system": _file_system(folder)}


def sentence(machine):
    return (f"{machine['cores']} cores of {machine['cpu']}, {machine['memory_gib']} GiB of memory, "
            f"Linux {machine['kernel']}, {machine['file_system']}")
