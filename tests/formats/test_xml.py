"""XML that is a web page, and a web page that is XML."""

from __future__ import annotations

from tests.formats.judging import verdict

NOT_FOUND = b"<html><head><title>404 Not Found</title></head><body><h1>Not Found</h1></body></html>"
XHTML = (
    b'<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"><head><title>Orders</title>'
    b"</head><body><p>Seventeen orders came in March, worth 1,234.50 in all.</p></body></html>"
)


def test_a_servers_error_page_is_no_xml_document() -> None:
    assert verdict("xml", NOT_FOUND) == "artifact_format_invalid/is_html"


def test_a_page_of_xhtml_is_one() -> None:
    assert verdict("xml", XHTML) == "ok"
