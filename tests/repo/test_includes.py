"""The arrows of docs/architecture.md hold, and the checker would notice if they did not."""

from pathlib import Path

import includes
import pytest

SRC = Path(__file__).resolve().parents[2] / "src"


def test_includes_follow_the_arrows():
    found = includes.violations(SRC)
    assert not found, "\n" + "\n".join(found)


def test_cmake_deps_follow_the_arrows():
    found = includes.undeclared_deps(SRC)
    assert not found, "\n" + "\n".join(found)


def test_the_cli_reaches_the_daemon_only_through_the_client():
    assert includes.reachable("cli") == {"cli", "client", "runbook", "spool", "model", "base"}


@pytest.mark.parametrize("path, line", [
    ("engine/lanes.h", '#include "broker/broker.h"'),
    ("cli/push.cpp", '#include "engine/engine.h"'),
    ("storage/key.cpp", '#  include "server/http.h"'),
    ("base/text.h", '#include "model/job.h"'),
    ("broker/broker.h", '#include "../server/http.h"'),
    ("broker/broker.cpp", '#include "batch.h"'),
    ("broker/broker.cpp", '#include "support/fake_clock.h"'),
    ("server/http.h", "#include <boost/asio/ip/tcp.hpp>"),
    ("client/client.h", "#include <boost/beast/http.hpp>"),
    ("broker/broker.cpp", "#include <rocksdb/db.h>"),
    ("storage/storage.h", "#include <rocksdb/slice.h>"),
    ("hooks/hook_runner.cpp", "#include <lua.hpp>"),
    ("broker/broker.cpp", "#include <seccomp.h>"),
    ("plugins/plugin.h", ""),
])
def test_a_violation_is_caught(tmp_path, path, line):
    plant(tmp_path, path, line)
    assert len(includes.violations(tmp_path)) == 1


@pytest.mark.parametrize("path, line", [
    ("broker/broker.h", '#include "model/job.h"'),
    ("daemon/daemon.cpp", '#include "engine/engine.h"'),
    ("main.cpp", '#include "cli/cli.h"'),
    ("base/version.cpp", '#include "reprise_version.h"'),
    ("server/api.cpp", '#include "embedded/openapi.h"'),
    ("engine/lanes_test.cpp", '#include "support/fake_clock.h"'),
    ("server/http_impl.h", "#include <boost/asio/ip/tcp.hpp>"),
    ("storage/rocksdb/store.h", "#include <rocksdb/db.h>"),
    ("hooks/host/lua.h", "#include <lua.hpp>"),
])
def test_what_is_allowed_passes(tmp_path, path, line):
    plant(tmp_path, path, line)
    assert includes.violations(tmp_path) == []


def test_a_wrong_dep_is_caught(tmp_path):
    plant(tmp_path, "cli/CMakeLists.txt", "reprise_module(cli SRCS a.cpp DEPS client broker LIBS x)")
    assert includes.undeclared_deps(tmp_path) == ["cli: DEPS names broker"]


def plant(root, path, text):
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text + "\n")
