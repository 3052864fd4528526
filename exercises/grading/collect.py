"""提出物の置き場（フォルダか zip）から、一人ずつの提出物を集める。

読める形：nbgrader の submitted/（人/課題/ファイル）、人ごとのフォルダ、Moodle・Canvas・Google
Classroom の zip やその中身。名前から提出者がわからないものは、ファイル名を名前として、人に回す。
"""

import io
import os
import pathlib
import re
import stat
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from exercises.grading.notebook import MAX_BYTES

MAX_MEMBERS = 20_000
MAX_FILES = 200
IGNORED = re.compile(
    r"^(\.ipynb_checkpoints|__MACOSX|\.DS_Store|Thumbs\.db|desktop\.ini|\._.*|__pycache__)$"
)
MOODLE = re.compile(
    r"^(?P<student>.+?)_(?P<key>\d+)_assignsubmission_(?:file|onlinetext)_?(?P<rest>.*)$"
)
CANVAS = re.compile(r"^(?P<student>[^_]+)(?P<late>_LATE)?_(?P<key>\d+)_\d+_(?P<rest>.+)$")
CLASSROOM = re.compile(r"^(?P<student>.+?) - (?P<rest>[^/]+)$")
MAX_TOTAL = 5 * MAX_BYTES
TOO_MUCH = f"全体で大きすぎます（上限は {MAX_TOTAL >> 20} MB）。"
TOO_LARGE = f"ファイルが大きすぎます（上限は {MAX_BYTES >> 20} MB）。"


@dataclass
class Entry:
    """一つのファイル。parts は置き場からの道、problem は読まない理由（link は記号リンク）。"""

    parts: tuple[str, ...]
    read: Callable[[], bytes]
    problem: str = ""


@dataclass
class Submission:
    """一人分。files は (名前, 読み方, 困った点)。"""

    student: str
    key: str = ""
    files: list[tuple[str, Entry]] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    person: list[str] = field(default_factory=list)

    @property
    def timestamp(self) -> str:
        """nbgrader の timestamp.txt（提出の時刻）。なければ空文字列。"""
        for name, entry in self.files:
            if name.rsplit("/", 1)[-1] == "timestamp.txt":
                text = (_load(entry)[0] or b"")[:80].decode("utf-8", "replace").strip()
                return text if re.match(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d", text) else ""
        return ""

    def contents(self) -> list[tuple[str, bytes | None, str]]:
        """(名前, 中身, 困った点)。zip なら、その中のファイル（一段だけ）も。"""
        out: list[tuple[str, bytes | None, str]] = []
        room = MAX_TOTAL
        for name, entry in self.files[:MAX_FILES]:
            data, problem = _load(entry)
            out.append(_within(room, name, data, problem))
            room -= len(out[-1][1] or b"")
            if data is not None and name.lower().endswith(".zip"):
                for one in list(_zip(io.BytesIO(data)))[:MAX_FILES]:
                    out.append(_within(room, f"{name}/{'/'.join(one.parts)}", *_load(one)))
                    room -= len(out[-1][1] or b"")
        return out


def _first(pair: tuple[str, "Entry"]) -> tuple[bool, str]:
    """ノートブックと zip を先に読む。"""
    return not pair[0].lower().endswith((".ipynb", ".zip")), pair[0]


def _within(room: int, name: str, data: bytes | None, problem: str) -> tuple:
    fits = data is None or len(data) <= room
    return (name, data, problem) if fits else (name, None, TOO_MUCH)


def _load(entry: Entry) -> tuple[bytes | None, str]:
    if entry.problem:
        return None, entry.problem
    try:
        data = entry.read()
    except (OSError, zipfile.BadZipFile, RuntimeError, NotImplementedError, EOFError, ValueError):
        return None, "ファイルが壊れていて読めません。"
    return (data, "") if len(data) <= MAX_BYTES else (None, TOO_LARGE)


def _folder(root: pathlib.Path) -> Iterator[Entry]:
    """フォルダの中のファイル。リンクはたどらない。"""
    for place, folders, names in os.walk(root):
        folders[:] = sorted(f for f in folders if not IGNORED.match(f))
        inside = pathlib.Path(place).relative_to(root).parts
        links = [f for f in folders if os.path.islink(os.path.join(place, f))]
        for name in sorted([*names, *links]):
            if not IGNORED.match(name):
                path = os.path.join(place, name)
                parts = tuple(
                    p.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
                    for p in (*inside, name)
                )
                yield Entry(parts, lambda path=path: _read_file(path), _problem(path))


def _problem(path: str) -> str:
    facts = os.lstat(path)
    if stat.S_ISLNK(facts.st_mode):
        return "link"
    if not stat.S_ISREG(facts.st_mode):
        return "ふつうのファイルではありません。"
    return TOO_LARGE if facts.st_size > MAX_BYTES else ""


def _read_file(path: str) -> bytes:
    with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
        return file.read(MAX_BYTES + 1)


def _zip(source: pathlib.Path | io.BytesIO) -> Iterator[Entry]:
    """zip の中のファイル。名前は見出しとして使うだけで、そこへ書くことはない。"""
    try:
        archive = zipfile.ZipFile(source)
    except (zipfile.BadZipFile, OSError, ValueError):
        return
    for info in archive.infolist()[:MAX_MEMBERS]:
        parts = tuple(p for p in _name(info).split("/") if p not in ("", ".", ".."))
        if info.is_dir() or not parts or any(IGNORED.match(p) for p in parts):
            continue
        problem = TOO_LARGE if info.file_size > MAX_BYTES else ""
        if stat.S_ISLNK(info.external_attr >> 16):
            problem = "link"
        yield Entry(parts, lambda info=info: _read_member(archive, info), problem)


def _read_member(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    with archive.open(info) as file:
        return file.read(MAX_BYTES + 1)


def _name(info: zipfile.ZipInfo) -> str:
    """UTF-8 の印のない名前は、日本語の Windows のものとして読み直す。"""
    if info.flag_bits & 0x800:
        return info.filename
    try:
        return info.filename.encode("cp437").decode("cp932").replace("\\", "/")
    except (UnicodeEncodeError, UnicodeDecodeError):
        return info.filename


def entries(root: pathlib.Path) -> list[Entry]:
    """置き場のすべてのファイル。置き場にある、学校の仕組みからの zip は、その中身にする。"""
    if root.is_file():
        return _unwrapped(list(_zip(root)), root.stem)
    out = []
    for entry in _folder(root):
        bundle = len(entry.parts) == 1 and entry.parts[0].lower().endswith(".zip")
        if bundle and not entry.problem and not _known(entry.parts[0]):
            inside = _unwrapped(
                list(_zip(root / entry.parts[0])), pathlib.Path(entry.parts[0]).stem
            )
            out += inside or [entry]
        else:
            out.append(entry)
    return out


def _unwrapped(found: list[Entry], stem: str) -> list[Entry]:
    """全体を包むフォルダがあれば外す（人の名前のフォルダは外さない）。"""
    tops = {e.parts[0] for e in found}
    if len(tops) != 1 or any(len(e.parts) < 2 for e in found):
        return found
    (top,) = tops
    below = [e.parts[1] for e in found]
    if not _known(top) and (top in ("submitted", stem) or any(map(_known, below))):
        return [Entry(e.parts[1:], e.read, e.problem) for e in found]
    return found


def _known(name: str) -> re.Match | None:
    return MOODLE.match(name) or CANVAS.match(name) or CLASSROOM.match(name)


def _owner(
    parts: tuple[str, ...], assignment: str, weeks: list[str]
) -> tuple[str, str, str, str] | None:
    """(提出者, 区別のための番号, その人の中での名前, 言うこと)。この課題のものでなければ None。"""
    moodle, alone = MOODLE.match(parts[0]), len(parts) == 1
    match = moodle or (_known(parts[0]) if alone else None)
    if match and (not alone or match["rest"]):
        groups = match.groupdict()
        rest = "/".join([p for p in (groups["rest"], *parts[1:]) if p])
        late = "late" if groups.get("late") else ""
        return groups["student"].strip(), groups.get("key") or "", rest, late
    if len(parts) >= 3 and parts[1] == assignment:
        return parts[0], "", "/".join(parts[2:]), ""
    if len(parts) >= 3 and parts[1] in weeks:
        return None
    if len(parts) >= 2:
        return parts[0], "", "/".join(parts[1:]), ""
    stem, _, suffix = parts[0].rpartition(".")
    return (stem, "", parts[0], "unknown") if suffix.lower() in ("ipynb", "zip") else None


def submissions(
    root: pathlib.Path, assignment: str, weeks: list[str]
) -> tuple[list[Submission], list[str]]:
    """一人ずつの提出物（名前の順）と、提出物と見なさなかったものの名前。"""
    found: dict[tuple[str, str], Submission] = {}
    strangers = []
    for entry in entries(root):
        owner = _owner(entry.parts, assignment, weeks)
        if owner is None:
            strangers.append("/".join(entry.parts))
            continue
        student, key, name, note = owner
        one = found.setdefault((student, key), Submission(student, key))
        one.files.append((name, entry))
        if note == "late" and not one.remarks:
            one.remarks.append("締め切りのあとに提出されています。")
        if note == "unknown" and not one.person:
            one.person.append("ファイル名から提出者がわかりません。名前を確かめてください。")
    if root.is_dir():
        for folder in sorted(root.iterdir()):
            alone = folder.is_dir() and not folder.is_symlink() and not MOODLE.match(folder.name)
            if (
                alone
                and not any(k[0] == folder.name for k in found)
                and not any(s.startswith(folder.name + "/") for s in strangers)
            ):
                found[folder.name, ""] = Submission(folder.name)
    for one in found.values():
        one.files.sort(key=_first)
        if len(one.files) > MAX_FILES:
            one.person.append(
                f"ファイルが {len(one.files)} 個あります。{MAX_FILES} 個だけを受け取りました。"
            )
    names = [student for student, _ in found]
    for (student, key), one in found.items():
        if key and names.count(student) > 1:
            one.student = f"{student}_{key}"
    return sorted(found.values(), key=lambda s: (s.student, s.key)), strangers
