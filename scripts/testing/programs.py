"""The compiled test programs and examples, their tests, and the selection of both tiers."""

import fnmatch
import json
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PARTS = 6
STORES = ["memory", "json-file", "directory", "sqlite", "redis", "postgres"]


def stop(reason):
    print(f"scripts/test: {reason}", flush=True)
    sys.exit(1)


@dataclass
class LongTests:
    """A line of scripts/testing/long: patterns of tests, and the part of the long tier that runs them."""

    part: int
    package: str
    target: str
    test: str

    def match(self, program, test):
        pairs = (program.package, self.package), (program.target, self.target), (test, self.test)
        return all(fnmatch.fnmatchcase(name, pattern) for name, pattern in pairs)


@dataclass
class Program:
    """One process: selected tests of a test program, the documentation tests, or an example."""

    package: str
    target: str
    # "lib", "bin", "test", "doc" or "example".
    kind: str
    command: list
    directory: str = str(ROOT)
    tests: list = field(default_factory=list)
    skipped: list = field(default_factory=list)
    passed: int = 0
    seconds: float = 0.0
    cpu: float = 0.0
    output: str = ""
    # Seconds by test.
    times: dict = field(default_factory=dict)
    # Pairs: the test, or "" for the whole program, and the reason.
    failures: list = field(default_factory=list)

    def __str__(self):
        return {"example": f"example {self.target}", "doc": "documentation"}.get(self.kind, f"{self.package} {self.target}")

    def alone(self, test=""):
        """The command that runs this program, or one test of it, alone."""
        if self.kind == "example":
            return f"cargo run --all-features --example {self.target}"
        if self.kind == "doc":
            return "cargo test --workspace --all-features --doc"
        target = {"lib": "--lib", "test": f"--test {self.target}", "bin": f"--bin {self.target}"}[self.kind]
        return f"scripts/test -p {self.package} {target} {test}".rstrip()

    def is_alone(self):
        """Whether it runs beside no other program: its scenes judge when processes start, which a busy machine delays."""
        return self.target in ("chaos", "process_checks")

    def filters(self):
        """The shorter list of arguments that selects its tests."""
        if len(self.tests) < len(self.skipped):
            return self.tests
        return [argument for test in self.skipped for argument in ("--skip", test)]

    def is_fast(self):
        """Whether it needs seconds and no server: unit tests, and the rules of layer 1."""
        return self.kind in ("lib", "bin") or (self.package, self.target) == ("interval-queue-contract", "rules")


class Build:
    """Compiles the requested targets."""

    def __init__(self, asked):
        # `directory` is the directory of the build profile.
        self.programs, self.examples, self.tools, self.directory = [], {}, {}, None
        targets = [f"--test={name}" for name in asked.test] + [f"--bin={name}" for name in asked.bin] + ["--lib"] * asked.lib
        packages = [f"-p={name}" for name in asked.package] or ["--workspace"]
        command = ["cargo", "test", *packages, "--all-features", "--no-run", "--message-format=json-render-diagnostics", *targets]
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as cargo:
            for line in cargo.stdout:
                self.add_artifact(json.loads(line))
        if cargo.returncode:
            stop(f"exit status {cargo.returncode} of {' '.join(command)}")

    def add_artifact(self, message):
        if message["reason"] != "compiler-artifact" or not message["executable"]:
            return
        name, kind = message["target"]["name"], message["target"]["kind"][0]
        # path+file:///a/tasks#interval-queue-tasks@0.1.0; without the name if the directory has the same name.
        found = re.search(r"([^/#]+)#(?:([^@]+)@)?", message["package_id"])
        package = found.group(2) or found.group(1)
        if message["profile"]["test"]:
            kind = kind if kind in ("test", "bin") else "lib"
            directory = str(Path(message["manifest_path"]).parent)
            self.programs.append(Program(package, name, kind, [message["executable"]], directory))
            self.directory = Path(message["executable"]).parents[1]
        elif kind == "example":
            (self.examples if package == "interval-queue-examples" else self.tools)[name] = message["executable"]


def list_tests(program):
    command = [*program.command, "--list", "--format=terse"]
    output = subprocess.run(command, cwd=program.directory, capture_output=True, text=True)
    if output.returncode:
        stop(f"{program} does not list its tests: {output.stderr.strip()}")
    return [line.removesuffix(": test") for line in output.stdout.splitlines() if line.endswith(": test")]


def read_long_tests():
    rows = [line.split("#")[0].split() for line in (ROOT / "scripts/testing/long").read_text().splitlines()]
    return [LongTests(int(row[0]), *row[1:]) for row in rows if row]


def select(asked, build):
    """Returns the programs with their selected tests, and triples: program, test, part of the long tier or 0."""
    long_tests, selected, used = read_long_tests(), [], set()
    is_named = bool(asked.test or asked.bin or asked.lib or asked.names)
    for program in build.programs:
        for test in list_tests(program):
            line = next((line for line in long_tests if line.match(program, test)), None)
            used.add(id(line))
            part = line.part if line else 0
            is_in_tier = not asked.only_long if part == 0 else asked.long in (0, part)
            if (
                (not asked.names or any(name in test for name in asked.names))
                and (not asked.store or is_of_store(asked.store, program, test))
                and (asked.list or is_in_tier or is_named and not asked.only_long)
            ):
                selected.append((program, test, part))
                program.tests.append(test)
            else:
                program.skipped.append(test)
    unused = [line for line in long_tests if id(line) not in used]
    if unused and not (asked.package or asked.test or asked.bin or asked.lib):
        line = unused[0]
        stop(f"scripts/testing/long: no test matches {line.part} {line.package} {line.target} {line.test}")
    return [program for program in build.programs if program.tests], selected


def is_of_store(store, program, test):
    name = store.replace("-", "_")
    return program.package == f"interval-queue-{store}" or name in test or name == program.target


def examples(build):
    """All examples, each with the server that it needs."""
    servers = {"redis": "redis", "postgres": "postgres", "moving": "postgres"}
    for name, path in sorted(build.examples.items()):
        server = [build.tools["with_server"], servers[name]] if name in servers else []
        yield Program("interval-queue-examples", name, "example", [*server, path])
