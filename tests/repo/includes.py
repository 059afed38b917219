"""The include rules of src/: which module may use which, and where third-party headers may show."""

import re

# Module -> the modules it names in DEPS. What those use comes with them, downwards only.
ARROWS = {
    "base": [],
    "model": ["base"],
    "engine": ["model"],
    "storage": ["model"],
    "hooks": ["model"],
    "broker": ["engine", "storage", "hooks"],
    "runbook": ["model"],
    "worker": ["broker", "runbook"],
    "server": ["broker", "worker"],
    "webhook": ["model"],
    "client": ["model"],
    "spool": ["client"],
    "cli": ["client", "runbook", "spool"],
    "daemon": ["server", "webhook"],
    "main": ["cli", "daemon", "hooks", "worker"],
}
# Headers made by the build, and helpers that only tests may use.
GENERATED = ("reprise_version.h", "embedded/")
TEST_ONLY = ("support/",)
# Of storage/: the journal uses RocksDB's file system, so that tests can put a faulty one in its place.
ROCKSDB_FOLDERS = ("rocksdb", "journal", "durable")
# What runs scripts, and locks their process in, is in one folder.
HOST_HEADERS = ("lua", "lauxlib.h", "seccomp.h")

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)
DEPS = re.compile(r"\bDEPS\b([a-z\s]*)")


def reachable(module):
    """The module and everything below it."""
    return {module}.union(*(reachable(below) for below in ARROWS[module]))


def module_of(path, src):
    parts = path.relative_to(src).parts
    return parts[0] if len(parts) > 1 else path.stem


def check_quoted(path, module, name):
    if name.startswith(GENERATED) or (name.startswith(TEST_ONLY) and path.stem.endswith("_test")):
        return None
    target = name.split("/")[0]
    if "/" not in name or target not in ARROWS:
        return f'"{name}" does not start at src/ with the name of a module'
    if target not in reachable(module):
        return f'"{name}": {module} must not use {target}'
    return None


def check_angled(path, src, name):
    if name.startswith(("boost/asio", "boost/beast")):
        if path.suffix != ".cpp" and not path.stem.endswith("_impl"):
            return f"<{name}> belongs in .cpp files and *_impl.h: it costs seconds per file"
    if name.startswith("rocksdb/") and not any(src / "storage" / part in path.parents
                                               for part in ROCKSDB_FOLDERS):
        return f"<{name}> belongs in storage/rocksdb/, journal/ and durable/"
    if name.startswith(HOST_HEADERS) and src / "hooks" / "host" not in path.parents:
        return f"<{name}> belongs in hooks/host/"
    return None


def violations(src):
    """One line for each include in the tree `src` that breaks a rule."""
    found = []
    for path in sorted([*src.rglob("*.h"), *src.rglob("*.cpp")]):
        module = module_of(path, src)
        if module not in ARROWS:
            found.append(f"{path.relative_to(src)}: module {module} is not in ARROWS")
            continue
        for bracket, name in INCLUDE.findall(path.read_text()):
            problem = (check_quoted(path, module, name) if bracket == '"'
                       else check_angled(path, src, name))
            if problem:
                found.append(f"{path.relative_to(src)}: {problem}")
    return found


def undeclared_deps(src):
    """One line for each CMakeLists.txt whose DEPS name a module that no arrow leads to."""
    found = []
    for path in sorted(src.glob("*/CMakeLists.txt")):
        module = path.parent.name
        for deps in DEPS.findall(path.read_text()):
            wrong = set(deps.split()) - reachable(module)
            found += [f"{module}: DEPS names {name}" for name in sorted(wrong)]
    return found
