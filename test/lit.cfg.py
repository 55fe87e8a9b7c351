# The lit suite: every .exo, .eir and .test file under test/lit/.
#
#   ./dev test                          all of it, from the build folder
#   lit.py -v test/lit/PATH             one file, against build/
#
# Tools are found on PATH, with build/bin first; FileCheck, not, count and
# split-file come from LLVM 19. Features for REQUIRES:
#   llvm, z3, json, edit   the build has the library
#   ptxas            an assembler was found, where exo-translate looks for it
#   disassembler     nvdisasm or cuobjdump was found there
#   gpu              libcuda.so.1 loads and device 0 is a Hopper
#   long             ./dev test --long

import ctypes
import os
import shutil

import lit.formats

if not hasattr(config, "exo_binary_dir"):
    source = os.path.dirname(os.path.abspath(__file__))
    site = os.path.join(source, "..", "build", "test", "lit.site.cfg.py")
    if not os.path.exists(site):
        lit_config.fatal("no build/test/lit.site.cfg.py: run ./dev build")
    lit_config.load_config(config, os.path.abspath(site))
    raise SystemExit

LLVM_TOOLS = "/usr/lib/llvm-19/bin"


def find_program(variable, *names):
    """Of the CUDA toolkit, by the order that docs/tools.md states."""
    chosen = os.environ.get(variable)
    if chosen:
        return chosen if os.access(chosen, os.X_OK) else None
    home = os.environ.get("CUDA_HOME")
    folders = [os.environ.get("PATH", "")]
    if home:
        folders.append(os.path.join(home, "bin"))
    folders.append("/usr/local/cuda/bin")
    found = (shutil.which(n, path=os.pathsep.join(folders)) for n in names)
    return next(filter(None, found), None)


def has_hopper():
    """Whether CUDA device 0 has compute capability 9.0, which sm_90a needs."""
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    device, major = ctypes.c_int(), ctypes.c_int()
    return (
        cuda.cuInit(0) == 0
        and cuda.cuDeviceGet(ctypes.byref(device), 0) == 0
        and cuda.cuDeviceGetAttribute(ctypes.byref(major), 75, device) == 0
        and major.value == 9
    )


config.name = "exo"
config.test_format = lit.formats.ShTest(execute_external=True)
config.suffixes = [".exo", ".eir", ".test"]
config.excludes = ["Inputs"]
config.test_source_root = os.path.join(config.exo_source_dir, "test")
config.test_exec_root = os.path.join(config.exo_binary_dir, "test")

bin_folder = os.path.join(config.exo_binary_dir, "bin")
path = [bin_folder, LLVM_TOOLS, os.environ.get("PATH", "")]
config.environment["PATH"] = os.pathsep.join(path)
for name in ("EXO_LONG", "EXO_PTXAS", "EXO_CUOBJDUMP", "CUDA_HOME",
             "LD_LIBRARY_PATH"):
    if name in os.environ:
        config.environment[name] = os.environ[name]

for name, present in config.exo_have.items():
    if present:
        config.available_features.add(name)
ptxas = find_program("EXO_PTXAS", "ptxas")
if ptxas:
    config.available_features.add("ptxas")
if find_program("EXO_CUOBJDUMP", "nvdisasm", "cuobjdump"):
    config.available_features.add("disassembler")
if has_hopper():
    config.available_features.add("gpu")
if os.environ.get("EXO_LONG"):
    config.available_features.add("long")
    config.suffixes.append(".long")  # big suites, which no other run looks for

for tool in ("opt", "check", "run", "translate"):
    program = os.path.join(bin_folder, "exo-" + tool)
    config.substitutions.append(("%exo-" + tool, program))
config.substitutions.append(("%ptxas", ptxas or "ptxas-not-found"))
config.substitutions.append(
    ("%kernels", os.path.join(config.exo_source_dir, "kernels")))
config.substitutions.append(
    ("%examples", os.path.join(config.exo_source_dir, "test", "examples")))
config.substitutions.append(
    ("%lib", os.path.join(config.exo_source_dir, "lib")))
config.substitutions.append(
    ("%stub_driver", os.path.join(config.exo_binary_dir, "test", "stub",
                                  "libcuda.so.1")))
