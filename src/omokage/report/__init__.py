"""Reports: a result as one self-contained HTML page that opens offline and prints well."""

from __future__ import annotations

from .page import comparison_page, evaluation_page, face_evaluation_page, require_report, write_page

__all__ = ["comparison_page", "evaluation_page", "face_evaluation_page", "require_report", "write_page"]
