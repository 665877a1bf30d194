"""The kernel under sanitizers: `make sanitize`, and `make sanitize-short` for every change.

* AddressSanitizer with UndefinedBehaviorSanitizer: the C++ suite; from Python, a fit of every kind
  (every_fit.py) and the table of arguments that do not fit; in the long form at every
  instruction-set level, and all tests of tests/numerical.
* ThreadSanitizer: the C++ tests of what works in threads; in the long form the whole suite, and
  from Python a fit of every kind on four threads.

Before that each must find the mistakes of controls.cpp, in a program and in a library that Python
loads: where it does not, its silence means nothing. What is built goes to build/sanitize. GCC on
Linux, with libasan, libubsan and libtsan.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import subprocess
import sys
import sysconfig
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
BUILD = ROOT / "build" / "sanitize"
CONTROLS = Path("tests/sanitize/controls.cpp")
SUFFIX = sysconfig.get_config_var("EXT_SUFFIX")
CXX = os.environ.get("CXX", "g++")
# Optimised no more than it takes: compiling is most of the time.
OPTIMIZE = "-O1 -fno-math-errno -fno-trapping-math"
THREADS = 4


@dataclass(frozen=True)
class Sanitizer:
    """A sanitizer, and how it is used.

    Attributes
    ----------
    name
        Of its folder.
    flags
        To compile and link with.
    runtime
        The library that must be there before Python is.
    options
        Environment of what runs under it.
    mistakes
        Functions of controls.cpp, with what it says when it finds theirs.
    portable
        Whether the kernels are compiled once, without instruction-set levels.
    """

    name: str
    flags: tuple[str, ...]
    runtime: str
    options: dict[str, str]
    mistakes: dict[str, str]
    portable: bool = False

    @property
    def folder(self) -> Path:
        """Where its build is."""
        return BUILD / self.name

    def build(self, *targets: str, tests: str = "*") -> None:
        """Compile the C++ suite or some of its tests, the extension as asked, and the mistakes."""
        folder, flags = str(self.folder), " ".join(self.flags)
        settings = {
            "PY": sys.executable, "CXX": CXX, "OUT": folder, "SEAMS_OUT": f"{folder}/seams",
            "CXXFLAGS": f"-O1 -g1 -fno-omit-frame-pointer {flags}", "LDFLAGS": flags,
            "OPTIMIZE": OPTIMIZE, "BINDINGS_CXXFLAGS": "-O0 -g1", "TESTS": tests,
        }  # fmt: skip
        if self.portable:
            settings["PORTABLE"] = "1"
        jobs = os.environ.get("JOBS", "2")
        (self.folder / "run_tests").unlink(missing_ok=True)  # it may be of other tests
        run(
            ["make", "--no-print-directory", f"-j{jobs}", "-f", "tests/cpp/Makefile"]
            + [f"{name}={value}" for name, value in settings.items()]
            + [f"{folder}/run_tests", *targets]
        )
        compile_ = [CXX, "-std=c++20", "-O0", "-g1", "-fPIC", "-pthread", *self.flags]
        run([*compile_, str(CONTROLS), "-o", f"{folder}/controls"])
        run([*compile_, "-shared", str(CONTROLS), "-o", f"{folder}/controls.so"])

    def environment(self, *, python: bool) -> dict[str, str]:
        """Environment of what runs under it; of Python, with its runtime and the package."""
        environment = os.environ | self.options
        if not python:
            return environment
        libraries = [library(name) for name in (self.runtime, "libstdc++.so.6")]
        package = make_package(self.folder)
        # What the interpreter keeps to its end is no leak of the kernel's; and how other libraries
        # keep their threads apart cannot be seen.
        more = {
            "ASAN_OPTIONS": "detect_leaks=0",
            "TSAN_OPTIONS": "ignore_noninstrumented_modules=1",
        }
        for name, options in more.items():
            environment[name] = f"{self.options.get(name, '')}:{options}"
        return environment | {
            "LD_PRELOAD": " ".join(libraries),
            "PYTHONMALLOC": "malloc",
            "PYTHONPATH": str(package),
            "CSTONET_SEAMS": str(self.folder / "seams"),
            "OPENBLAS_NUM_THREADS": "1",
        }

    def finds_mistakes(self, *, in_python: bool = True) -> None:
        """Exit unless it finds every mistake, in a program and in what Python has loaded."""
        library_ = self.folder / "controls.so"
        for mistake, message in self.mistakes.items():
            load = f"import ctypes; ctypes.CDLL({str(library_)!r}).{mistake}(1000)"
            program = [str(self.folder / "controls"), mistake]
            for python, command in ((False, program), (True, [sys.executable, "-c", load])):
                if python and not in_python:
                    continue
                done = subprocess.run(
                    at_fixed_addresses(command),
                    env=self.environment(python=python),
                    capture_output=True,
                    text=True,
                    check=False,
                )
                if done.returncode == 0 or message not in done.stderr:
                    sys.exit(f"{self.name}: {mistake} was not found:\n{done.stdout}{done.stderr}")
        print(f"{self.name}: found {', '.join(self.mistakes)}", flush=True)

    def check(self, command: list[str], *, python: bool = False, **more: str) -> None:
        """Run something under it; exit with its status if that is not 0."""
        run(at_fixed_addresses(command), self.environment(python=python) | more)


def library(name: str) -> str:
    """Where the compiler has a library."""
    done = subprocess.run(
        [CXX, f"-print-file-name={name}"], capture_output=True, text=True, check=True
    )
    path = Path(done.stdout.strip())
    if not path.is_absolute():
        sys.exit(f"{CXX} has no {name}: install the sanitizers of GCC")
    return str(path)


def at_fixed_addresses(command: list[str]) -> list[str]:
    """The command without random addresses, which ThreadSanitizer may not know; where possible."""
    setarch = shutil.which("setarch")
    if setarch is None or subprocess.run([setarch, "-R", "true"], capture_output=True).returncode:
        return command
    return [setarch, "-R", *command]


def make_package(folder: Path) -> Path:
    """A folder to import the package from, with the extension built there."""
    home = folder / "package"
    shutil.rmtree(home, ignore_errors=True)
    (home / "cstonet").mkdir(parents=True)
    for entry in (ROOT / "cstonet").iterdir():
        if not entry.name.startswith("_core."):
            (home / "cstonet" / entry.name).symlink_to(entry)
    (home / "cstonet" / f"_core{SUFFIX}").symlink_to(folder / f"_core{SUFFIX}")
    return home


def processor_seconds() -> float:
    """Of all commands so far."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run(command: list[str], environment: dict[str, str] | None = None) -> None:
    """Run a command from the root; exit with its status if that is not 0."""
    began = time.monotonic()
    status = subprocess.run(command, env=environment, cwd=ROOT, check=False).returncode
    what = " ".join(word for word in command if "=" not in word)[-80:]
    print(f"-- {time.monotonic() - began:.0f} s: {what}", flush=True)
    if status:
        sys.exit(status)


ADDRESS = Sanitizer(
    name="address",
    flags=("-fsanitize=address,undefined,float-cast-overflow", "-fno-sanitize-recover=all"),
    runtime="libasan.so",
    options={
        "ASAN_OPTIONS": "detect_stack_use_after_return=1",
        "UBSAN_OPTIONS": "print_stacktrace=1",
    },
    mistakes={
        "heap_overflow": "heap-buffer-overflow",
        "signed_overflow": "signed integer overflow",
    },
)
THREAD = Sanitizer(
    name="thread",
    flags=("-fsanitize=thread",),
    runtime="libtsan.so",
    options={"TSAN_OPTIONS": "halt_on_error=1:second_deadlock_stack=1"},
    mistakes={"data_race": "data race"},
    portable=True,  # races do not depend on instruction sets
)
THREADED_TESTS = "hooks trainer score predict missing"


def check_addresses(short: bool) -> None:
    """Everything under AddressSanitizer and UndefinedBehaviorSanitizer."""
    ADDRESS.build("extension", "seams")
    ADDRESS.finds_mistakes()
    ADDRESS.check([str(ADDRESS.folder / "run_tests")])
    fits = [sys.executable, "tests/sanitize/every_fit.py"]
    tests = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    if short:
        ADDRESS.check(fits, python=True)
        ADDRESS.check([*tests, "tests/numerical/test_arguments.py"], python=True)
        return
    listed = "from cstonet import _core; print(*_core.levels())"
    done = subprocess.run(
        [sys.executable, "-c", listed],
        env=ADDRESS.environment(python=True), cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    for level in done.stdout.split():
        ADDRESS.check(fits, python=True, CSTONET_LEVEL=level)
    ADDRESS.check([*tests, "-m", "not slow", "tests/numerical"], python=True)


def check_threads(short: bool) -> None:
    """Everything under ThreadSanitizer."""
    program = str(THREAD.folder / "run_tests")
    if short:
        THREAD.build(tests=THREADED_TESTS)
        THREAD.finds_mistakes(in_python=False)
        THREAD.check([program])
        return
    THREAD.build("extension")
    THREAD.finds_mistakes()
    THREAD.check([program])
    fits = [sys.executable, "tests/sanitize/every_fit.py", "--threads", str(THREADS)]
    THREAD.check(fits, python=True)


def main() -> None:
    """Run all of them, and say how long it took."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--short", action="store_true", help="the form for every change")
    short = parser.parse_args().short
    began = time.monotonic()
    # Side by side, since running takes one processor and compiling two.
    with ThreadPoolExecutor(2) as pool:
        for check in [pool.submit(check, short) for check in (check_addresses, check_threads)]:
            check.result()
    took, used = time.monotonic() - began, processor_seconds()
    print(f"Nothing was found, in {took:.0f} s ({used:.0f} s of processors).")


if __name__ == "__main__":
    main()
