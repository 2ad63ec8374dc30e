"""What a careful user would write after the run: the check that every peer's own hook is given.

The file is there, is a regular file, is not empty, is newer than the start of the run, opens whole
in the usual library, and has the keys, rows, words, sections, entries, pages and width that the
task asked for. It is as strong as can be with a look at the file alone; what it cannot know is who
made the file. It runs in an environment of its own, the same for all peers.

    python _careful_check.py ROOT PATH CONTRACT-JSON STARTED    prints what is wrong, exit 1
"""
# mypy: ignore-errors - it runs where the libraries are installed

import csv
import json
import sys
import zipfile
from pathlib import Path


def _json(path):
    value = json.loads(path.read_text(encoding="utf-8"))
    return {"keys": set(value), "value": value}


def _csv(path):
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))
    return {"rows": len(rows) - 1, "columns": min(map(len, rows))}


def _md(path):
    text = path.read_text(encoding="utf-8")
    heads = [line.lstrip("# ").strip() for line in text.splitlines() if line.startswith("#")]
    tables = sum(line.startswith("|---") for line in text.splitlines())
    return {"words": len(text.split()), "sections": heads, "tables": tables}


def _xlsx(path):
    import openpyxl

    sheet = openpyxl.load_workbook(path).worksheets[0]
    return {"rows": sheet.max_row - 1, "columns": sheet.max_column}


def _docx(path):
    import docx

    text = " ".join(paragraph.text for paragraph in docx.Document(str(path)).paragraphs)
    return {"words": len(text.split())}


def _pdf(path):
    import pypdf

    pages = pypdf.PdfReader(path).pages
    return {"pages": len(pages), "words": len(" ".join(p.extract_text() for p in pages).split())}


def _png(path):
    from PIL import Image

    with Image.open(path) as image:
        image.load()
        return {"width": image.width, "height": image.height}


def _zip(path):
    with zipfile.ZipFile(path) as archive:
        if archive.testzip():
            raise ValueError("a member is damaged")
        return {"entries": len(archive.namelist())}


OPENS = {
    ".json": _json,
    ".csv": _csv,
    ".md": _md,
    ".xlsx": _xlsx,
    ".docx": _docx,
    ".pdf": _pdf,
    ".png": _png,
    ".zip": _zip,
}


def wrong(root, path, contract, started):
    """Return what is wrong with the file, or ''."""
    file = root / path
    if not file.is_file() or file.is_symlink():
        return f"{path} is not a regular file"
    if not file.stat().st_size:
        return f"{path} is empty"
    if file.stat().st_mtime < started:
        return f"{path} is older than this run"
    try:
        facts = OPENS[file.suffix](file)
    except Exception as error:  # whatever the library raises, it did not open
        return f"{path} does not open: {error}"
    return _unmet(root, contract, facts)


def _unmet(root, contract, facts):
    for word, least in contract.items():
        name = word.removeprefix("min_")
        if name != word and facts.get(name, least) < least:
            return f"{facts[name]} {name} instead of at least {least}"
    missing = set(contract.get("required_keys", ())) - facts.get("keys", set())
    missing |= set(contract.get("sections", ())) - set(facts.get("sections", ()))
    if missing and ("keys" in facts or "sections" in facts):
        return f"missing: {', '.join(sorted(missing))}"
    for rule in contract.get("equal", ()):
        rows = _csv(root / rule["that"]["file"])["rows"]
        if facts["value"][rule["this"]["key"]] != rows:
            return f"{rule['this']['key']} is not {rows}"
    return ""


def main():
    """Run from the command line."""
    root, path, contract, started = sys.argv[1:]
    said = wrong(Path(root), path, json.loads(contract), float(started))
    print(said)
    return 1 if said else 0


if __name__ == "__main__":
    sys.exit(main())
