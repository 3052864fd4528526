"""From bytes to a clean notebook, and from a folder or a zip to students."""

import io
import json
import os
import zipfile

import nbformat
import pytest

from exercises.grading import collect, intake, magics, notebook, source
from exercises.grading.batch import slug
from tests.exercises import odd

KIT = odd.kit("week13")
WEEKS = ["week13", "week12"]
EVERY = set(source.load("week13").questions)


def read(*files):
    return intake.read([(name, data, "") for name, data in files], "week13")


def answers(received) -> dict[str, str]:
    """The code that would run, by question."""
    found: dict[str, str] = {}
    for _, code, question in received.code:
        if question:
            found[question] = found.get(question, "") + code
    return found


def same(a: str, b: str) -> bool:
    return a.split() == b.split()


@pytest.mark.parametrize("name", [n for n, c in odd.CASES.items() if c.expect == "full"])
def test_honest_answers_arrive_whole(name):
    content = odd.CASES[name].make(KIT)
    data = odd.packed(content) if "nbformat" in content else content[KIT.name]
    received = read((KIT.name, data))
    assert not received.refused
    for cell in KIT.cells(KIT.right()):
        question = cell["metadata"]["nbgrader"]["grade_id"]
        body = cell["source"].split("def ", 1)[1]
        assert "".join(body.split()) in "".join(answers(received)[question].split())
    nbformat.validate(nbformat.from_dict(received.notebook))


@pytest.mark.parametrize("name", odd.CASES)
def test_the_clean_notebook_is_ours(name):
    """Locked and test cells, points and ids are those of the release, whatever came."""
    content = odd.CASES[name].make(KIT)
    files = (
        {KIT.name: odd.packed(content)}
        if "cells" in content or "worksheets" in content
        else content
    )
    files = [
        (n, None if isinstance(d, str) else d, "link" if isinstance(d, str) else "")
        for n, d in files.items()
    ]
    received = intake.read(files, "week13")
    if received.refused:
        assert received.refused.endswith("。") and received.notebook is None
        return
    ours = {c["id"]: c for c in KIT.release.notebook["cells"]}
    made = {c["id"]: c for c in received.notebook["cells"] if c["id"] in ours}
    assert list(made) == list(ours)
    for name, cell in ours.items():
        assert made[name]["metadata"] == cell["metadata"]
        if KIT.kind(cell) in ("test", ""):
            assert made[name]["source"] == cell["source"]
    assert not [
        c
        for c in received.notebook["cells"]
        if "<script" in c["source"] and c["cell_type"] != "code"
    ]
    nbformat.validate(nbformat.from_dict(received.notebook))


def test_limits_are_said_in_japanese():
    for data, word in (
        (b" " * (notebook.MAX_BYTES + 1), "大きすぎます"),
        (b"", "空です"),
        (b"<html>", "HTML のページ"),
        (b'{"cells": [', "途中で切れている"),
        (b"[]", "ノートブックの形ではありません"),
        (b'{"cells": 3}', "セルがありません"),
        (odd.packed({"cells": [{}] * (notebook.MAX_CELLS + 1)}), "セルが多すぎます"),
    ):
        assert word in read((KIT.name, data)).refused
    assert "ファイルがありません" in intake.read([], "week13").refused
    assert "記号リンク" in intake.read([("x", None, "link")], "week13").refused


def test_wrong_right_and_lost_answers():
    nb = KIT.right()
    first = KIT.cells(nb)[0]
    first["metadata"], first["source"] = {}, first["source"].split("\n", 1)[1]
    received = read((KIT.name, odd.packed(nb)))
    assert "関数の名前で見つけました" in received.person[0] and set(answers(received)) == EVERY
    nb["cells"].remove(first)
    received = read((KIT.name, odd.packed(nb)))
    assert "13-1 の答えのセルが見つかりません" in received.remarks[0]


def test_written_answers_keep_pictures_and_lose_scripts():
    nb = KIT.right()
    cell = KIT.cells(nb, "written")[0]
    cell["source"] += "\n<script>x</script> a < b"
    cell["attachments"] = {
        "a.png": {"image/png": "AAAA", "text/html": "<b>"},
        "b": {"image/svg+xml": "x"},
    }
    received = read((KIT.name, odd.packed(nb)))
    made = next(c for c in received.notebook["cells"] if c["id"] == cell["id"])
    assert "&lt;script>" in made["source"] and "a < b" in made["source"]
    assert made["attachments"] == {"a.png": {"image/png": "AAAA"}}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("x = (7\n     % 3)", "x = (7\n     % 3)"),
        ("s = '''\n!ls\n'''", "s = '''\n!ls\n'''"),
        ("%matplotlib inline\nx = 1", "pass\nx = 1"),
        ("if a:\n    !pip install x", "if a:\n    pass"),
        ("files = !ls\nx = %time f()", "files = None\nx = None"),
        ("%%time\nx = 1", "\nx = 1"),
        ("%%bash\nrm -rf /", "pass"),
        ("torch.nn?\n?x", "pass\npass"),
    ],
)
def test_magics_become_python(source, expected):
    assert magics.plain(source) == expected


def entries(tmp_path, layout: dict[str, bytes], as_zip: bool):
    if not as_zip:
        root = tmp_path / "in"
        for name, data in layout.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_bytes(data)
        return root
    path = tmp_path / "in.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in layout.items():
            archive.writestr(name, data)
    return path


LAYOUTS = {
    "nbgrader": (
        {"submitted/sato/week13/week13.ipynb": b"1", "submitted/abe/week13/week13.ipynb": b"2"}
        | {"submitted/abe/week12/week12.ipynb": b"3", "submitted/abe/week13/timestamp.txt": b"x"},
        {"abe": ["week13.ipynb", "timestamp.txt"], "sato": ["week13.ipynb"]},
    ),
    "moodle": (
        {"山田 花子_101_assignsubmission_file_/week13.ipynb": b"1"}
        | {"佐藤_102_assignsubmission_file_week13.ipynb": b"2"}
        | {"佐藤_103_assignsubmission_file_/x/week13.ipynb": b"3"},
        {
            "佐藤_102": ["week13.ipynb"],
            "佐藤_103": ["x/week13.ipynb"],
            "山田 花子": ["week13.ipynb"],
        },
    ),
    "canvas": (
        {"yamadahanako_12_345_week13.ipynb": b"1", "satotaro_LATE_13_346_week13-1.ipynb": b"2"},
        {"satotaro": ["week13-1.ipynb"], "yamadahanako": ["week13.ipynb"]},
    ),
    "classroom": (
        {"第13週/山田 花子 - week13.ipynb": b"1", "第13週/佐藤 - week13 のコピー.ipynb": b"2"},
        {"佐藤": ["week13 のコピー.ipynb"], "山田 花子": ["week13.ipynb"]},
    ),
    "folders": (
        {"sato/week13.ipynb": b"1", "abe/sub/w.ipynb": b"2", "abe/.DS_Store": b""},
        {"abe": ["sub/w.ipynb"], "sato": ["week13.ipynb"]},
    ),
    "files": ({"sato.ipynb": b"1", "readme.txt": b""}, {"sato": ["sato.ipynb"]}),
}


@pytest.mark.parametrize("as_zip", [False, True])
@pytest.mark.parametrize("name", LAYOUTS)
def test_exports_of_each_system(tmp_path, name, as_zip):
    layout, expected = LAYOUTS[name]
    root = entries(tmp_path, layout, as_zip)
    if name == "nbgrader" and not as_zip:
        root = root / "submitted"
    if name == "classroom" and not as_zip:
        root = root / "第13週"
    found, strangers = collect.submissions(root, "week13", WEEKS)
    assert {s.student: [n for n, _ in s.files] for s in found} == expected
    late = [s.student for s in found if s.remarks]
    assert late == (["satotaro"] if name == "canvas" else [])
    assert bool([s for s in found if s.person]) == (name == "files")
    assert strangers == {"files": ["readme.txt"], "nbgrader": ["abe/week12/week12.ipynb"]}.get(
        name, []
    )


def test_zips_of_a_class_inside_the_folder(tmp_path):
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w") as archive:
        archive.writestr("week13.ipynb", odd.packed(KIT.right()))
    root = entries(tmp_path, {"sato_1_2_mine.zip": inner.getvalue()}, False)
    entries_zip = entries(tmp_path, {"abe_3_4_week13.ipynb": b"{}"}, True)
    entries_zip.rename(root / "export.zip")
    found, _ = collect.submissions(root, "week13", WEEKS)
    assert [s.student for s in found] == ["abe", "sato"]
    received = intake.read(found[1].contents(), "week13")
    assert not received.refused and set(answers(received)) == EVERY


def test_hostile_zips(tmp_path):
    path = tmp_path / "in.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("../../../etc/sato_1_2_week13.ipynb", b"{}")
        link = zipfile.ZipInfo("abe_3_4_week13.ipynb")
        link.external_attr = 0o120777 << 16
        archive.writestr(link, "/etc/passwd")
        archive.writestr("big_5_6_week13.ipynb", b"\0" * (notebook.MAX_BYTES + 1))
    found, _ = collect.submissions(path, "week13", WEEKS)
    problems = {s.student: [p for _, d, p in s.contents() if d is None] for s in found}
    assert problems["abe"] == ["link"] and problems["big"] == [collect.TOO_LARGE]
    assert not (tmp_path.parent / "etc").exists()
    (tmp_path / "broken.zip").write_bytes(b"PK\x03\x04 no")
    assert collect.submissions(tmp_path / "broken.zip", "week13", WEEKS) == ([], [])


def test_special_files_are_not_opened(tmp_path):
    (tmp_path / "sato").mkdir()
    os.mkfifo(tmp_path / "sato" / "week13.ipynb")
    (tmp_path / "abe").mkdir()
    found, _ = collect.submissions(tmp_path, "week13", WEEKS)
    assert [s.student for s in found] == ["abe", "sato"]
    reasons = [intake.read(s.contents(), "week13").refused for s in found]
    assert reasons == ["提出されたファイルがありません。", "ふつうのファイルではありません。"]


def test_names_of_files_are_safe():
    taken: set[str] = set()
    names = ["佐藤 花子", "a/b", "A_b", "a_b", "..", "x" * 300, "=1+1", "\ud800"]
    made = [slug(n, taken) for n in names]
    assert len({m.casefold() for m in made}) == len(names) and made[0] == "佐藤 花子"
    assert all("/" not in m and m.strip(".") and len(m) < 80 for m in made)
    json.dumps(made).encode()


def test_folders_that_look_like_exports_are_students(tmp_path):
    layout = {"Sato - Taro/week13.ipynb": b"1", "s_12_34_x/week13/week13.ipynb": b"2"}
    found, _ = collect.submissions(entries(tmp_path, layout, False), "week13", WEEKS)
    assert [s.student for s in found] == ["Sato - Taro", "s_12_34_x"]


def test_many_and_large_files_do_not_hide_the_notebook(tmp_path, monkeypatch):
    layout = {f"sato/a{i:03d}.txt": b"x" * 100 for i in range(collect.MAX_FILES + 5)}
    layout["sato/week13.ipynb"] = odd.packed(KIT.right())
    root = entries(tmp_path, layout, False)
    ((one,), _) = collect.submissions(root, "week13", WEEKS)
    assert "だけを受け取りました" in one.person[0]
    monkeypatch.setattr(collect, "MAX_TOTAL", len(layout["sato/week13.ipynb"]) + 250)
    files = one.contents()
    assert len(files) == collect.MAX_FILES and files[0][0] == "week13.ipynb"
    assert sum(problem == collect.TOO_MUCH for _, _, problem in files) == len(files) - 3
    assert not intake.read(files, "week13").refused
