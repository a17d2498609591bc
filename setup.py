"""Builds the one extension module, aclnn_bw._native, from many Cython units, on Linux over a C library of most of them.

Each unit of aclnn_bw/_core becomes one object; each unit of aclnn_bw/_kernels becomes one object for every instruction
set that the compiler can make, from the same generated C. Flags are probed by compiling, never assumed: without OpenMP
the build is serial, without x86-64-v2/v3/v4 it has the compiler's baseline alone. On Linux these objects are linked
once, into lib/libaclnn_bw.so, which the module loads from beside it; elsewhere they are linked into the module.

What a build has made stays in build/temp.*, and is made again only if the contents of the files that went into it, the
flags, the compiler or Cython are others than then (setup_kept.py): after an edit of one file, what includes it.

Environment: ACLNN_BW_OPENMP=0|1|require (default 1: if the compiler has it), ACLNN_BW_VARIANTS=0 (the baseline alone),
ACLNN_BW_WERROR=1 (warnings of our own code are errors), ACLNN_BW_SANITIZE=address,undefined (flags for -fsanitize),
ACLNN_BW_TIMES=1 (print how many seconds each file took; pip shows it with -v).
"""
import multiprocessing
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from contextlib import ExitStack
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import CompileError, LinkError, SetupError

sys.path.insert(0, str(Path(__file__).resolve().parent))    # which pip leaves out
from setup_kept import kept, portable, prerequisites, translate

PACKAGE = "aclnn_bw"
VARIANTS = ("v2", "v3", "v4")
WERROR = os.environ.get("ACLNN_BW_WERROR") == "1"
CANN_LIBRARIES = ("ascendcl", "nnopbase", "opapi", "opapi_nn", "opapi_cv", "opapi_math")
SANITIZE = os.environ.get("ACLNN_BW_SANITIZE", "")
# Its handles are numbers of 64 bits. Instrumented objects keep all of Cython's code, and that needs the interpreter.
C_LIBRARY = sys.platform == "linux" and sys.maxsize > 2**32 and not SANITIZE
# A vector that is passed to a function goes through memory, so what is declared inline is, in the units whose loops are
# written over simd.pxd. What is not stays a function there: what its caller keeps would take the loop's registers.
UNIT_FLAGS = {
    "avg_pool2d": ["-DCYTHON_INLINE=inline __attribute__((always_inline))"],
    "avg_pool2d_forward": ["-DCYTHON_INLINE=inline __attribute__((always_inline))"],
    "replication_pad2d": ["-DCYTHON_INLINE=inline __attribute__((always_inline))"],
    "upsample_nearest_exact1d": ["-DCYTHON_INLINE=inline __attribute__((always_inline))"],
    "max_pool2d_forward": ["-DCYTHON_INLINE=inline __attribute__((always_inline))",
                           "-fno-inline-functions-called-once"],
    "im2col": ["-DCYTHON_INLINE=inline __attribute__((always_inline))"],
    # The transposition that all forms call would be there twice: a third of the code.
    "im2col_last": ["-DCYTHON_INLINE=inline __attribute__((always_inline))", "-fno-ipa-cp-clone"],
    # A form that has one caller would be spilled with all else in it; so would SCATTER's loop over
    # indices, which has three callers.
    "max_pool2d_gather": ["-DCYTHON_INLINE=inline __attribute__((always_inline))", "-fno-inline-functions-called-once"],
    "max_pool2d_scatter": ["-DCYTHON_INLINE=inline __attribute__((always_inline))", "-fno-inline-functions-called-once",
                           "-fno-inline-functions"],
}
# With less optimisation the sums of a block, which are arrays, would stay in memory.
WHOLE_FLOOR = {"max_pool2d_gather"}
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
        if self.editable_mode:  # where setuptools builds in a folder that it removes
            self.temp = Path("build", f"temp.{self.plat_name}-{sys.implementation.cache_tag}")
        self.temp.mkdir(parents=True, exist_ok=True)
        self.times: list[tuple[float, str]] = []
        self.drop_run_paths()
        openmp = self.probe_openmp()
        variants = self.probe_variants()
        # Cython makes every pair of two fused types, of which only some exist: the others are unused, and dropped.
        # A loop takes 0.85 to 1.2 times as long where its lines of code begin elsewhere: other units do not move it so.
        self.kernel_flags = self.supported(["-Wno-unused-function", "-falign-functions=64"])
        # Nothing unwinds through what is not Python's, and the tables for that are a fiftieth of the wheel.
        self.interpreter_free_flags = self.supported(["-fno-asynchronous-unwind-tables", "-fno-unwind-tables"])
        # What the module calls in another library cannot be hidden from the start: the version script hides the rest.
        visible = ["-fvisibility=default", "-fno-semantic-interposition"] if C_LIBRARY else []
        self.visible_flags = self.supported(visible)
        self.unit_flags = {unit: self.supported(flags) for unit, flags in UNIT_FLAGS.items()}
        self.floor_flags = self.supported(["-O2", "-ftree-vectorize", "-fvect-cost-model=dynamic"])
        # Dependencies for `kept`; a compiler that does not tell them compiles all again.
        self.tells = bool(self.supported(["-MMD"]))
        common = self.supported(["-O3", "-g0", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math",
                                 "-fvisibility=hidden", "-ffunction-sections", "-fdata-sections", "-Wall", "-Wextra"])
        if WERROR:
            common.append("-Werror")
        if SANITIZE:
            # Python's own flags have -fwrapv, under which no signed overflow is reported.
            common += [f"-fsanitize={SANITIZE}", "-fno-sanitize-recover=all", "-fno-wrapv", "-g", "-O1"]
        objects = self.compile_all(common, openmp, variants)
        for path in {*self.temp.rglob(f"*{self.compiler.obj_extension}")} - {path for _, path in objects}:
            path.unlink()   # an earlier build's: the tests that link the objects would take it along
        link = [*openmp, *self.supported(["-Wl,--gc-sections"], link=True)]
        if SANITIZE:
            link.append(f"-fsanitize={SANITIZE}")
        module = Path(self.get_ext_fullpath(ext.name))
        linked = [path for _, path in objects]
        if C_LIBRARY:
            library = self.link_c_library(module.parent, [path for folder, path in objects if folder != "face"], link)
            linked = [*(path for folder, path in objects if folder == "face"), library]
            # Old tags are looked at before $LD_LIBRARY_PATH, where another version may lie.
            link += [*self.supported(["-Wl,--disable-new-dtags"], link=True), "-Wl,-rpath,$ORIGIN/lib"]
        self.link_kept(linked, module, link, self.get_libraries(ext) if sys.platform == "win32" else ["m"],
                       self.get_export_symbols(ext))
        if os.environ.get("ACLNN_BW_TIMES") == "1":
            for seconds, name in sorted(self.times, reverse=True):
                print(f"{seconds:7.2f} s  {name}")
            print(f"{sum(seconds for seconds, _ in self.times):7.2f} s  for {len(self.times)} files that were made")

    def compile_all(self, common: list[str], openmp: list[str], variants: list[str]) -> list[tuple[str, Path]]:
        """Every (folder, object). Files are compiled as soon as they are translated, the largest first."""
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        identity = self.compiler_identity()
        folders = ["_core", "_kernels", *(["_capi"] if C_LIBRARY else [])]
        names = [f"{folder}.{stem}" for folder in folders for stem in units(folder)] + ["_native"]
        sources = {name: Path(PACKAGE, *name.split(".")).with_suffix(".pyx") for name in names}
        names.sort(key=lambda name: sources[name].stat().st_size, reverse=True)
        objects: list[tuple[str, Path]] = []
        made: list[Future[None]] = []

        def compile_each(name: str, source: Path) -> None:
            for job in self.plan_jobs(name, source, common, openmp, variants):
                objects.append((job[1], self.object_of(*job[:2])))
                made.append(compilers.submit(self.compile_kept, *job, identity))

        with ExitStack() as stack:
            # Threads come after the processes, which inherit none of them so. Cython is not made for threads.
            fork = cores > 1 and "fork" in multiprocessing.get_all_start_methods()
            translators = ProcessPoolExecutor(cores, multiprocessing.get_context("fork")) if fork else None
            translators = stack.enter_context(translators or ThreadPoolExecutor(1))
            waiting = {}
            for name in names:
                to = (self.temp / "cython" / PACKAGE / Path(*name.split("."))).with_suffix(".c")
                job = translators.submit(translate, sources[name], f"{PACKAGE}.{name}", to, DIRECTIVES, WERROR)
                waiting[job] = name, to
            compilers = ThreadPoolExecutor(cores)
            stack.callback(compilers.shutdown, cancel_futures=True)     # after the first error
            for path in sorted(Path(PACKAGE, "_capi").glob("*.c")) if C_LIBRARY else []:
                compile_each(f"_capi.{path.stem}", path)
            for future in as_completed(waiting):
                name, to = waiting[future]
                self.note(future.result(), f"{sources[name]} to C")
                compile_each(name, to)
            for compilation in as_completed(made):
                compilation.result()
        return sorted(objects)

    def note(self, seconds: float | None, name: str) -> None:
        if seconds is not None:
            self.times.append((seconds, name))

    def compiler_identity(self) -> list[str]:
        """What the compiler tells of itself, and the interpreter's headers."""
        command = self.compiler.compiler_so
        program = [word for word in command if not word.startswith("-")]
        told = subprocess.run([*program, "-v"], capture_output=True, text=True, check=False)
        return [*command, told.stdout, told.stderr, sysconfig.get_path("include"), sys.version]

    def object_of(self, source: Path, folder: str) -> Path:
        return Path(self.compiler.object_filenames([str(source)], output_dir=str(self.temp / folder))[0])

    def compile_kept(self, source: Path, folder: str, flags: list[str], macros: list[tuple],
                     identity: list[str]) -> None:
        """Compile one file, unless it has been."""
        import numpy

        path = self.object_of(source, folder)
        rule = path.with_suffix(".d")
        include = [str(Path(PACKAGE, name)) for name in ("", "_core", "_kernels", "_capi", "include")]
        if not self.tells:
            path.unlink(missing_ok=True)

        def make() -> list[str]:
            tell = ["-MMD", "-MF", str(rule)] if self.tells else []
            self.compiler.compile([str(source)], output_dir=str(self.temp / folder), macros=macros,
                                  include_dirs=[numpy.get_include(), *include], extra_postargs=[*flags, *tell])
            return prerequisites(rule) if tell else []

        self.note(kept(path, [identity, flags, macros], make), f"{folder}/{source.name}")

    def link_kept(self, objects: list[Path], to: Path, arguments: list[str], libraries: list[str],
                  exports: list[str] | None = None, versions: Path | None = None) -> Path:
        """Link a library, unless it has been, and copy it to where it is wanted."""
        path = self.temp / "linked" / to.name
        read = [*objects, *([versions] if versions else [])]
        if versions:
            arguments = [*arguments, f"-Wl,--version-script={versions}"]

        def make() -> list[str]:
            path.unlink(missing_ok=True)    # setuptools compares dates
            self.compiler.link_shared_object(list(map(str, objects)), str(path), extra_postargs=arguments,
                                             build_temp=str(self.temp), libraries=libraries, export_symbols=exports)
            return list(map(str, read))

        settings = [self.compiler.linker_so, arguments, libraries, [portable(str(name)) for name in objects]]
        self.note(kept(path, settings, make), path.name)
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, to)
        return path

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

    def link_c_library(self, package: Path, objects: list[Path], link: list[str]) -> Path:
        """Make lib/libaclnn_bw.so, what CMake and pkg-config want to know of it, and lib64/ with CANN's library names.

        Those have the same symbols, in whose stead the loader takes the ones of libaclnn_bw.so (DT_FILTER).
        """
        lib, lib64 = package / "lib", package / "lib64"
        version = re.search(r'"(.*)"', Path(PACKAGE, "_version.py").read_text())[1]
        # What the module calls is for this very version's: another one's, loaded before, is refused on import.
        versions = self.temp / "internal.map"
        names = "".join(f"{name}; " for name in self.internal_names())
        versions.write_text(
            f"{PACKAGE.upper()}_{version} {{ global: {names}local: {PACKAGE}_*; PyInit_*; __pyx_*; }};\n")
        library = self.link_shared(objects, lib / "libaclnn_bw.so", [*link, "-Wl,-z,defs", "-Wl,-Bsymbolic"],
                                   ["m", "pthread"], versions)
        stub = self.temp / "cann.c"
        stub.write_text("#include <stdlib.h>\n" + "".join(
            f'__attribute__((visibility("default"))) void {name}(void) {{ abort(); }}\n' for name in api_names()))
        compiled = [Path(path) for path in self.compiler.compile([str(stub)], output_dir=str(self.temp),
                                                                 extra_postargs=["-O1", "-g0"])]
        for name in CANN_LIBRARIES:
            self.link_shared(compiled, lib64 / f"lib{name}.so", [
                "-Wl,--filter=libaclnn_bw.so", "-Wl,-rpath,$ORIGIN/../lib", "-Wl,--enable-new-dtags", "-s"], [])
        for template in sorted(Path(PACKAGE, "_capi", "templates").iterdir()):
            to = lib / {".pc": "pkgconfig", ".cmake": f"cmake/{PACKAGE}"}[template.suffix] / template.name
            to.parent.mkdir(parents=True, exist_ok=True)
            to.write_text(template.read_text().replace("@VERSION@", version))
        return library

    def internal_names(self) -> list[str]:
        """The functions of the core that the module calls."""
        declared = "".join(path.read_text() for path in Path(PACKAGE, "_core").glob("*.pxd"))
        used = set(re.findall(r"\w+", (self.temp / "cython" / PACKAGE / "_native.c").read_text()))
        return sorted(used & set(re.findall(r'"([a-z]\w+)" ?\(', declared)))

    def link_shared(self, objects: list[Path], to: Path, arguments: list[str], libraries: list[str],
                    versions: Path | None = None) -> Path:
        return self.link_kept(objects, to, [*arguments, f"-Wl,-soname,{to.name}"], libraries, versions=versions)

    def plan_jobs(self, name: str, source: Path, common: list[str], openmp: list[str],
                  variants: list[str]) -> list[tuple]:
        """(C file, folder of the object, flags, macros) of every compilation of one unit."""
        folder, _, stem = name.rpartition(".")
        if source.parent == Path(PACKAGE, folder):  # written in C
            flags = [*common, *(openmp if stem == "parallel" else [])]
            if stem == "operators":     # defines what the public headers declare
                headers = sorted(Path(PACKAGE, "include", "aclnnop").glob("*.h"))
                flags += [word for header in headers for word in ("-include", f"aclnnop/{header.name}")]
                flags += ["-Wmissing-prototypes"]
            return [(source, folder, flags, [])]
        macros = []
        if folder:
            macros = [("CYTHON_NO_PYINIT_EXPORT", None), *self.renamed(folder, stem, folder)]
        if folder == "_kernels":
            jobs = []
            for variant in variants:
                flags = [*common, *self.interpreter_free_flags, *self.kernel_flags, *self.unit_flags.get(stem, [])]
                if variant != "baseline":
                    flags.append(f"-march=x86-64-{variant}")
                if variant == "v2" and stem not in WHOLE_FLOOR:
                    # For processors older than AVX2: right, but -O3 is not worth its time in the build.
                    flags += self.floor_flags
                macros = [("CYTHON_NO_PYINIT_EXPORT", None), *self.renamed(folder, stem, variant)]
                macros += [(f"aclnn_bw_{unit}_kernels", f"aclnn_bw_{unit}_kernels_{variant}")
                           for unit in units("_kernels")]
                macros.append(("aclnn_bw_fill_table", f"aclnn_bw_fill_table_{variant}"))
                jobs.append((source, f"{folder}_{variant}", flags, macros))
            return jobs
        if variants != ["baseline"]:
            macros.append(("ACLNN_BW_VARIANTS", None))
        flags = [*common, *self.interpreter_free_flags, *(self.visible_flags if folder == "_core" else [])]
        if not folder:
            macros += [(name, "NPY_2_0_API_VERSION") for name in ("NPY_NO_DEPRECATED_API", "NPY_TARGET_VERSION")]
            flags = [*common, "-O2", *openmp]
            if not openmp:
                # What Cython makes of prange when the pragmas mean nothing.
                flags += self.supported(["-Wno-unused-but-set-variable", "-Wno-unknown-pragmas"])
        return [(source, folder or "face", flags, macros)]

    @staticmethod
    def renamed(folder: str, stem: str, variant: str) -> list[tuple[str, str]]:
        """Cython's two external names of a module, made distinct where one stem is linked more than once."""
        main = f"__pyx_module_is_main_{PACKAGE}__{folder}__{stem}"
        return [(f"PyInit_{stem}", f"PyInit_{stem}_{variant}"), (main, f"{main}_{variant}")]

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
        if self.compiles(flags, link=link):     # most compilers take all: one question instead of many
            return flags
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
        # The compiler is asked what it compiles for: in a cross build that is another machine than this one.
        x86 = "#if !defined(__x86_64__) && !defined(_M_X64)\n#error another processor\n#endif\n"
        if os.environ.get("ACLNN_BW_VARIANTS") != "0" and self.compiles([], x86 + "int main(void) { return 0; }\n"):
            code = ("int main(void) { __builtin_cpu_init(); return __builtin_cpu_supports(\"x86-64-v2\")"
                    " + __builtin_cpu_supports(\"x86-64-v3\") + __builtin_cpu_supports(\"x86-64-v4\"); }\n")
            if self.compiles([], code, link=True) and all(self.compiles([f"-march=x86-64-{v}"]) for v in VARIANTS):
                return list(VARIANTS)
            self.warn("the compiler does not know the x86-64 levels: one baseline variant")
        return ["baseline"]


if __name__ == "__main__":
    setup(
        ext_modules=[Extension(f"{PACKAGE}._native", [f"{PACKAGE}/_native.pyx"])],
        cmdclass={"build_ext": BuildNative},
    )
