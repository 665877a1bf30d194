"""Builds the extension: the kernels once per instruction-set level, everything else once."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import sys
from pathlib import Path

from pybind11.setup_helpers import ParallelCompile, Pybind11Extension, build_ext
from setuptools import setup

FLAGS_FILE = Path("csrc/kernels/flags.mk")


def read_flags() -> dict[str, list[str]]:
    """The assignments `NAME := words` of the file that the Makefile of the tests includes too."""
    lines = FLAGS_FILE.read_text("utf-8").splitlines()
    assignments = (line.split(" := ") for line in lines if line and not line.startswith("#"))
    return {name: words.split() for name, words in assignments}


FLAGS = read_flags()
# Nothing but the module itself is to be seen from outside. What the C++ library has in headers is
# visible whatever -fvisibility says, and would be shared with extensions that were compiled for
# other processors.
EXPORTS_FILE = Path("csrc/bindings/exports.map")
EXPORTS = [f"-Wl,--version-script={EXPORTS_FILE}"] if sys.platform == "linux" else []
KERNELS = [f"csrc/kernels/{name}.cpp" for name in FLAGS["KERNELS"]]
OPTIMIZE = [*FLAGS["OPTIMIZE"], "-DNDEBUG"]
IS_X86 = platform.machine().lower() in {"x86_64", "amd64"}
LEVELS = FLAGS["LEVELS_x86" if IS_X86 else "LEVELS_other"]


def eigen_include_dir() -> str:
    """Where the Eigen headers are: EIGEN_INCLUDE_DIR, or the cmeel-eigen package."""
    override = os.environ.get("EIGEN_INCLUDE_DIR")
    if override:
        if not (Path(override) / "Eigen" / "Core").is_file():
            sys.exit(f"EIGEN_INCLUDE_DIR={override!r} holds no Eigen/Core; point it at the headers")
        return override
    package = importlib.metadata.distribution("cmeel-eigen")
    return str(package.locate_file("cmeel.prefix/include/eigen3"))


class BuildLevels(build_ext):
    """Compiles each kernel source once per level into objects of its own, then links them all."""

    def build_extension(self, ext: Pybind11Extension) -> None:
        """Compile the kernels of every level, add them to the link line, build the rest."""
        for level in LEVELS:
            for source in KERNELS:
                own = [
                    *FLAGS.get(f"FLAGS_{level}", []),
                    *FLAGS.get(f"FLAGS_{Path(source).stem}", []),
                ]
                ext.extra_objects += self.compiler.compile(
                    [source],
                    output_dir=str(Path(self.build_temp) / level),
                    macros=[("CSTONET_LEVEL", level)],
                    include_dirs=["csrc"],
                    extra_postargs=[
                        "-fPIC",
                        "-fvisibility=hidden",
                        *FLAGS["STANDARD"],
                        *OPTIMIZE,
                        *own,
                    ],
                )
        super().build_extension(ext)


ParallelCompile("CSTONET_BUILD_JOBS", default=0).install()

setup(
    ext_modules=[
        Pybind11Extension(
            "cstonet._core",
            sources=[
                *sorted(str(p) for p in Path("csrc/core").glob("*.cpp")),
                *sorted(str(p) for p in Path("csrc/bindings").glob("*.cpp")),
                "csrc/kernels/dispatch.cpp",
            ],
            include_dirs=["csrc", eigen_include_dir()],
            # Without these a change of a header or of a kernel would not be linked in again. They
            # also tell setuptools what else a source distribution needs.
            depends=[
                str(FLAGS_FILE),
                str(EXPORTS_FILE),
                *KERNELS,
                *sorted(str(p) for p in Path("csrc").rglob("*.hpp")),
            ],
            define_macros=[("CSTONET_X86_LEVELS", "1")] if IS_X86 else [],
            extra_compile_args=OPTIMIZE,
            extra_link_args=EXPORTS,
            cxx_std=int(FLAGS["STANDARD"][0].removeprefix("-std=c++")),
        )
    ],
    cmdclass={"build_ext": BuildLevels},
)
