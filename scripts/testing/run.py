"""Runs the test programs and the examples concurrently. Prints what failed and what was slow.

scripts/test installs the servers and calls this file. programs.py selects the tests.
"""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from programs import PARTS, STORES, Build, Program, examples, select, stop

# A test program that runs for longer, in seconds, is killed.
PROGRAM_TIMEOUT = 1200
# A documentation test has spaces in its name.
TEST_LINE = re.compile(r"^test (\S+|\S+ - .*?\(line \d+\))(?: - \D.*?)? \.\.\. (ok|FAILED|ignored)[^<]*(?:<([\d.]+)s>)?")
RESULT_LINE = re.compile(r"^test result: \w+\. (\d+) passed;")


def as_time(seconds):
    seconds = round(seconds)
    return f"{seconds} s" if seconds < 60 else f"{seconds // 60} min {seconds % 60} s"


def say(text):
    print(text, flush=True)


def arguments():
    parser = argparse.ArgumentParser(
        prog="scripts/test",
        description="Runs tests on servers of its own. Without arguments it runs the gate: the examples and all tests except the "
        "long tier, which searches for faults.",
        epilog="A named target or test runs in whichever tier it is. CONTRIBUTING.md has examples.",
    )
    parser.add_argument("--long", nargs="?", const=0, type=int, metavar="PART", help=f"also the long tier, or one of its {PARTS} parts")
    parser.add_argument("--only-long", action="store_true", help="the long tier, or that part, without the gate")
    parser.add_argument("--store", choices=STORES, help="the crate of one store, and the tests elsewhere that name it")
    parser.add_argument("--list", action="store_true", help="list the tests and their tiers, run nothing")
    parser.add_argument("-p", "--package", action="append", default=[], help="only this crate")
    parser.add_argument("--test", action="append", default=[], metavar="TARGET", help="only this test program")
    parser.add_argument("--bin", action="append", default=[], metavar="TARGET", help="only the unit tests of this binary")
    parser.add_argument("--lib", action="store_true", help="only the unit tests of libraries")
    parser.add_argument("names", nargs="*", metavar="NAME", help="only tests whose name contains NAME")
    asked = parser.parse_args()
    if asked.long is not None and not 0 <= asked.long <= PARTS:
        parser.error(f"--long {asked.long}: choose a part from 1 to {PARTS}")
    if asked.only_long and asked.long is None:
        asked.long = 0
    return asked


class Pool:
    """Runs `width` programs at a time."""

    def __init__(self, width):
        self.width, self.lock, self.waiting, self.running, self.is_stopping = width, threading.Lock(), [], set(), False

    def run(self, programs):
        self.waiting = list(programs)
        threads = [threading.Thread(target=self.work) for _ in range(self.width)]
        for thread in threads:
            thread.start()
        for thread in threads:
            # A join without a timeout would not notice Ctrl-C.
            while thread.is_alive():
                thread.join(0.2)

    def work(self):
        while True:
            with self.lock:
                if self.is_stopping or not self.waiting:
                    return
                program = self.waiting.pop(0)
            self.run_program(program)
            if not self.is_stopping:
                report(program)

    def run_program(self, program):
        command, environment = program.command, dict(os.environ)
        if program.tests:
            # A stable compiler's tests report their times only with this variable.
            environment["RUSTC_BOOTSTRAP"] = "1"
            command = [*command, "--exact", "--include-ignored", "-Zunstable-options", "--report-time", *program.filters()]
        began = time.monotonic()
        # A session of its own, so that kill() reaches the children of its tests.
        process = subprocess.Popen(
            command, cwd=program.directory, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True,
        )
        # scripts/test kills what this file names if this run is killed itself.
        pid_file = Path(tempfile.gettempdir(), f"program-{process.pid}.pid")
        pid_file.write_text(f"-{process.pid}\n")
        with self.lock:
            self.running.add(process.pid)
        timeout = threading.Timer(PROGRAM_TIMEOUT, kill, [process.pid])
        timeout.start()
        program.output = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        timeout.cancel()
        pid_file.unlink(missing_ok=True)
        with self.lock:
            self.running.remove(process.pid)
        program.seconds, program.cpu = time.monotonic() - began, usage.ru_utime + usage.ru_stime
        parse_output(program, os.waitstatus_to_exitcode(status))

    def stop(self):
        self.is_stopping = True
        for pid in list(self.running):
            kill(pid)


def kill(pid):
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def parse_output(program, status):
    """Sets how many tests passed, how long each took, and which failed."""
    if program.kind == "example":
        program.passed = int(status == 0)
        if status:
            program.failures.append(("", f"exit status {status}: {program.output.strip()[-300:]}"))
        return
    failed = []
    for line in program.output.splitlines():
        if found := TEST_LINE.match(line):
            name, outcome, seconds = found.groups()
            program.times[name] = float(seconds or 0)
            failed += [name] if outcome == "FAILED" else []
        elif found := RESULT_LINE.match(line):
            program.passed += int(found.group(1))
    for name in dict.fromkeys(failed):
        section = re.search(rf"^---- {re.escape(name)} stdout ----\n(.*?)(?=^----|^failures:|\Z)", program.output, re.S | re.M)
        text = section.group(1) if section else ""
        panic = re.search(r" panicked at (.*?)(?:\nnote:|\nstack backtrace:|\Z)", text, re.S)
        program.failures.append((name, " ".join((panic.group(1) if panic else text).split())))
    if status and not failed:
        unfinished = [test for test in program.tests if test not in program.times]
        why = "killed at the timeout" if program.seconds >= PROGRAM_TIMEOUT else f"exit status {status}"
        last = " ".join(program.output.split())[-300:]
        program.failures.append(("", f"{why}; unfinished: {', '.join(unfinished[:4]) or 'none'}; last output: {last}"))


def report(program):
    """Prints the result of one program, and the output of its failed tests."""
    if program.failures:
        _, separator, details = program.output.partition("\nfailures:\n")
        shown = details if separator else program.output
        say("".join(shown.splitlines(keepends=True)[-200:]))
        result = "FAILED"
    elif program.kind == "example":
        result = (program.output.strip().splitlines() or [""])[-1].strip()
    else:
        result = f"{program.passed} passed"
    say(f"  {as_time(program.seconds):>12}  {program}: {result}")


def summary(programs, compiling, total):
    passed = sum(program.passed for program in programs if program.kind != "example")
    examples_passed = sum(program.passed for program in programs if program.kind == "example")
    times = [(seconds, f"{program}: {name}") for program in programs for name, seconds in program.times.items()]
    say("\nscripts/test: the slowest tests")
    for seconds, name in sorted(times, reverse=True)[:10]:
        say(f"  {seconds:6.1f} s  {name}")
    cpu = sum(program.cpu for program in programs)
    say(f"scripts/test: compiled in {as_time(compiling)}, ran in {as_time(total - compiling)} with {as_time(cpu)} of CPU time")
    # With a server missing, hundreds of tests fail for one reason.
    reasons = {}
    for program in programs:
        for test, why in program.failures:
            reasons.setdefault(why, []).append((program, test))
    if not reasons:
        say(f"scripts/test: all passed in {as_time(total)}: {passed} tests, {examples_passed} examples")
        return
    say(f"scripts/test: {sum(map(len, reasons.values()))} failed, after {as_time(total)}; {passed} tests passed")
    for why, failed in list(reasons.items())[:6]:
        program, test = failed[0]
        more = f" and {len(failed) - 1} more" if len(failed) > 1 else ""
        say(f"  {program} {test}{more}\n      {why[:400]}\n      alone: {program.alone(test)}")
    if len(reasons) > 6:
        say(f"  and {len(reasons) - 6} other reasons, above")
    sys.exit(1)


def read_times(path):
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError):
        return {}


def main():
    asked = arguments()
    began = time.monotonic()
    build = Build(asked)
    compiling = time.monotonic() - began
    programs, tests = select(asked, build)
    if asked.list:
        for program, test, part in sorted(tests, key=lambda row: (row[0].package, row[0].target, row[1])):
            say(f"{f'long {part}' if part else 'gate'}\t{program.package}\t{program.target}\t{test}")
        return
    if not programs:
        stop("no test has such a name; see scripts/test --list")
    if not (asked.package or asked.test or asked.bin or asked.lib or asked.store or asked.names or asked.only_long):
        documentation = ["cargo", "test", "--workspace", "--all-features", "--doc", "--no-fail-fast"]
        programs += [Program("", "", "doc", documentation), *examples(build)]
    # Fast programs first, because they fail first; then those with the longest last run.
    times_file = build.directory / "test-times.json"
    times = read_times(times_file)
    programs.sort(key=lambda program: (not program.is_fast(), -times.get(str(program), len(program.tests))))
    # Many tests wait for most of their time.
    pools = [(Pool(os.cpu_count() + 1), False), (Pool(1), True)]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        for pool, is_alone in pools:
            pool.run([program for program in programs if program.is_alone() == is_alone])
    except (KeyboardInterrupt, SystemExit):
        for pool, _ in pools:
            pool.stop()
        raise
    times_file.write_text(json.dumps({**times, **{str(program): program.seconds for program in programs}}))
    summary(programs, compiling, time.monotonic() - began)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
