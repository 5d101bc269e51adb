#!/usr/bin/env python3
"""Builds Esker four times, runs every test and every static check, and counts test cases.

Called by tools/check, which installs what is needed first. Keeps going after a failure. What cannot
run, and what a test skips, counts as failed: nothing is left out silently. The last line of the
output is "N passed, N failed".
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
WORKERS = max(1, len(os.sched_getaffinity(0)))
HANG_S = 600  # nobody's expected duration: only what ends a test that hangs

# GCC 12 sees overlaps in std::string that are not there (its bug 105651), and under the sanitizers
# uninitialised members of the standard library. The check of vptr needs a free descriptor, which
# tests of full descriptor tables do not leave. -g1: lines in reports, but no variables.
WRONG_WARNINGS = "-Dcpp_args=-Wno-restrict"
SANITIZED_ARGS = WRONG_WARNINGS + " -Wno-maybe-uninitialized -fno-sanitize=vptr -g1"
# It does not follow fences: it would report an order that rests on one alone (there is none yet).
THREADS_ARGS = WRONG_WARNINGS + " -Wno-maybe-uninitialized -Wno-tsan -g1"

# Name, build directory, meson options. Static checks and tests of suite "static" run once.
BUILDS = (
    ("release", "build", ["-Dbuildtype=release", WRONG_WARNINGS, "-Dtests=true", "-Dtools=true"]),
    ("sanitized", "build/asan",
     ["-Doptimization=g", "-Ddebug=false", "-Db_sanitize=address,undefined", "-Db_lundef=false",
      "-Db_ndebug=false", SANITIZED_ARGS, "-Dtests=true", "-Dtools=true"]),
    ("narrow hash", "build/narrow",
     ["-Dbuildtype=release", "-Dnarrow_hash=true", WRONG_WARNINGS, "-Dtests=true",
      "-Dtools=false"]),
    ("threads", "build/tsan",
     ["-Doptimization=g", "-Ddebug=false", "-Db_sanitize=thread", "-Db_lundef=false",
      "-Db_ndebug=false", THREADS_ARGS, "-Dtests=true", "-Dtools=false"]),
)

SANITIZER_ENV = {
    "ASAN_OPTIONS": "detect_stack_use_after_return=1:strict_string_checks=1",
    "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
    "TSAN_OPTIONS": "second_deadlock_stack=1",
}


class Tally:
    """What passed and what failed, with the first lines of each failure's log."""

    def __init__(self):
        self.passed = 0
        self.failed = 0
        self.failures = []

    def add(self, title, passed, failed, step):
        self.passed += passed
        self.failed += failed
        verdict = "ok" if failed == 0 else f"FAILED ({failed})"
        print(f"  {title:<40} {step.seconds:>5.0f} s {passed:>5} passed  {verdict}", flush=True)
        if failed:
            self.failures.append((title, step.log))


class Step:
    """One command whose output goes to a log file. Its processes end with this one."""

    running = set()
    stopped = False

    def __init__(self, log):
        self.log = log
        self.seconds = 0.0
        log.parent.mkdir(parents=True, exist_ok=True)

    def run(self, command, env=None, cwd=ROOT, timeout_s=HANG_S):
        """The exit code and the output; 124 after a hang, 127 when the command is not there."""
        if Step.stopped:
            return 130, ""
        started = time.monotonic()
        with open(self.log, "wb") as out:
            try:
                process = subprocess.Popen(
                    command, stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                    cwd=cwd, env={**os.environ, **(env or {})}, start_new_session=True)
            except OSError as error:
                out.write(f"{command[0]}: {error}\n".encode())
                return 127, self.text()
            Step.running.add(process.pid)
            try:
                code = process.wait(timeout_s)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                out.write(f"\nended after {timeout_s} s\n".encode())
                code = 124
            Step.running.discard(process.pid)
        self.seconds = time.monotonic() - started
        return code, self.text()

    def text(self):
        return self.log.read_text(errors="replace")

    @classmethod
    def stop_all(cls, number, _frame):
        """Ctrl-C, or the end asked for: nothing is started any more, and what runs is ended."""
        cls.stopped = True
        for group in list(cls.running):
            try:
                os.killpg(group, signal.SIGKILL)
            except ProcessLookupError:
                pass  # it has just ended by itself
        sys.exit(128 + number)


def catch2_counts(code, output, total):
    """Passed and failed cases of a Catch2 run (v2 and v3 print the same summary)."""
    if found := re.search(r"All tests passed \(.* in (\d+) test cases?\)", output):
        passed = int(found.group(1))
    elif found := re.search(r"^test cases: .*?(\d+) passed", output, re.M):
        passed = int(found.group(1))
    else:
        passed = 0  # it died before the summary
    failed = max(total - passed, 0)
    if code != 0 or passed == 0:
        failed = max(failed, 1)
    return passed, failed


def unittest_counts(code, output):
    """Passed and failed cases of a unittest run, or None if it was none. A skip is a failure."""
    ran = re.search(r"^Ran (\d+) tests? in", output, re.M)
    if not ran:
        return None
    bad = sum(int(n) for n in
              re.findall(r"(?:failures|errors|skipped|unexpected successes)=(\d+)", output))
    passed = max(int(ran.group(1)) - bad, 0)
    if code != 0 or passed == 0:
        bad = max(bad, 1)
    return passed, bad


def list_cases(command, env):
    """The number of cases of a Catch2 program, or None if it is none."""
    try:
        done = subprocess.run([*command, "--list-tests"], capture_output=True, text=True,
                              errors="replace", timeout=HANG_S, stdin=subprocess.DEVNULL,
                              env={**os.environ, **env})
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r"^(\d+) (?:matching )?test cases?\s*$", done.stdout, re.M)
    return int(found.group(1)) if found else None


def run_test(test, build_dir, title):
    """Runs one entry of `meson introspect --tests`."""
    command, env = test["cmd"], dict(test.get("env") or {})
    if build_dir.name in ("asan", "tsan"):
        env = {**SANITIZER_ENV, **env}
    name = re.sub(r"[^A-Za-z0-9_.-]+", "-", f"{build_dir.name}-{test['name']}")
    step = Step(ROOT / "build" / "check-logs" / f"{name}.log")
    program = pathlib.Path(command[0])
    total = None
    if build_dir in program.parents and program.suffix == "":
        total = list_cases(command, env)
    timeout_s = max(HANG_S, 4 * int(test.get("timeout") or 0))
    code, output = step.run(command, env, test.get("workdir") or ROOT, timeout_s)
    if total is not None:
        passed, failed = catch2_counts(code, output, total)
    else:
        passed, failed = unittest_counts(code, output) or ((1, 0) if code == 0 else (0, 1))
    return title, passed, failed, step


def run_tests(tally, name, build_dir, skip_static):
    """Runs what meson knows as tests: two at a time, except those that must be alone."""
    step = Step(ROOT / "build" / "check-logs" / f"{build_dir.name}-introspect.log")
    code, output = step.run(["meson", "introspect", "--tests", str(build_dir)])
    try:
        tests = json.loads(output) if code == 0 else None
    except json.JSONDecodeError:
        tests = None
    if not tests:
        tally.add(f"{name}: list of tests", 0, 1, step)
        return
    if skip_static:
        tests = [test for test in tests if not any("static" in s for s in test.get("suite", []))]
    # The longest first, so that none of them runs alone at the end.
    tests.sort(key=lambda test: int(test.get("timeout") or 0), reverse=True)
    together = [test for test in tests if test.get("is_parallel", True)]
    alone = [test for test in tests if not test.get("is_parallel", True)]
    for group, workers in ((together, WORKERS), (alone, 1)):
        with concurrent.futures.ThreadPoolExecutor(workers) as pool:
            jobs = [pool.submit(run_test, t, build_dir, f"{name}: {t['name']}") for t in group]
            for job in concurrent.futures.as_completed(jobs):
                tally.add(*job.result())


def build(tally, name, build_dir, options):
    """Configures and compiles. True when the tests can run."""
    log_dir = ROOT / "build" / "check-logs"
    flags = ["-Dwerror=true", *options]
    configured = (build_dir / "build.ninja").exists()
    setup = ["meson", "setup", str(build_dir), *flags]
    step = Step(log_dir / f"{build_dir.name}-setup.log")
    code, _ = step.run([*setup, "--reconfigure"] if configured else setup)
    if code != 0 and configured:  # for instance made by another version of meson
        code, _ = step.run([*setup, "--wipe"])
    if code == 0:
        step = Step(log_dir / f"{build_dir.name}-compile.log")
        code, _ = step.run(["ninja", "-C", str(build_dir), f"-j{WORKERS}", "-k0"],
                           timeout_s=6 * HANG_S)
    tally.add(f"{name}: build", 1 if code == 0 else 0, 0 if code == 0 else 1, step)
    return code == 0


def sources(*suffixes, under=("include", "src", "tools", "tests", "bench")):
    return sorted(str(path.relative_to(ROOT)) for folder in under
                  for path in (ROOT / folder).rglob("*") if path.suffix in suffixes)


def check_tidy(tally):
    for title, arguments in (("tidy: self-test", ["--self-test"]), ("tidy", [])):
        step = Step(ROOT / "build" / "check-logs" / f"{title.replace(': ', '-')}.log")
        code, output = step.run([sys.executable, "tests/tidy.py", *arguments])
        counts = unittest_counts(code, output) or ((1, 0) if code == 0 else (0, 1))
        tally.add(f"static: {title}", *counts, step)


def check_format(tally):
    step = Step(ROOT / "build" / "check-logs" / "clang-format.log")
    code, _ = step.run(["clang-format-14", "--dry-run", "--Werror", *sources(".cpp", ".hpp")])
    tally.add("static: clang-format", int(code == 0), int(code != 0), step)


def check_clang_tidy(tally, build_dir):
    """The library only: what includes CLI11, JSON or Catch2 takes longer than it is worth."""
    files = sources(".cpp", under=("src",))
    log_dir = ROOT / "build" / "check-logs" / "clang-tidy"
    summary = Step(ROOT / "build" / "check-logs" / "clang-tidy.log")
    command = ["clang-tidy-14", "--quiet", "--extra-arg=-Wno-unknown-warning-option", "-p",
               str(build_dir)]
    started = time.monotonic()

    def one(path):
        step = Step(log_dir / f"{path.replace('/', '-')}.log")
        return step.run([*command, path])

    with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
        results = list(pool.map(one, files))
    bad = [output for code, output in results if code != 0]
    summary.log.write_text("\n".join(bad))
    summary.seconds = time.monotonic() - started
    clean = bool(results) and not bad
    tally.add(f"static: clang-tidy ({len(files)} files)", int(clean), int(not clean), summary)


def check_readme(tally, build_dir):
    step = Step(ROOT / "build" / "check-logs" / "readme.log")
    code, output = step.run([sys.executable, "tests/readme_test.py", str(build_dir)])
    counts = unittest_counts(code, output) or (0, 1)
    tally.add("static: README", *counts, step)


def report(tally, started):
    for title, log in tally.failures:
        print(f"\n---- {title}: {log}")
        if log.is_file():
            print("\n".join(log.read_text(errors="replace").rstrip().splitlines()[-60:]))
    print(f"\nLogs: build/check-logs/   {time.monotonic() - started:.0f} s")
    print(f"{tally.passed} passed, {tally.failed} failed", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=["release", "sanitized", "narrow", "threads", "static"],
                        help="one part of it, while working; the default is everything")
    only = parser.parse_args().only
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, Step.stop_all)
    started = time.monotonic()
    tally = Tally()
    shutil.rmtree(ROOT / "build" / "check-logs", ignore_errors=True)
    for name, folder, options in BUILDS:
        static_here = name == "release" and only in (None, "static")
        if only and not name.startswith(only) and not static_here:
            continue
        print(f"{name} ({folder})", flush=True)
        build_dir = ROOT / folder
        built = build(tally, name, build_dir, options)
        if built and only != "static":
            run_tests(tally, name, build_dir, skip_static=name != "release")
        if static_here:
            check_tidy(tally)
            check_format(tally)
            check_clang_tidy(tally, build_dir)
            check_readme(tally, build_dir)
    report(tally, started)
    return 1 if tally.failed else 0


if __name__ == "__main__":
    sys.exit(main())
