"""学生のコードを閉じこめる箱。始め方（コマンド）と、どの箱が使えるかだけを知っている。

bwrap：torch を読み込んで待つプロセスを、網も家も授業のフォルダもない箱に入れる。提出物ごとに、
その子が、自分だけの pid・ipc・網・ユーザーの名前空間と、空の /tmp を持って生まれる（worker.py）。
container：Docker か podman。提出物ごとに一つの入れ物を作り、標準入出力で話す（遅い）。
none：箱なし。提出されたコードが、採点する人の権限で動く。明らかに頼まれたときだけ使う。
"""

import functools
import os
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
LEVELS = ("bwrap", "container", "none")
NOBODY = "65534"
INSIDE = "/grader"
IMAGE = os.environ.get("GRADING_IMAGE", "toi-kara-transformer-grader")
MEMORY = 2 << 30
PROCESSES = 64
FILES = 256
DISK = 64 << 20
ENVIRONMENT = {
    "PATH": "/usr/bin:/bin",
    "HOME": "/tmp",
    "LANG": "C.UTF-8",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
    "MALLOC_MMAP_THRESHOLD_": str(32 << 20),  # 大きな配列の場所を、カーネルに返さずに使い回す
    "MALLOC_TRIM_THRESHOLD_": str(128 << 20),
}
START = (
    f"import sys; sys.path.insert(0, {INSIDE!r}); from exercises.grading import worker; worker.{{}}"
)
TRUST = """\
この機械では、提出されたコードを閉じこめる箱を作れません（{reason}）。
採点を止めました。次のどれかを選んでください。
  1. bubblewrap を入れる（Debian・Ubuntu：sudo apt install bubblewrap）。Ubuntu 24.04 以降では、
     一般ユーザーの名前空間が AppArmor で止められていることがあります。
  2. Docker か podman を使えるようにする（箱の作り方は、本の付録「授業で使う人へ」にあります）。
  3. すべての提出物のコードを自分で読んで信用できるときだけ、--trust-submissions を付ける。
     箱なしで動かすという意味です。提出されたコードは、あなたの権限で、あなたのファイル、ほかの学生の
     提出物、成績簿を読み書きでき、外と通信できます。合否を書きかえられることもあります。"""


class Refused(RuntimeError):
    """箱が作れず、信用するとも言われていない。"""


def files() -> list[tuple[str, str]]:
    """箱の中で見える、採点の部品（検査も正解も種も入っていない）。"""
    names = ("grading/worker.py", "grading/wire.py", "grading/magics.py", "grading/__init__.py")
    return [(str(HERE.parent / n), f"{INSIDE}/exercises/{n}") for n in (*names, "__init__.py")]


def _python() -> list[str]:
    """Python と部品の置き場。"""
    roots = map(os.path.abspath, (os.path.realpath(sys.base_prefix), sys.base_prefix, sys.prefix))
    return [p for p in dict.fromkeys(roots) if not p.startswith("/usr/")]


def _parents(path: str) -> list[str]:
    return [str(p) for p in reversed(pathlib.PurePath(path).parents) if str(p) != "/"]


def _tree(pairs: list[tuple[str, str]]) -> list[str]:
    """読むだけの根：/usr、Python、採点の部品。途中のフォルダは空で、誰でも通れる。"""
    command = ["--ro-bind", "/usr", "/usr"]
    for name in ("/bin", "/lib", "/lib64", "/sbin"):
        if os.path.islink(name):
            command += ["--symlink", os.readlink(name), name]
        elif os.path.isdir(name):
            command += ["--ro-bind", name, name]
    made = dict.fromkeys(d for _, target in pairs for d in _parents(target))
    for folder in [*made, "/tmp", "/etc"]:
        command += ["--perms", "0755", "--dir", folder]
    command += ["--ro-bind-try", "/etc/ld.so.cache", "/etc/ld.so.cache"]
    for source, target in pairs:
        command += ["--ro-bind", source, target]
    return command


def _python_command(call: str, arguments: str = "") -> list[str]:
    return [os.path.abspath(sys.executable), "-I", "-c", START.format(f"{call}({arguments})")]


def bwrap() -> list[str]:
    """箱の中で worker.main を始めるコマンド。root なら、先に nobody になる。"""
    pairs = [(p, p) for p in _python()] + files()
    inner = ["bwrap", "--unshare-all", "--die-with-parent", "--new-session", "--clearenv"]
    inner += ["--uid", NOBODY, "--gid", NOBODY, "--hostname", "grader"]
    for name, value in ENVIRONMENT.items():
        inner += ["--setenv", name, value]
    places = [(target, target) for _, target in pairs] if os.geteuid() == 0 else pairs
    inner += [*_tree(places), "--proc", "/proc", "--dev", "/dev", "--chdir", "/"]
    inner += ["--remount-ro", "/dev", "--remount-ro", "/"]
    inner += _python_command("main", "isolated=True")
    if os.geteuid() != 0:
        return inner
    outer = ["bwrap", "--die-with-parent", *_tree(pairs), "--bind", "/proc", "/proc"]
    outer += ["--dev", "/dev", "--"]
    drop = ["setpriv", "--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"]
    return [*outer, *drop, "--no-new-privs", "--inh-caps=-all", *inner]


def container(engine: str) -> list[str]:
    """入れ物の中で、一つの問いのための worker.single を始めるコマンド。"""
    command = [engine, "run", "--rm", "--interactive", "--network=none", "--read-only"]
    command += [f"--memory={MEMORY}", f"--memory-swap={MEMORY}", f"--pids-limit={PROCESSES}"]
    command += [f"--ulimit=nofile={FILES}:{FILES}", f"--ulimit=fsize={DISK}:{DISK}"]
    command += ["--ulimit=core=0:0", "--cpus=1", "--ipc=private", "--cap-drop=ALL"]
    command += ["--security-opt=no-new-privileges", f"--user={NOBODY}:{NOBODY}"]
    command += [f"--tmpfs=/tmp:rw,size={DISK},mode=1777", "--workdir=/tmp"]
    for name, value in ENVIRONMENT.items():
        if name != "PATH":
            command += ["--env", f"{name}={value}"]
    for source, target in files():
        command += ["--volume", f"{source}:{target}:ro"]
    return [*command, IMAGE, "python", "-I", "-c", START.format("single()")]


def engine() -> str:
    """動いている Docker か podman の名前。なければ空文字列。"""
    for name in ("podman", "docker"):
        if shutil.which(name) and _works([name, "image", "inspect", IMAGE]):
            return name
    return ""


def _works(command: list[str]) -> bool:
    try:
        return subprocess.run(command, capture_output=True, timeout=60).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


@functools.cache
def bwrap_problem() -> str:
    """bwrap の箱が作れない理由。作れるなら空文字列。"""
    if not shutil.which("bwrap"):
        return "bwrap がありません"
    if os.geteuid() == 0 and not shutil.which("setpriv"):
        return "setpriv がありません"
    command = bwrap()
    command[-1] = START.format("probe()")
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"bwrap が動きません：{type(error).__name__}"
    return "" if run.returncode == 0 else f"bwrap が動きません：{run.stderr.strip()[-300:]}"


def choose(*, trust: bool = False, wanted: str = "") -> str:
    """使う箱。bwrap、なければ container、なければ信用すると言われたときだけ none。"""
    if wanted:
        return wanted
    if trust:
        return "none"
    reason = bwrap_problem()
    if not reason:
        return "bwrap"
    if engine():
        return "container"
    raise Refused(TRUST.format(reason=f"{reason}。動いている Docker も podman もありません"))
