"""nbgrader の設定：採点（Verdict）と返却（SafeFeedback）を、この本のものに差しかえる。

採点の種は環境変数 GRADING_SEED。なければ、その回の種を引き、記録に書く。
"""

import os
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
# nbgrader は alembic を PATH から探す
os.environ["PATH"] = os.pathsep.join([str(pathlib.Path(sys.executable).parent), os.environ["PATH"]])

import nbgrader  # noqa: E402
from nbconvert.preprocessors import (  # noqa: E402
    ClearMetadataPreprocessor,
    CSSHTMLHeaderPreprocessor,
)
from nbgrader.preprocessors import (  # noqa: E402
    AssignLatePenalties,
    CheckCellMetadata,
    GetGrades,
    IgnorePattern,
    LimitOutput,
    SaveAutoGrades,
)

from exercises.grading import source  # noqa: E402
from exercises.grading.nbgrader_plugin import SafeFeedback, Verdict  # noqa: E402

c = get_config()
c.CourseDirectory.course_id = "toi-kara-transformer"
c.CourseDirectory.root = str(HERE)
c.ClearSolutions.code_stub = {"python": "\n".join(source.STUB)}
c.ClearSolutions.text_stub = "（ここに書く）"
c.OverwriteCells.add_missing_cells = True
c.OverwriteCells.missing_cell_notification = (
    "このセル（{cell_id}）は消えていたので、戻しました。\n\n"
)
c.Autograde.autograde_preprocessors = [
    Verdict,
    IgnorePattern,
    ClearMetadataPreprocessor,
    LimitOutput,
    SaveAutoGrades,
    AssignLatePenalties,
    CheckCellMetadata,
]
c.GenerateFeedback.preprocessors = [GetGrades, SafeFeedback, CSSHTMLHeaderPreprocessor]
c.HTMLExporter.template_name = "answers"
c.HTMLExporter.template_file = "answers.html.j2"
c.HTMLExporter.extra_template_basedirs = [
    str(HERE / "grading" / "templates"),
    str(pathlib.Path(nbgrader.__file__).parent / "server_extensions/formgrader/templates"),
]
