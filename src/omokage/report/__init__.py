"""Reports: a result as one self-contained HTML page that opens offline and prints well."""

from __future__ import annotations

from .page import comparison_page, evaluation_page, face_evaluation_page
from .sentences import face_verdict, verdict
from .writing import require_report, require_report_places, write_page, write_results

__all__ = [
    "comparison_page", "evaluation_page", "face_evaluation_page", "face_verdict", "require_report", "require_report_places",
    "verdict", "write_page", "write_results",
]  # fmt: skip
