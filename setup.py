"""Builds the one extension module, aclnn_bw._native, from many Cython units, and on Linux a C library from the same.

Each unit of aclnn_bw/_core becomes one object; each unit of aclnn_bw/_kernels becomes one object for every instruction
set that the compiler can make, from the same generated C. Flags are probed by compiling, never assumed: without OpenMP
the build is serial, without x86-64-v2/v3/v4 it has the compiler's baseline alone.

Environment: ACLNN_BW_OPENMP=0|1|require (default 1: if the compiler has it), ACLNN_BW_VARIANTS=0 (the baseline alone),
ACLNN_BW_WERROR=1 (warnings of our own code are errors), ACLNN_BW_SANITIZE=address,undefined (flags for -fsanitize).
"""
import os
import platform
import re
import shutil
import sys
import sysconfig
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import CompileError, LinkError, SetupError

PACKAGE = "aclnn_bw"
VARIANTS = ("v2", "v3", "v4")
WERROR = os.environ.get("ACLNN_BW_WERROR") == "1"
CANN_LIBRARIES = ("ascendcl", "nnopbase", "opapi", "opapi_nn", "opapi_cv", "opapi_math")
SANITIZE = os.environ.get("ACLNN_BW_SANITIZE", "")
# Its handles are numbers of 64 bits. Instrumented objects keep all of Cython's code, and that needs the interpreter.
C_LIBRARY = sys.platform == "linux" and sys.maxsize > 2**32 and not SANITIZE
DIRECTIVES = {
    "language_level": 3,
    "cdivision": True,
    "binding": True,
    "embedsignature": True,
    "warn.maybe_uninitialized": False,
    "warn.unused": True,
}


def api_names() -> list[str]:
    """The functions that the public headers declare."""
    text = "".join(path.read_text() for path in sorted(Path(PACKAGE, "include").rglob("*.h")))
    return sorted(set(re.findall(r"^ACL_FUNC_VISIBILITY [^(;]*?(\w+)\(", text, re.MULTILINE)))


def units(folder: str) -> list[str]:
    return sorted(path.stem for path in Path(PACKAGE, folder).glob("*.pyx"))


class BuildNative(build_ext):
    """One link of all objects; setuptools alone would compile every source once, with one set of flags."""

    def build_extension(self, ext: Extension) -> None:
        self.temp = Path(self.build_temp)
        self.temp.mkdir(parents=True, exist_ok=True)
        self.drop_run_paths()
        openmp = self.probe_openmp()
        variants = self.probe_variants()
        for folder in self.temp.glob("_kernels_*"):
            if folder.name.removeprefix("_kernels_") not in variants:
                shutil.rmtree(folder)   # an earlier build's: the tests that link the objects would take them along
        # Cython makes every pair of two fused types, of which only some exist: the others are unused, and dropped.
        self.kernel_flags = self.supported(["-Wno-unused-function"])
        common = self.supported(["-O3", "-g0", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math",
                                 "-fvisibility=hidden", "-ffunction-sections", "-fdata-sections", "-Wall", "-Wextra"])
        if WERROR:
            common.append("-Werror")
        if SANITIZE:
            # Python's own flags have -fwrapv, under which no signed overflow is reported.
            common += [f"-fsanitize={SANITIZE}", "-fno-sanitize-recover=all", "-fno-wrapv", "-g", "-O1"]
        jobs = self.plan_jobs(common, openmp, variants)
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            made = list(pool.map(lambda job: self.compile_unit(*job), jobs))
        objects = [path for job, paths in zip(jobs, made, strict=True) if job[1] != "_capi" for path in paths]
        link = [*openmp, *self.supported(["-Wl,--gc-sections"], link=True)]
        if SANITIZE:
            link.append(f"-fsanitize={SANITIZE}")
        self.compiler.link_shared_object(
            objects, self.get_ext_fullpath(ext.name), extra_postargs=link, build_temp=str(self.temp),
            libraries=self.get_libraries(ext) if sys.platform == "win32" else ["m"],
            export_symbols=self.get_export_symbols(ext))
        if C_LIBRARY:
            objects = [path for job, paths in zip(jobs, made, strict=True) if job[1] != "face" for path in paths]
            self.link_c_library(Path(self.get_ext_fullpath(ext.name)).parent, objects, link)

    def drop_run_paths(self) -> None:
        """Leave out the run paths that the interpreter was linked with; those in $LDFLAGS are wanted, and stay."""
        wanted = os.environ.get("LDFLAGS", "").split()
        theirs = {flag for flag in (sysconfig.get_config_var("LDSHARED") or "").split()
                  if flag.startswith("-Wl,-rpath") and flag not in wanted}
        if theirs:
            self.compiler.linker_so = [flag for flag in self.compiler.linker_so if flag not in theirs]

    def copy_extensions_to_source(self) -> None:
        """For a build in place, and for an editable one."""
        super().copy_extensions_to_source()
        for folder in ("lib", "lib64") if C_LIBRARY else ():
            shutil.copytree(Path(self.build_lib, PACKAGE, folder), Path(PACKAGE, folder), dirs_exist_ok=True)

    def link_c_library(self, package: Path, objects: list[str], link: list[str]) -> None:
        """Make lib/libaclnn_bw.so, what CMake and pkg-config want to know of it, and lib64/ with CANN's library names.

        Those have the same symbols, in whose stead the loader takes the ones of libaclnn_bw.so (DT_FILTER).
        """
        lib, lib64 = package / "lib", package / "lib64"
        lib64.mkdir(parents=True, exist_ok=True)
        self.link_shared(objects, lib / "libaclnn_bw.so", [*link, "-Wl,-z,defs", "-s"], ["m", "pthread"])
        stub = self.temp / "cann.c"
        stub.write_text("#include <stdlib.h>\n" + "".join(
            f'__attribute__((visibility("default"))) void {name}(void) {{ abort(); }}\n' for name in api_names()))
        compiled = self.compiler.compile([str(stub)], output_dir=str(self.temp), extra_postargs=["-O1", "-g0"])
        for name in CANN_LIBRARIES:
            self.link_shared(compiled, lib64 / f"lib{name}.so", [
                "-Wl,--filter=libaclnn_bw.so", "-Wl,-rpath,$ORIGIN/../lib", "-Wl,--enable-new-dtags", "-s"], [])
        version = re.search(r'"(.*)"', Path(PACKAGE, "_version.py").read_text())[1]
        for template in sorted(Path(PACKAGE, "_capi", "templates").iterdir()):
            to = lib / {".pc": "pkgconfig", ".cmake": f"cmake/{PACKAGE}"}[template.suffix] / template.name
            to.parent.mkdir(parents=True, exist_ok=True)
            to.write_text(template.read_text().replace("@VERSION@", version))

    def link_shared(self, objects: list[str], path: Path, arguments: list[str], libraries: list[str]) -> None:
        self.compiler.link_shared_object(objects, str(path), libraries=libraries, build_temp=str(self.temp),
                                         extra_postargs=[*arguments, f"-Wl,-soname,{path.name}"])

    def plan_jobs(self, common: list[str], openmp: list[str], variants: list[str]) -> list[tuple]:
        """(C file, folder of the object, flags, macros, include folders) of every compilation."""
        import numpy

        sources = self.translate()
        include = [numpy.get_include()]
        include += [str(Path(PACKAGE, name)) for name in ("_core", "_kernels", "_capi", "include")]
        jobs = []
        for name, source in sources.items():
            folder, _, stem = name.rpartition(".")
            macros = []
            if folder:
                macros = [("CYTHON_NO_PYINIT_EXPORT", None), *self.renamed(folder, stem, folder)]
            if folder == "_kernels":
                for variant in variants:
                    flags = [*common, *self.kernel_flags]
                    if variant != "baseline":
                        flags.append(f"-march=x86-64-{variant}")
                    macros = [("CYTHON_NO_PYINIT_EXPORT", None), *self.renamed(folder, stem, variant)]
                    macros += [(f"aclnn_bw_{unit}_kernels", f"aclnn_bw_{unit}_kernels_{variant}")
                               for unit in units("_kernels")]
                    macros.append(("aclnn_bw_fill_table", f"aclnn_bw_fill_table_{variant}"))
                    jobs.append((source, f"{folder}_{variant}", flags, macros, include))
                continue
            if variants != ["baseline"]:
                macros.append(("ACLNN_BW_VARIANTS", None))
            flags = common
            if not folder:
                macros += [(name, "NPY_2_0_API_VERSION") for name in ("NPY_NO_DEPRECATED_API", "NPY_TARGET_VERSION")]
                flags = [*common, "-O2", *openmp]
                if not openmp:
                    # What Cython makes of prange when the pragmas mean nothing.
                    flags += self.supported(["-Wno-unused-but-set-variable", "-Wno-unknown-pragmas"])
            jobs.append((source, folder or "face", flags, macros, include))
        if C_LIBRARY:
            for path in sorted(Path(PACKAGE, "_capi").glob("*.c")):
                flags = [*common, *(openmp if path.stem == "parallel" else [])]
                jobs.append((str(path), "_capi", flags, [], include))
        return jobs

    @staticmethod
    def renamed(folder: str, stem: str, variant: str) -> list[tuple[str, str]]:
        """Cython's two external names of a module, made distinct where one stem is linked more than once."""
        main = f"__pyx_module_is_main_{PACKAGE}__{folder}__{stem}"
        return [(f"PyInit_{stem}", f"PyInit_{stem}_{variant}"), (main, f"{main}_{variant}")]

    def translate(self) -> dict[str, str]:
        """Every .pyx to C, below build_temp; {'_core.tensor': path, ..., '_native': path}."""
        from Cython.Build import cythonize
        from Cython.Compiler import Options

        Options.warning_errors = WERROR
        sources = {}
        folders = ["_core", "_kernels", *(["_capi"] if C_LIBRARY else [])]
        names = [f"{folder}.{stem}" for folder in folders for stem in units(folder)] + ["_native"]
        for name in names:
            path = str(Path(PACKAGE, *name.split("."))) + ".pyx"
            [module] = cythonize([Extension(f"{PACKAGE}.{name}", [path])], compiler_directives=DIRECTIVES,
                                 build_dir=str(self.temp / "cython"), force=True, quiet=True)
            sources[name] = module.sources[0]
        return sources

    def compile_unit(self, source: str, folder: str, flags: list[str], macros: list, include: list[str]) -> list[str]:
        return self.compiler.compile([source], output_dir=str(self.temp / folder), macros=macros, include_dirs=include,
                                     extra_postargs=flags)

    def compiles(self, flags: list[str], code: str = "int main(void) { return 0; }\n", link: bool = False) -> bool:
        """Whether a small program compiles (and links) with these flags and without a warning."""
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder, "probe.c")
            source.write_text(code)
            stderr = os.dup(2)
            silence = os.open(os.devnull, os.O_WRONLY)
            os.dup2(silence, 2)
            try:
                objects = self.compiler.compile([str(source)], output_dir=folder, extra_postargs=["-Werror", *flags])
                if link:
                    self.compiler.link_executable(objects, str(Path(folder, "probe")), extra_postargs=flags)
            except (CompileError, LinkError):
                return False
            finally:
                os.dup2(stderr, 2)
                os.close(stderr)
                os.close(silence)
            return True

    def supported(self, flags: list[str], link: bool = False) -> list[str]:
        return [flag for flag in flags if self.compiles([flag], link=link)]

    def probe_openmp(self) -> list[str]:
        """The OpenMP flag, if it is wanted and to be had. A program is linked: compiling alone proves no runtime."""
        wish = os.environ.get("ACLNN_BW_OPENMP", "1")
        if wish not in ("0", "1", "require"):
            raise SetupError(f"ACLNN_BW_OPENMP={wish!r}: must be 0, 1 or require")
        code = "#include <omp.h>\nint main(void) { return omp_get_max_threads() < 1; }\n"
        if wish != "0":
            if self.compiles(["-fopenmp"], code, link=True):
                return ["-fopenmp"]
            if wish == "require":
                raise SetupError("ACLNN_BW_OPENMP=require: the compiler cannot build an OpenMP program")
            self.warn("no OpenMP: the build is serial")
        return []

    def probe_variants(self) -> list[str]:
        """v2, v3 and v4 if the compiler makes them and can tell at run time which the CPU has; else one baseline."""
        if platform.machine().lower() in ("x86_64", "amd64") and os.environ.get("ACLNN_BW_VARIANTS") != "0":
            code = ("int main(void) { __builtin_cpu_init(); return __builtin_cpu_supports(\"x86-64-v2\")"
                    " + __builtin_cpu_supports(\"x86-64-v3\") + __builtin_cpu_supports(\"x86-64-v4\"); }\n")
            if self.compiles([], code, link=True) and all(self.compiles([f"-march=x86-64-{v}"]) for v in VARIANTS):
                return list(VARIANTS)
            self.warn("the compiler does not know the x86-64 levels: one baseline variant")
        return ["baseline"]


setup(
    ext_modules=[Extension(f"{PACKAGE}._native", [f"{PACKAGE}/_native.pyx"])],
    cmdclass={"build_ext": BuildNative},
)
