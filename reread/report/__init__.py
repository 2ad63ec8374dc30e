"""One record as one HTML page: to be read, printed, sent, and looked at on a phone.

Proves: nothing; it shows what a record says, and `audit` says whether that still holds. The page
holds no script, asks for nothing over the network, and its policy forbids both, so that whatever a
model or a file put into the record stays text. What a preview shows was read by a limited child.
"""

from reread.report.index import index_page, runs_of
from reread.report.page import run_page

__all__ = ["index_page", "run_page", "runs_of"]
