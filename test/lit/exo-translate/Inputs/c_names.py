"""Gives procedures, parameters, tensors, sizes, locals and iterators each name
that C or C++ keeps or that the printed C itself uses, and compiles the result:
the C file as C, the header as C++.

c_names.py FOLDER EXO_TRANSLATE"""
import pathlib
import re
import shutil
import subprocess
import sys

FOLDER, TOOL = pathlib.Path(sys.argv[1]), sys.argv[2]
KEYWORDS = """alignas alignof and_eq asm auto bitand bitor break case catch char
char16_t char32_t char8_t class co_await co_return co_yield compl concept const
const_cast consteval constexpr constinit continue decltype default delete do
double dynamic_cast enum explicit export extern false float friend goto inline
int long mutable namespace new noexcept not_eq nullptr operator or_eq private
protected public register reinterpret_cast requires restrict return short signed
sizeof static static_assert static_cast struct switch template this thread_local
throw true try typedef typeid typename typeof typeof_unqual union unsigned using
virtual void volatile wchar_t while xor xor_eq _Bool _Complex _Atomic _Generic
_Noreturn _Static_assert _Thread_local linux unix NULL EOF errno offsetof main
malloc free sinf expf INTERVAL INT8 UINT SIZE_x RTLD_x foo_t exo_f EXO_F _a
stream status call f x""".split()
# Words of the language itself.
EXO = set("""and or not for if else elif def with pass in True False import inf
bool class assert float stride t l own""".split())
WORDS = {"return", "while"}  # begin no statement

KERNEL = """    with CudaDeviceFunction(blockDim=32):
        for t in cuda_tasks(0, 1):
            for l in cuda_threads(0, 32, unit=cuda_thread):
                own[l] = 1.0
"""


def translate(name, text):
    path = FOLDER / (name + ".exo")
    path.write_text(text)
    subprocess.run([TOOL, path, "--to=c", "-o", FOLDER / (name + ".c")],
                   check=True, stderr=subprocess.DEVNULL, timeout=120)


def words_of(path):
    text = re.sub(r'"(\\.|[^"\\])*"', "", path.read_text())
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    return set(re.findall(r"[A-Za-z_]\w*", text))


def compiles(name):
    flags = ["-Wall", "-Wextra", "-Werror", "-fsyntax-only"]
    subprocess.run(["cc", "-std=c17", "-Wshadow", *flags,
                    FOLDER / (name + ".c")], check=True)
    if shutil.which("g++"):
        unit = FOLDER / (name + ".cpp")
        unit.write_text(f'#include "{name}.h"\nint main() {{ return 0; }}\n')
        subprocess.run(["g++", *flags, unit], check=True)


translate("base", "def base(own: f32[32] @ CudaGmemLinear):\n" + KERNEL)
names = sorted((words_of(FOLDER / "base.c") | words_of(FOLDER / "base.h") |
                set(KEYWORDS)) - EXO)
PROGRAMS = {
    "procedures": "\n".join(
        f"def {n}(own: f32[4]):\n    own[0] = 1.0\n" for n in names),
    "parameters": "def p(" + ", ".join(
        f"{n}: f32 @ CudaGridConstant" for n in names) +
        ", own: f32[32] @ CudaGmemLinear):\n" + KERNEL,
    "tensors": "def p(" + ", ".join(f"{n}: f32[4]" for n in names) + "):\n" +
        "".join(f"    {n}[1] = 1.0\n" for n in names if n not in WORDS),
    "sizes": "def p(" + ", ".join(f"{n}: size" for n in names) +
        ", own: f32[4]):\n    own[0] = 1.0\n",
    "locals": "def p(own: f32[4]):\n" + "".join(
        f"    {n}: f32\n    {n} = 1.0\n    own[0] += {n}\n"
        for n in names if n not in WORDS),
    "iterators": "def p(own: f32[4]):\n" + "".join(
        f"    for {n} in seq(0, 4):\n        own[{n}] += 1.0\n"
        for n in names),
    "kernels": "\n".join(
        f"def {n}(own: f32[32] @ CudaGmemLinear):\n" + KERNEL
        for n in names[::16]),
}
for what, program in PROGRAMS.items():
    translate(what, program)
    compiles(what)
    print(what, "compile")
