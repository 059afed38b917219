"""Clients of the beanstalk protocol that others have written work with Reprise as they are.

The scripts in beanstalk_clients/ use each client's whole API. They run against Debian's beanstalkd
too, which shows that what they expect is right.
"""

import fcntl
import shutil
import subprocess
from pathlib import Path

import pytest

from reprise_server import ROOT, clean_environment, die_with_parent

SCRIPTS = Path(__file__).with_name("beanstalk_clients")
INSTALLED = ROOT / "build" / "beanstalk_clients"
MANIFEST = ("package.json", "package-lock.json", ".npmrc")
INSTALL_SECONDS = 300
SCRIPT_SECONDS = 60


def install():
    """npm's packages, in build/, as the lock file says. Nothing is done when they are there."""
    wanted = (SCRIPTS / "package-lock.json").read_bytes()
    mark = INSTALLED / "installed"
    if mark.is_file() and mark.read_bytes() == wanted:
        return
    mark.unlink(missing_ok=True)
    for name in MANIFEST:
        shutil.copy(SCRIPTS / name, INSTALLED / name)
    result = subprocess.run(
        ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier"],
        cwd=INSTALLED, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=INSTALL_SECONDS)
    assert result.returncode == 0, f"npm ci: {result.stdout}{result.stderr}"
    mark.write_bytes(wanted)


@pytest.fixture(scope="session")
def node_modules():
    INSTALLED.mkdir(parents=True, exist_ok=True)
    with open(INSTALLED / "lock", "w") as lock:  # several workers may come at once
        fcntl.flock(lock, fcntl.LOCK_EX)
        install()
    return INSTALLED / "node_modules"


@pytest.mark.parametrize("script", ["jackd", "node_beanstalk"])
def test_every_call_of_the_client_works(peer, tube, node_modules, script):
    command = ["node", "--unhandled-rejections=strict", str(SCRIPTS / f"{script}.js"),
               str(peer.door_port), tube]
    result = subprocess.run(
        command, env=clean_environment(NODE_PATH=str(node_modules)), stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=SCRIPT_SECONDS, preexec_fn=die_with_parent)
    assert result.returncode == 0 and "is content" in result.stdout, (
        result.stdout + result.stderr)
