"""The house: what must agree between files, so that none of them can drift."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import agent_runtime
from reread import commands, fixtures, plugins
from reread.examine import all_formats
from reread.values import Code

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "reread"

ALLOWED_BY_HELP = {"reread", "reread.commands", "reread.flags", "reread.plugins", "app"}


def listed() -> list[str]:
    """Return the modules of the import order, the lowest last."""
    text = ast.get_docstring(ast.parse((PACKAGE / "__init__.py").read_text("utf-8"))) or ""
    return re.findall(r"^    (\w+) ", text, re.MULTILINE)


def part_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports(path: Path) -> set[str]:
    """Return the parts of the package that a file imports, inside functions too."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {name.name.split(".")[1] for name in node.names if "reread." in name.name}
        elif isinstance(node, ast.ImportFrom) and node.module == "reread":
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("reread."):
            found.add(str(node.module).split(".")[1])
    return found


class TestTheImportOrder:
    def test_every_module_is_listed_and_every_listed_one_is_there(self) -> None:
        there = {part_of(path) for path in PACKAGE.rglob("*.py")} - {"__init__"}
        assert there == set(listed())

    def test_a_module_imports_only_what_stands_below_it(self) -> None:
        order = {name: place for place, name in enumerate(listed())}
        upward = [
            f"{path.relative_to(ROOT)} imports {name}"
            for path in sorted(PACKAGE.rglob("*.py"))
            if path.parent != PACKAGE or path.name != "__init__.py"
            for name in imports(path)
            if name in order and part_of(path) != name and order[name] < order[part_of(path)]
        ]
        assert upward == []

    def test_the_kernel_imports_nothing_of_ours(self) -> None:
        assert imports(ROOT / "agent_runtime.py") == set()


class TestCodes:
    def test_each_code_has_its_meaning_and_remedy_in_the_documentation(self) -> None:
        page = (ROOT / "docs" / "failures.md").read_text("utf-8")
        rows = re.findall(r"^\| `(\w+)` \| ([^|]+) \| ([^|]+) \|$", page, re.MULTILINE)
        assert sorted(row[0] for row in rows) == sorted(Code)
        assert all(meaning.strip() and remedy.strip() for _, meaning, remedy in rows)

    def test_the_kernel_raises_only_codes_of_the_list(self) -> None:
        tree = ast.parse(Path(agent_runtime.__file__).read_text("utf-8"))
        raised = {
            node.args[0].value
            for node in ast.walk(tree)
            if isinstance(node, ast.Call)
            and getattr(node.func, "id", "") == "Failure"
            and isinstance(node.args[0], ast.Constant)
        }
        assert raised
        assert raised <= set(Code)

    def test_exit_statuses_are_given_to_codes_that_exist(self) -> None:
        assert set(commands.EXIT_OF_CODE) <= set(Code)


class TestThePackage:
    def test_requirements_and_pyproject_name_the_same_packages_with_the_same_bounds(self) -> None:
        lines = (ROOT / "requirements.txt").read_text("utf-8").splitlines()
        wanted = sorted(line for line in lines if line and not line.startswith("#"))
        project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
        assert wanted == sorted(project["dependencies"])

    def test_every_requirement_has_a_lower_and_an_upper_bound(self) -> None:
        lines = (ROOT / "requirements.txt").read_text("utf-8").splitlines()
        for line in lines:
            assert line.startswith("#") or (">=" in line and "<" in line), line

    def test_every_command_has_its_line_of_help(self) -> None:
        there = plugins.names(commands)
        assert set(there) == set(commands.available())


class TestThePages:
    def test_every_format_has_its_row_with_its_suffixes(self) -> None:
        page = (ROOT / "docs" / "formats.md").read_text("utf-8")
        rows = dict(re.findall(r"^\| `(\w+)` \| ([^|]+) \|", page, re.MULTILINE))
        assert rows == {f.name: " ".join(f.suffixes) for f in all_formats().values()}

    def test_every_page_that_another_names_is_there(self) -> None:
        pages = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]
        for page in pages:
            for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text("utf-8")):
                assert (page.parent / target).exists(), f"{page.name}: {target}"

    def test_every_fixture_is_explained_in_both_readmes_or_is_for_the_tests(self) -> None:
        for name in ("README.md", "README.zh.md"):
            text = (ROOT / name).read_text("utf-8")
            missing = [f for f in fixtures.names(ROOT / "sample-data") if f"`{f}`" not in text]
            assert set(missing) <= {"slow", "crash", "syntax"}, name


class TestStartUp:
    def test_the_help_loads_nothing_heavy(self) -> None:
        code = (
            "import sys; before = set(sys.modules); import app\n"
            "try: app.main(['--help'])\nexcept SystemExit: pass\n"
            "print('MODULES', *sorted(set(sys.modules) - before))"
        )
        ran = subprocess.run(
            [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
        )
        loaded = set(ran.stdout.rpartition("MODULES ")[2].split())
        standard = set(sys.stdlib_module_names)
        others = {name for name in loaded if name.partition(".")[0] not in standard}
        assert others <= ALLOWED_BY_HELP
        assert "asyncio" not in loaded


class TestFiles:
    def test_no_file_of_the_package_is_longer_than_four_hundred_lines(self) -> None:
        long = {
            str(path.relative_to(ROOT)): count
            for path in PACKAGE.rglob("*.py")
            if (count := len(path.read_text("utf-8").splitlines())) > 400
        }
        assert set(long) <= {"reread/values.py"}
